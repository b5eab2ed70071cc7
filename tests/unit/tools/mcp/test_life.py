"""The life of a stdio server: its start, its end, and the times that are promised for both."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devall.core.errors import SetupError
from devall.core.messages import ToolCall
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]
Sources = Callable[..., dict[str, Any]]
HALF = 0.5
"""What the stated times are honoured to, in seconds."""


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


@pytest.fixture(autouse=True)
async def imported(manager_of: Managers, raw_source: Sources) -> None:
    """The library is imported: that takes a second or two, and is nobody's startup time."""
    async with McpServers() as pool, manager_of(raw_source(startup_timeout=50), servers=pool):
        pass


# B1: a loaded machine is slow itself, so the bound is twice the half second that is promised
@pytest.mark.parametrize("fault", ["silent", "ready=60"])
async def test_startup_timeout_holds_to_half_a_second(
    manager_of: Managers, raw_source: Sources, servers: McpServers, fault: str
):
    more = {"wait_for_log": "listening"} if fault != "silent" else {}
    began = time.monotonic()
    with pytest.raises(SetupError, match="startup_timeout of 1 s"):
        async with manager_of(raw_source(fault, startup_timeout=1, **more), servers=servers):
            raise AssertionError
    assert 1 <= time.monotonic() - began < 1 + 2 * HALF


