from __future__ import annotations

import ast
import importlib
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

import devall

PACKAGE = Path(devall.__file__).parent


def body(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_bytes()).body


@pytest.mark.parametrize(
    "package",
    sorted(
        path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.glob("*/**/__init__.py")
    ),
)
def test_a_package_says_what_it_holds_and_holds_no_code(package: str):
    match body(PACKAGE / package / "__init__.py"):
        case [ast.Expr(ast.Constant(str(docstring)))]:
            assert docstring.strip()
        case other:
            pytest.fail(f"devall/{package}/__init__.py holds more than a docstring: {other}")


def test_every_folder_with_modules_is_a_package():
    folders = {path.parent for path in PACKAGE.rglob("*.py")}
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_every_module_begins_with_a_sentence_on_what_it_holds():
    silent = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_bytes()))
    ]
    assert silent == []


def test_every_all_is_sorted_and_true():
    for path in PACKAGE.rglob("*.py"):
        for statement in body(path):
            match statement:
                case ast.Assign([ast.Name("__all__")], ast.List() | ast.Tuple() as value):
                    names = ast.literal_eval(value)
                    assert names == sorted(names), path
                    dotted = ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
                    module = importlib.import_module(dotted.removesuffix(".__init__"))
                    assert [name for name in names if not hasattr(module, name)] == [], path
                case _:
                    pass


def test_an_unknown_name_of_the_package_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        devall.nothing  # noqa: B018


def test_the_version_is_that_of_the_project(project: Path):
    pyproject = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))
    assert pyproject["project"]["version"] == devall.__version__


def test_the_wheel_brings_functions_server_and_workflows_to_where_they_are_looked_for(
    project: Path, tmp_path: Path
):
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=project, check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    unpacked = tmp_path / "unpacked"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(unpacked)

    where = (
        "from devall.plugins import shipped;"
        "print(shipped.shipped_functions(), shipped.shipped_workflows(), sep='\\n')"
    )
    done = subprocess.run(
        [sys.executable, "-P", "-c", f"import sys; sys.path.insert(0, {str(unpacked)!r}); {where}"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    functions, workflows = map(Path, done.stdout.splitlines())
    assert functions == unpacked / "devall" / "_shipped" / "functions"
    for kind in ("function_calling", "edge", "edge_processor"):
        theirs = {path.name for path in (functions / kind).glob("*.py")}
        assert theirs == {path.name for path in (project / "functions" / kind).glob("*.py")}
    ours = {path.name for path in (project / "yaml_instance").glob("*.yaml")}
    assert {path.name for path in workflows.glob("*.yaml")} == ours
    assert (workflows / ".." / "mcp_example" / "mcp_server.py").is_file()
    assert (unpacked / "devall" / "py.typed").is_file()
    templates = Path("devall") / "page" / "templates"
    ours = {path.name for path in (project / templates).iterdir()}
    assert {path.name for path in (unpacked / templates).iterdir()} == ours
    assert {"report.html", "style.css", "script.js"} <= ours
    assert {path.name for path in unpacked.iterdir()} == {
        "devall",
        f"devall-{devall.__version__}.dist-info",
    }
