from __future__ import annotations

import base64
import hashlib
import os
import shutil
import sys
import textwrap
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devall.core.errors import ToolArguments, ToolFailed

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools

UV = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))

needs_uv = pytest.mark.skipif(UV is None, reason="uv is not installed")


@pytest.fixture
def tools(tools_of: Callable[..., Tools]) -> Tools:
    return tools_of("uv_related")


# A program that stands in for uv: it tells how it was called, and what it may see.
STAND_IN = """
import json, os, sys, time
print(json.dumps(sys.argv[1:]))
print("cwd", os.getcwd())
for name in ("API_KEY", "VIRTUAL_ENV", "UV_PROJECT", "GIVEN"):
    print(name, os.environ.get(name))
if sys.argv[1] == os.environ.get("FAILS"):
    print("no such package", file=sys.stderr)
    sys.exit(2)
sys.stdout.flush()
if os.environ.get("SLOW"):
    time.sleep(0.9)
if "sleep" in sys.argv:
    time.sleep(60)
"""


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`uv` on the PATH is a program that writes down its arguments."""
    place = tmp_path / "bin/uv"
    place.parent.mkdir()
    place.write_text(f"#!{sys.executable} -IS\n{textwrap.dedent(STAND_IN)}")
    place.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "off")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_PYTHON_INSTALL_DIR", str(tmp_path / "pythons"))
    return place


async def test_packages_are_added_to_a_project_that_is_made_first(
    tools: Tools, files: Path, stand_in: Path
):
    packages = ["requests", " numpy>=2 ", "./lib.whl", "x[y]==1.0"]
    text = await tools.text("install_python_packages", packages=packages, upgrade=True)
    assert '["init", "--bare", "--no-workspace", "--name", "workspace"]' in text
    lib = str(files.resolve() / "lib.whl")
    assert f'["add", "--upgrade", "--", "requests", "numpy>=2", "{lib}", "x[y]==1.0"]' in text
    assert f"cwd {files.resolve()}" in text
    (files / "pyproject.toml").touch()
    assert '"init"' not in await tools.text("install_python_packages", packages=["requests"])


@pytest.mark.parametrize("package", ["--index-url=http://evil", "-r", "", "  ", "a\nb"])
async def test_what_is_no_package_is_refused(tools: Tools, stand_in: Path, package: str):
    with pytest.raises(ToolArguments, match="is no package"):
        await tools.result("install_python_packages", packages=[package])


@pytest.mark.parametrize("package", ["/etc", "../x", "a @ file:///etc/x", "FILE:///x"])
async def test_a_package_from_outside_the_workspace_is_refused(
    tools: Tools, stand_in: Path, package: str
):
    with pytest.raises(ToolFailed, match="workspace"):
        await tools.result("install_python_packages", packages=[package])


async def test_neither_secrets_nor_another_project_reach_uv(
    tools: Tools, stand_in: Path, monkeypatch: pytest.MonkeyPatch
):
    for name in ("API_KEY", "VIRTUAL_ENV", "UV_PROJECT"):
        monkeypatch.setenv(name, "s3ntinel")
    text = await tools.text("uv_run", module="m", env={"GIVEN": "given"})
    assert "s3ntinel" not in text
    assert "GIVEN given" in text


async def test_a_step_that_fails_is_told_and_the_next_not_taken(
    tools: Tools, stand_in: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("FAILS", "init")
    result = await tools.result("install_python_packages", packages=["requests"])
    assert result.is_error
    assert result.text.startswith("uv init: exit code: 2")
    assert "--- stderr ---\nno such package" in result.text
    assert '"add"' not in result.text


async def test_an_environment_is_made_and_one_that_is_there_kept_unless_another_python_is_wanted(
    tools: Tools, stand_in: Path
):
    text = await tools.text("init_python_env")
    assert [line for line in text.splitlines() if line.startswith("[")] == [
        '["init", "--bare", "--no-workspace", "--name", "workspace"]',
        '["venv", "--allow-existing"]',
        '["lock"]',
    ]
    text = await tools.text("init_python_env", python_version="3.12")
    assert '["venv", "--clear", "--python", "3.12"]' in text
    with pytest.raises(ToolArguments, match="no version of Python"):
        await tools.result("init_python_env", python_version="--seed")


async def test_a_module_or_a_script_is_run_with_its_arguments(
    tools: Tools, files: Path, stand_in: Path
):
    (files / "run.py").touch()
    text = await tools.text("uv_run", module="http.server", args=["--help", "-x"])
    assert '["run", "--no-project", "python", "-m", "http.server", "--help", "-x"]' in text
    (files / "pyproject.toml").touch()
    text = await tools.text("uv_run", script="run.py", args=["a b"])
    assert f'["run", "{files.resolve() / "run.py"}", "a b"]' in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "one of them"),
        ({"module": "m", "script": "s.py"}, "one of them"),
        ({"module": "-c print(1)"}, "no name of a module"),
        ({"script": "../x.py"}, "workspace"),
        ({"script": "gone.py"}, "there is no file 'gone.py'"),
    ],
)
async def test_what_cannot_be_run_is_refused(
    tools: Tools, stand_in: Path, arguments: dict[str, str], said: str
):
    with pytest.raises((ToolArguments, ToolFailed), match=said):
        await tools.result("uv_run", **arguments)


async def test_a_program_that_takes_too_long_is_stopped(
    tools: Tools, tools_of: Callable[..., Tools], stand_in: Path
):
    result = await tools.result("uv_run", module="m", args=["sleep"], timeout_seconds=0.7)
    assert result.is_error
    assert result.text.startswith("uv run: stopped: it did not end within 0.7 s")


async def test_the_sources_time_limit_keeps_what_was_printed_so_far(
    tools_of: Callable[..., Tools], stand_in: Path
):
    began = time.monotonic()
    result = await tools_of("uv_related", timeout=0.7).result(
        "uv_run", module="m", args=["sleep"], timeout_seconds=50
    )
    assert time.monotonic() - began < 5
    assert result.is_error
    assert result.text.startswith("uv run: stopped: it did not end within 0.7 s\n--- stdout ---")
    assert '"sleep"' in result.text
    assert "`timeout` of the tool's source" in result.text


async def test_all_steps_together_have_the_sources_time_limit(
    tools_of: Callable[..., Tools], stand_in: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SLOW", "1")
    result = await tools_of("uv_related", timeout=1.5).result("init_python_env")
    assert result.is_error
    assert "uv init: exit code: 0" in result.text
    assert "stopped: it did not end within" in result.text


async def test_a_time_limit_that_is_no_number_is_named(
    tools: Tools, stand_in: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("LIB_INSTALL_TIMEOUT", "soon")
    with pytest.raises(ToolFailed, match="LIB_INSTALL_TIMEOUT is 'soon'"):
        await tools.result("uv_run", module="m")


async def test_without_uv_the_user_is_told_how_to_install_it(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ToolFailed, match="uv is not installed") as failure:
        await tools.result("install_python_packages", packages=["requests"])
    assert "pip install uv" in failure.value.hint


# The real one, which looks at no index here


def _wheel(place: Path) -> None:
    """A package that consists of one module."""
    files = {
        "tiny_thing.py": "ANSWER = 42\n",
        "tiny_thing-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-thing\nVersion: 1.0\n",
        "tiny_thing-1.0.dist-info/WHEEL": (
            "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
    }
    record = ""
    for name, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=")
        record += f"{name},sha256={digest.decode()},{len(text)}\n"
    files["tiny_thing-1.0.dist-info/RECORD"] = record + "tiny_thing-1.0.dist-info/RECORD,,\n"
    with zipfile.ZipFile(place, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)


@needs_uv
async def test_a_package_is_installed_and_used_by_uv_run_and_execute_code(
    tools: Tools,
    tools_of: Callable[..., Tools],
    files: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
):
    assert UV is not None
    monkeypatch.setenv("PATH", f"{Path(UV).parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_PYTHON", sys.executable)
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    made = await tools.result("init_python_env")
    assert not made.is_error, made.text
    _wheel(files / "tiny_thing-1.0-py3-none-any.whl")
    added = await tools.result(
        "install_python_packages", packages=["./tiny_thing-1.0-py3-none-any.whl"]
    )
    assert not added.is_error, added.text
    (files / "use.py").write_text("import sys, tiny_thing\nprint(tiny_thing.ANSWER, sys.argv[1:])")
    ran = await tools.result("uv_run", script="use.py", args=["a b"])
    assert "42 ['a b']" in ran.text
    assert not ran.is_error
    code = "import tiny_thing\nprint(tiny_thing.ANSWER)"
    assert "42" in await tools_of("code_executor").text("execute_code", code=code)