async def test_wait_for_log_is_honoured_to_half_a_second(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    source = raw_source("ready=1", wait_for_log="listening", startup_timeout=20)
    began = time.monotonic()
    async with manager_of(source, servers=servers) as tools:
        ready = time.monotonic() - began
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"
    assert 1 <= ready < 1 + 2 * HALF


PLAIN = """
import sys, time, runpy
print("Server is listening on stdout", flush=True)
sys.argv[1:] = []
runpy.run_path({raw!r}, run_name="__main__")
"""


async def test_wait_for_log_looks_at_stdout_that_is_no_protocol_as_well(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    raw = raw_source()["config"]["args"][-1]
    config = {"command": sys.executable, "args": ["-c", PLAIN.format(raw=raw)]}
    config |= {"wait_for_log": "listening on", "startup_timeout": 20}
    async with manager_of({"type": "mcp_local", "config": config}, servers=servers) as tools:
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"


# B2
@pytest.mark.parametrize("fault", ["exit_on_unknown", "ignore_unknown"])
async def test_a_server_that_does_not_know_discovery_is_found_within_three_seconds(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any, fault: str
):
    async with manager_of(raw_source(fault, startup_timeout=3), servers=servers) as tools:
        first = (await tools.call(call("pid"), scope)).text
        await tools.call(call("die"), scope)
        began = time.monotonic()
        second = (await tools.call(call("pid"), scope)).text
    assert first != second
    assert time.monotonic() - began < 1  # what it does not know is not asked for again


STARTS = """
import pathlib, sys
pathlib.Path(sys.argv[1]).open("a").write("x")
{rest}
"""


# B6
@pytest.mark.parametrize(
    ("rest", "starts"),
    [
        ("sys.exit('no key')", "x"),  # it had not read a byte: discovery is not to blame
        ("sys.stdin.readline(); sys.exit('no key')", "xx"),
    ],
)
async def test_a_server_is_started_again_only_where_discovery_may_have_ended_it(
    manager_of: Managers, servers: McpServers, tmp_path: Path, rest: str, starts: str
):
    told = tmp_path / "starts"
    args = ["-I", "-S", "-c", STARTS.format(rest=rest), str(told)]
    config = {"command": sys.executable, "args": args, "startup_timeout": 20}
    with pytest.raises(SetupError, match=r"exited with code 1 before it was ready(.|\n)*no key"):
        async with manager_of({"type": "mcp_local", "config": config}, servers=servers):
            raise AssertionError
    assert told.read_text() == starts


# B12: looked up on the child's own PATH
async def test_a_command_is_looked_up_on_the_path_that_env_gives(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any, tmp_path: Path
):
    config = raw_source()["config"]
    program = tmp_path / "bin" / "my-server"
    program.parent.mkdir()
    words = " ".join([config["command"], *config["args"]])
    program.write_text(f"#!/bin/sh\nexec {words}\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    source = {"type": "mcp_local", "config": {"command": "my-server", "env": {"PATH": path}}}
    async with manager_of(source, servers=servers) as tools:
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"


@pytest.mark.parametrize("inherit_env", [True, False])
async def test_where_no_other_python_is_there_it_is_the_one_that_runs_devall(
    manager_of: Managers,
    raw_source: Sources,
    servers: McpServers,
    scope: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inherit_env: bool,
):
    monkeypatch.setenv("PATH", str(tmp_path))
    source = raw_source(inherit_env=inherit_env)
    source["config"]["command"] = "python"
    async with manager_of(source, servers=servers) as tools:
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"


# B13
async def test_other_alphabets_pass_whatever_the_locale(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    env = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    async with manager_of(raw_source(env=env), servers=servers) as tools:
        assert (await tools.call(call("echo", text="größe ✓ поиск"), scope)).text == "größe ✓ поиск"


# B15
async def test_a_call_that_finds_no_slot_says_what_the_server_is_busy_with(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    source = raw_source(max_concurrency=1) | {"timeout": 0.4}
    async with manager_of(raw_source(max_concurrency=1), servers=servers) as patient:
        slow = asyncio.create_task(patient.call(call("sleep", seconds=1.5), scope))
        await asyncio.sleep(0.1)
        async with manager_of(source, servers=servers) as tools:
            busy = await tools.call(call("echo", text="x"), scope)
        assert (await slow).text == "slept"
    assert busy.is_error
    assert "is busy with sleep" in busy.text
    assert "echo was not called" in busy.text


async def test_a_server_that_cannot_be_started_again_is_told_and_may_be_tried_once_more(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any, tmp_path: Path
):
    config = raw_source()["config"]
    program = tmp_path / "server.sh"
    program.write_text(f"#!/bin/sh\nexec {' '.join([config['command'], *config['args']])}\n")
    program.chmod(0o755)
    source = {"type": "mcp_local", "config": {"command": str(program)}}
    async with manager_of(source, servers=servers) as tools:
        await tools.call(call("die"), scope)
        program.rename(tmp_path / "away")
        gone = await tools.call(call("echo", text="x"), scope)
        assert gone.is_error
        assert "is not found" in gone.text
        (tmp_path / "away").rename(program)
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"


# B3
async def test_opening_may_be_cancelled_or_timed_out_by_anyone_at_any_time(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    manager = manager_of(raw_source("silent", startup_timeout=20), servers=servers)
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(manager.__aenter__(), 0.3)
    tools = manager_of(raw_source(), servers=servers)
    await asyncio.create_task(tools.__aenter__())
    result = await asyncio.create_task(tools.call(call("echo", text="x"), scope))
    assert result.text == "x"
    await asyncio.create_task(tools.__aexit__(None, None, None))
    await asyncio.create_task(servers.aclose())


# B8
async def test_a_server_lives_as_long_as_its_run_and_not_as_a_node(
    manager_of: Managers, raw_source: Sources, scope: Any, watch: Any
):
    async with McpServers() as pool:
        async with manager_of(raw_source(), servers=pool) as tools:
            pid = int((await tools.call(call("pid"), scope)).text)
        assert watch.is_alive(pid)
    assert not watch.is_alive(pid)


# C7, E7 over stdio: no cap of its own, and not held up by what nobody reads
async def test_a_server_that_writes_much_to_stderr_is_not_held_up(
    manager_of: Managers, servers: McpServers, scope: Any, raw_source: Sources
):
    raw = raw_source()["config"]["args"][-1]
    code = "import sys, runpy; sys.stderr.write('e' * 3_000_000 + chr(10)); sys.stderr.flush()\n"
    code += f"sys.argv[1:] = []; runpy.run_path({raw!r}, run_name='__main__')"
    config = {"command": sys.executable, "args": ["-c", code], "startup_timeout": 20}
    async with manager_of({"type": "mcp_local", "config": config}, servers=servers) as tools:
        big = "x" * 5_000_000
        result = await tools.call(call("echo", text=big), scope)
    assert "5000000 characters" in result.text
