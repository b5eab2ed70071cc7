from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from devall.core.errors import SetupError, ToolArguments, ToolFailed
from devall.workspace import Workspace

if TYPE_CHECKING:
    from tests.unit.functions.conftest import Tools

# A test without bubblewrap is a test of the fall-back; with it, of the sandbox.
BWRAP = shutil.which("bwrap")
PROBE = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--unshare-all", "true"]
CLOSES_IN = BWRAP is not None and subprocess.run([BWRAP, *PROBE], check=False).returncode == 0

needs_sandbox = pytest.mark.skipif(
    not CLOSES_IN, reason="bubblewrap (bwrap) is not installed, or this container forbids it"
)


@pytest.fixture
def tools(tools_of: Callable[..., Tools]) -> Tools:
    return tools_of("code_executor")


@pytest.fixture(params=["off", "auto"])
def both_ways(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Without the sandbox, and with it where there is one."""
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", request.param)
    return request.param


def without_note(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if not line.startswith("[not in a sandbox"))


async def test_output_error_output_and_exit_code_are_told(tools: Tools, both_ways: str):
    code = "import sys\nprint('größer')\nprint('oh', file=sys.stderr)\nsys.exit(3)"
    result = await tools.result("execute_code", code=code)
    assert without_note(result.text) == ("exit code: 3\n--- stdout ---\ngrößer\n--- stderr ---\noh")
    assert result.is_error


async def test_code_that_says_nothing_is_said_to_have_said_nothing(tools: Tools, both_ways: str):
    result = await tools.result("execute_code", code="pass")
    assert without_note(result.text) == "exit code: 0\n(it printed nothing)"
    assert not result.is_error


async def test_a_traceback_shows_the_line_and_is_the_same_each_time(tools: Tools):
    code = "x = 1\nraise ValueError('no')\n"
    first = await tools.text("execute_code", code=code)
    assert 'File "code.py", line 2' in first
    assert "raise ValueError('no')" in first
    assert await tools.text("execute_code", code=code) == first


async def test_files_stay_and_are_named(tools: Tools, files: Path, both_ways: str):
    (files / "in.txt").write_text("read")
    (files / "helper.py").write_text("def shout(text): return text.upper()\n")
    code = (
        "import helper, os\nos.mkdir('out')\n"
        "open('out/a.txt', 'w').write(helper.shout(open('in.txt').read()))"
    )
    text = await tools.text("execute_code", code=code)
    assert "[files made or changed: out/a.txt]" in text
    assert (files / "out/a.txt").read_text() == "READ"
    assert not [each for each in files.iterdir() if each.name.startswith(".code")]


async def test_input_finds_no_keyboard(tools: Tools):
    assert "EOFError" in await tools.text("execute_code", code="input()")


async def test_code_that_takes_too_long_is_stopped_with_what_it_has_said(
    tools: Tools, both_ways: str
):
    code = "import time\nprint('begun')\ntime.sleep(60)"
    result = await tools.result("execute_code", code=code, time_out=1)
    assert without_note(result.text) == (
        "stopped: it did not end within 1 s\n--- stdout ---\nbegun"
    )
    assert result.is_error


async def test_the_sources_time_limit_stops_code_that_never_yields(
    tools_of: Callable[..., Tools], files: Path
):
    code = "print('begun', flush=True)\nwhile True: pass"
    began = time.monotonic()
    result = await tools_of("code_executor", timeout=1).result("execute_code", code=code)
    assert time.monotonic() - began < 5
    assert result.is_error
    assert result.text.startswith(
        "stopped: it did not end within 1 s\n--- stdout ---\nbegun\n[`timeout` of the tool's source"
    )
    assert not [each for each in files.iterdir() if each.name.startswith(".code")]


DAEMON = """
import subprocess, sys
for session in (True, False):
    subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(400)", "{mark}"], start_new_session=session
    )
{then}
"""


@pytest.mark.parametrize("then", ["", "raise SystemExit(1)", "import time; time.sleep(60)"])
async def test_nothing_that_code_starts_is_left_not_even_a_daemon(
    tools: Tools, both_ways: str, tmp_path: Path, then: str
):
    mark = tmp_path.name  # unlike any other on the machine
    code = DAEMON.format(mark=mark, then=then)
    await tools.result("execute_code", code=code, time_out=2)
    assert mark not in _commands()


async def test_cancelling_ends_all_of_it(tools: Tools, both_ways: str, files: Path, tmp_path: Path):
    mark = tmp_path.name
    code = DAEMON.format(mark=mark, then="open('begun', 'w'); import time; time.sleep(60)")
    task = asyncio.create_task(tools.result("execute_code", code=code))
    while not (files / "begun").exists():
        await asyncio.sleep(0.02)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()
    assert mark not in _commands()


def _commands() -> str:
    """The command lines of all processes."""
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_text(errors="replace"))
        except OSError:
            continue
    return "\n".join(found)


async def test_memory_has_a_bound(tools: Tools, both_ways: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("DEVALL_CODE_MEMORY_MB", "300")
    result = await tools.result("execute_code", code="x = bytearray(400 << 20)\nprint(len(x))")
    assert "MemoryError" in result.text
    assert result.is_error
    monkeypatch.setenv("DEVALL_CODE_MEMORY_MB", "0")
    result = await tools.result("execute_code", code="x = bytearray(400 << 20)\nprint(len(x))")
    assert "419430400" in result.text
    monkeypatch.setenv("DEVALL_CODE_MEMORY_MB", "much")
    with pytest.raises((SetupError, ToolFailed), match="DEVALL_CODE_MEMORY_MB"):
        await tools.result("execute_code", code="pass")


async def test_a_file_has_a_bound(tools: Tools, files: Path):
    code = "f = open('big', 'wb')\nf.seek(3 << 30)\nf.write(b'x')\nf.flush()"
    assert "File too large" in await tools.text("execute_code", code=code)


async def test_beginning_and_end_of_a_flood_are_kept(tools: Tools):
    code = "print('first')\nfor n in range(100_000): print('line', n)\nprint('last')"
    text = await tools.text("execute_code", code=code)
    assert len(text) < 300_000
    assert "first" in text
    assert text.splitlines()[-2 if "[" in text.splitlines()[-1] else -1] == "last"
    assert "bytes left out" in text


async def test_secrets_of_devall_do_not_reach_code(
    tools: Tools, both_ways: str, monkeypatch: pytest.MonkeyPatch
):
    names = ["API_KEY", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "X_AUTH_TOKEN"]
    for name in names:
        monkeypatch.setenv(name, "s3ntinel")
    monkeypatch.setenv("HARMLESS", "kept")
    text = await tools.text("execute_code", code="import os\nprint(dict(os.environ))")
    assert "s3ntinel" not in text
    assert "'HARMLESS': 'kept'" in text


async def test_the_workspaces_own_python_is_taken(tools: Tools, files: Path):
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(files / ".venv")], check=True
    )
    code = "import sys\nprint(sys.prefix)"
    assert str(files / ".venv") in await tools.text("execute_code", code=code)


async def test_calls_at_the_same_time_do_not_disturb_each_other(tools: Tools):
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(tools.text("execute_code", code=f"print({n} * 1000)"))
            for n in range(5)
        ]
    assert [str(n * 1000) in task.result() for n, task in enumerate(tasks)] == [True] * 5


async def test_arguments_out_of_bounds_are_refused(tools: Tools):
    with pytest.raises(ToolArguments, match="time_out"):
        await tools.result("execute_code", code="pass", time_out=0)


# The sandbox


@needs_sandbox
async def test_in_the_sandbox_only_the_workspace_can_be_written(
    tools: Tools, files: Path, tmp_path: Path
):
    (tmp_path / "outside").write_text("precious")
    code = f"""
