"""The python node: real child processes, in the real sandbox where there is one."""

from __future__ import annotations

import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from devall.config.nodes import PythonConfig
from devall.core.errors import SetupError
from devall.core.messages import user
from devall.nodes.python import FAILED, PythonExecutor
from devall.testing.scope import PlainScope
from devall.workspace import Workspace

BWRAP = shutil.which("bwrap")
PROBE = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "true"]
CLOSES_IN = BWRAP is not None and subprocess.run([BWRAP, *PROBE], check=False).returncode == 0

needs_sandbox = pytest.mark.skipif(
    not CLOSES_IN, reason="bubblewrap (bwrap) is not installed, or this container forbids it"
)
WRITE_OUTSIDE = """
from pathlib import Path
Path("inside.txt").write_text("x")
Path({place!r}).write_text("x")
"""
CONNECT = "import socket; socket.create_connection(('127.0.0.1', {port}), 2).close(); print('open')"


async def run(code: str, workspace: Workspace, **config: object) -> str:
    executor = PythonExecutor("P", PythonConfig.model_validate(config), workspace)
    return (await executor.run(PlainScope("P"), [user(code)])).outputs[0].text


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "run")


@pytest.fixture
def outside() -> Iterator[Path]:
    """A file elsewhere, in a folder that everyone may write."""
    place = Path(f"/var/tmp/devall-test-{secrets.token_hex(8)}")
    yield place
    place.unlink(missing_ok=True)


@needs_sandbox
async def test_code_writes_in_the_workspace_and_nowhere_else(workspace: Workspace, outside: Path):
    text = await run(WRITE_OUTSIDE.format(place=str(outside)), workspace)
    assert text.startswith(FAILED)
    assert "it ran in a sandbox and without network (DEVALL_CODE_NETWORK=1" in text
    assert (workspace.files / "inside.txt").read_text() == "x"
    assert not outside.exists()


async def test_without_the_sandbox_code_may_do_what_devall_may(
    workspace: Workspace, outside: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "off")
    assert not await run(WRITE_OUTSIDE.format(place=str(outside)), workspace)
    assert outside.exists()


@needs_sandbox
async def test_code_has_the_network_where_the_user_says_so(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as server:
        code = CONNECT.format(port=server.getsockname()[1])
        assert (await run(code, workspace)).startswith(FAILED)
        monkeypatch.setenv("DEVALL_CODE_NETWORK", "1")
        assert await run(code, workspace) == "open\n"


async def test_where_the_sandbox_is_required_nothing_runs_without_it(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "required")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SetupError, match="code runs only in a sandbox here") as caught:
        await run("open('ran', 'w')", workspace)
    assert caught.value.exit_code == 4
    assert not (workspace.files / "ran").exists()


@pytest.mark.parametrize("wanted", ["off", "auto"])
async def test_an_interpreter_that_is_not_there_is_told(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, wanted: str
):
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", wanted)
    with pytest.raises(SetupError, match="interpreter no-such cannot be started"):
        await run("", workspace, interpreter="no-such")


@pytest.mark.parametrize("wanted", ["off", "auto"])
async def test_an_interpreter_may_lie_anywhere_and_gets_its_arguments_and_variables(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wanted: str
):
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", wanted)
    monkeypatch.setenv("MY_API_KEY", "s3ntinel")
    program = tmp_path / "own/bin/my-python"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    code = "import os, sys; print(sys.argv[1:], os.environ['OWN'], os.environ.get('MY_API_KEY'))"
    text = await run(code, workspace, interpreter=str(program), args=["a b"], env={"OWN": "1"})
    assert text == "['a b'] 1 None\n"


@pytest.mark.parametrize("wanted", ["off", "auto"])
async def test_code_that_takes_too_long_is_ended_with_what_it_has_said(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch, wanted: str
):
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", wanted)
    code = "import time\nprint('begun', flush=True)\ntime.sleep(60)"
    text = await run(code, workspace, timeout_seconds=0.7)
    assert text.startswith(f"{FAILED}\ntimed out after 0.7 s\nbegun")