import os, pathlib
pathlib.Path("inside").write_text("inside")
for place in ({str(Path.home() / "x")!r}, "/usr/x", "/var/tmp/x"):
    try:
        pathlib.Path(place).write_text("x")
        print("wrote", place)
    except OSError as error:
        print(type(error).__name__)
pathlib.Path("/tmp/own").write_text("gone afterwards")
print(os.path.exists({str(tmp_path / "outside")!r}))
"""
    text = await tools.text("execute_code", code=code)
    assert "wrote" not in text
    assert text.count("OSError") == 3
    assert "False" in text
    assert (files / "inside").read_text() == "inside"
    assert not Path("/tmp/own").exists()


@needs_sandbox
async def test_in_the_sandbox_other_processes_are_not_to_be_seen(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    code = """
import os, pathlib
pids = [int(p.name) for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()]
print(len(pids) < 10)
print(b"s3ntinel" in b"".join((pathlib.Path(f"/proc/{p}/environ")).read_bytes() for p in pids))
"""
    child = subprocess.Popen(["sleep", "60"], env={"API_KEY": "s3ntinel"})
    try:
        assert "True\nFalse" in await tools.text("execute_code", code=code)
    finally:
        child.kill()
        child.wait()


CONNECT = """
import socket
try:
    socket.create_connection(("127.0.0.1", {port}), 3).close()
    print("connected")
except OSError as error:
    print("refused")
"""


@needs_sandbox
async def test_in_the_sandbox_there_is_a_network_only_if_the_user_gives_it(
    tools: Tools, monkeypatch: pytest.MonkeyPatch
):
    server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        code = CONNECT.format(port=server.sockets[0].getsockname()[1])
        assert "refused" in await tools.text("execute_code", code=code)
        monkeypatch.setenv("DEVALL_CODE_NETWORK", "1")
        assert "connected" in await tools.text("execute_code", code=code)


async def test_without_bubblewrap_code_runs_with_a_note_unless_the_sandbox_is_required(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))
    text = await tools.text("execute_code", code="print(1)")
    assert text == (
        "exit code: 0\n--- stdout ---\n1\n[not in a sandbox: bubblewrap (bwrap) is not installed]"
    )
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "required")
    with pytest.raises(ToolFailed, match="only in a sandbox"):
        await tools.result("execute_code", code="print(1)")


async def test_a_bubblewrap_that_does_not_work_is_noted_with_its_reason(
    tools: Tools, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    fake = tmp_path / "bwrap"
    fake.write_text("#!/bin/sh\necho 'bwrap: no permissions' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    text = await tools.text("execute_code", code="print(1)")
    assert "[not in a sandbox: bubblewrap does not work here: bwrap: no permissions]" in text


async def test_code_needs_a_run(tools_of: Callable[..., Tools], workspace: Workspace):
    with pytest.raises(ToolFailed, match="workspace"):
        await tools_of("code_executor", outside=True).result("execute_code", code="pass")
