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
from devall.core.events import ToolProgress
from devall.core.messages import ToolCall
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]
Sources = Callable[..., dict[str, Any]]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


async def test_tools_are_listed_and_called(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    source = raw_source() | {"prefix": "raw"}
    async with manager_of(source, servers=servers) as tools:
        spec = tools.specs()[0]
        assert (spec.name, spec.description) == ("raw_echo", "The echo tool.")
        assert spec.metadata["source"] == "mcp"
        assert spec.metadata["mode"] == "local"
        assert spec.metadata["original_name"] == "echo"
        assert (await tools.call(call("raw_echo", text="città"), scope)).text == "città"


async def test_a_failure_of_the_tool_is_an_error_result(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source(), servers=servers) as tools:
        failed = await tools.call(call("fail"), scope)
        assert failed.is_error
        assert failed.text == "disk full"
        refused = await tools.call(call("refuse"), scope)
        assert refused.is_error
        assert "no tools/call here" in refused.text


async def test_arguments_are_checked_against_the_servers_own_schema(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source(), servers=servers) as tools:
        result = await tools.call(call("echo", text=5), scope)
        assert result.is_error
        assert "text: 5 is not of type 'string'" in result.text
        assert json.loads((await tools.call(call("count"), scope)).text)["call"] == 1


async def test_a_silent_server_fails_within_its_startup_timeout(
    manager_of: Managers, raw_source: Sources, servers: McpServers
):
    source = raw_source("silent", startup_timeout=1)
    async with manager_of():  # the library is imported
        pass
    began = time.monotonic()
    with pytest.raises(SetupError, match="startup_timeout of 1 s") as caught:
        async with manager_of(source, servers=servers):
            raise AssertionError
    assert "raw_server.py silent" in str(caught.value)
    assert time.monotonic() - began < 8


async def test_a_server_that_exits_at_start_says_why(
    manager_of: Managers, raw_source: Sources, servers: McpServers
):
    with pytest.raises(SetupError) as caught:
        async with manager_of(raw_source("exit"), servers=servers):
            raise AssertionError
    assert "exited with code 3" in str(caught.value)
    assert "boom: missing API key" in str(caught.value)


async def test_a_command_or_folder_that_is_not_there_is_named(
    manager_of: Managers, raw_source: Sources, servers: McpServers
):
    config = {"command": "no-such-command-anywhere"}
    with pytest.raises(SetupError, match="`no-such-command-anywhere` is not found"):
        async with manager_of({"type": "mcp_local", "config": config}, servers=servers):
            raise AssertionError
    with pytest.raises(SetupError, match=r"no folder .*nowhere"):
        async with manager_of(raw_source(cwd="nowhere"), servers=servers):
            raise AssertionError


@pytest.mark.parametrize("fault", ["exit_on_unknown", "ignore_unknown"])
async def test_auto_recovers_from_a_server_that_does_not_know_discovery(
    manager_of: Managers,
    raw_source: Sources,
    servers: McpServers,
    scope: Any,
    warned: list[str],
    fault: str,
):
    async with manager_of(raw_source(fault, startup_timeout=20), servers=servers) as tools:
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"
    assert len(warned) == 1
    assert "protocol: legacy" in warned[0]


async def test_legacy_does_not_ask_for_discovery(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any, warned: list[str]
):
    source = raw_source("exit_on_unknown", protocol="legacy")
    async with manager_of(source, servers=servers) as tools:
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"
    assert warned == []


async def test_text_and_bytes_on_stdout_break_nothing(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any, warned: list[str]
):
    async with manager_of(raw_source("banner"), servers=servers) as tools:
        assert (await tools.call(call("odd"), scope)).text == "still here"
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"
    assert len(warned) == 1
    assert "Server started" in warned[0]


async def test_all_pages_are_read_and_duplicates_and_malformed_tools_spoil_nothing(
    manager_of: Managers, raw_source: Sources, servers: McpServers, warned: list[str]
):
    faults = ("pages", "duplicate", "malformed")
    async with manager_of(raw_source(*faults), servers=servers, emit=warned.take) as tools:
        names = [s.name for s in tools.specs()]
    assert len(names) == 11
    assert names[:3] == ["echo", "sleep", "fail"]
    assert tools.specs() == ()
    assert "more than one tool of a name (`echo`)" in warned[1]
    assert "left out: number 2" in warned[0]


async def test_the_environment_is_merged_and_can_be_kept_away(
    manager_of: Managers,
    raw_source: Sources,
    servers: McpServers,
    scope: Any,
    tmp_path: Path,
):
    os.environ["DEVALL_TEST_MARK"] = "seen"
    (tmp_path / "here").mkdir()
    try:
        for inherit in (True, False):
            source = raw_source(env={"OWN": "1"}, inherit_env=inherit, cwd="here")
            async with manager_of(source, servers=servers) as tools:
                found = json.loads((await tools.call(call("env"), scope)).text)
                assert found["env"]["OWN"] == "1"
                own = Path(sys.executable).parent
                assert found["env"]["PATH"] == f"{os.environ['PATH']}{os.pathsep}{own}"
                assert ("DEVALL_TEST_MARK" in found["env"]) is inherit
                assert found["cwd"] == str(tmp_path / "here")
    finally:
        del os.environ["DEVALL_TEST_MARK"]


async def test_wait_for_log_holds_the_handshake_back(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any, tmp_path: Path
):
    source = raw_source("ready=0.3", wait_for_log="^listening", startup_timeout=20)
    async with manager_of(source, servers=servers) as tools:
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"
    (log,) = (tmp_path / "servers").iterdir()
    assert log.read_text() == "listening now\n"
    never = raw_source("ready=0", wait_for_log="never", startup_timeout=1)
    with pytest.raises(SetupError, match=r"wait_for_log: never(.|\n)*listening now"):
        async with manager_of(never, servers=servers):
            raise AssertionError


async def test_calls_run_at_once_and_a_slow_one_holds_up_nobody(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source(), servers=servers) as tools:
        slow = asyncio.create_task(tools.call(call("sleep", seconds=3), scope))
        await asyncio.sleep(0.05)
        quick = await asyncio.gather(
            *(tools.call(call("sleep", seconds=0.2), scope) for _ in range(10))
        )
        assert [r.text for r in quick] == ["slept"] * 10
        assert not slow.done()
        slow.cancel()


async def test_max_concurrency_bounds_the_calls_at_once(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    source = raw_source(max_concurrency=1) | {"timeout": 0.6}
    async with manager_of(source, servers=servers) as tools:
        results = await asyncio.gather(
            *(tools.call(call("sleep", seconds=0.4), scope) for _ in range(3))
        )
    assert [r.is_error for r in results] == [False, False, True]
    assert "busy" in results[2].text


async def test_a_timeout_is_an_unknown_outcome_and_the_server_hears_of_it(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source() | {"timeout": 0.2}, servers=servers) as tools:
        result = await tools.call(call("sleep", seconds=1), scope)
        assert result.is_error
        assert "0.2 s" in result.text
        assert "unknown" in result.text
        assert len(json.loads((await tools.call(call("cancelled"), scope)).text)) == 1
        assert (await tools.call(call("echo", text="x"), scope)).text == "x"


async def test_a_cancelled_call_is_told_to_the_server_within_a_second(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source(), servers=servers) as tools:
        task = asyncio.create_task(tools.call(call("sleep", seconds=5), scope))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        task.cancel()
        await asyncio.wait({task})
        assert task.cancelled()
        cancelled: list[int] = []
        while not cancelled and time.monotonic() - began < 3:
            cancelled = json.loads((await tools.call(call("cancelled"), scope)).text)
        assert len(cancelled) == 1


async def test_progress_becomes_an_event(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source(), servers=servers) as tools:
        await tools.call(call("sleep", seconds=0.2), scope)
    (event,) = scope.events
    assert isinstance(event, ToolProgress)
    assert (event.call_id, event.progress, event.total, event.message) == ("c1", 1, 2, "half")


async def test_a_server_that_dies_fails_its_calls_and_is_started_again(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    async with manager_of(raw_source(), servers=servers) as tools:
        before = (await tools.call(call("pid"), scope)).text
        pending = asyncio.create_task(tools.call(call("sleep", seconds=9), scope))
        await asyncio.sleep(0.05)
        died = await tools.call(call("die"), scope)
        assert died.is_error
        assert "exited with code 7" in died.text
        assert "out of memory" in died.text
        assert (await pending).is_error
        after = (await tools.call(call("pid"), scope)).text
        assert after != before


async def test_nodes_with_the_same_configuration_share_one_process(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    managers = [manager_of(raw_source(), servers=servers) for _ in range(6)]
    await asyncio.gather(*(m.__aenter__() for m in managers))
    await managers[0].__aexit__(None, None, None)  # the first to finish closes nothing
    pids = {(await m.call(call("pid"), scope)).text for m in managers[1:]}
    assert len(pids) == 1
    async with manager_of(raw_source(env={"OTHER": "1"}), servers=servers) as other:
        assert (await other.call(call("pid"), scope)).text not in pids
    counts = json.loads((await managers[1].call(call("count"), scope)).text)
    assert counts["initialize"] == 1


async def test_nobody_who_is_cancelled_takes_the_server_from_another(
    manager_of: Managers, raw_source: Sources, servers: McpServers, scope: Any
):
    source = raw_source("ready=0.3", wait_for_log="listening", startup_timeout=20)
    first = asyncio.create_task(manager_of(source, servers=servers).__aenter__())
    second = asyncio.create_task(manager_of(source, servers=servers).__aenter__())
    await asyncio.sleep(0.1)
    first.cancel()
    tools = await second
    assert (await tools.call(call("echo", text="x"), scope)).text == "x"


async def test_closing_ends_what_a_server_has_started_and_one_that_is_deaf(
    manager_of: Managers, raw_source: Sources, scope: Any, watch: Any
):
    started = set(watch.children_of(os.getpid()))
    async with McpServers() as pool:
        sources = [raw_source("orphan"), raw_source("deaf", shutdown_grace=0.2) | {"prefix": "d"}]
        async with manager_of(*sources, servers=pool) as tools:
            grandchild = int((await tools.call(call("spawn"), scope)).text)
            children = watch.children_of(os.getpid()) - started
            assert {grandchild} < children
            assert len(children) == 5  # two servers, two sleeps, the watchdog
    assert not [pid for pid in children if watch.is_alive(pid)]


async def test_closing_is_finished_even_where_it_is_cancelled(
    manager_of: Managers, raw_source: Sources, scope: Any, watch: Any
):
    pool = McpServers()
    async with manager_of(raw_source("deaf", shutdown_grace=0.3), servers=pool) as tools:
        pid = int((await tools.call(call("pid"), scope)).text)
    closing = asyncio.create_task(pool.aclose())
    await asyncio.sleep(0.05)
    closing.cancel()
    await asyncio.wait({closing})
    assert closing.cancelled()
    assert not watch.is_alive(pid)


async def test_a_closed_pool_starts_nothing(manager_of: Managers, raw_source: Sources):
    pool = McpServers()
    await pool.aclose()
    with pytest.raises(SetupError, match="over"):
        manager_of(raw_source(), servers=pool)


FASTMCP = """
from fastmcp import FastMCP
mcp = FastMCP("stdio")
@mcp.tool
def add(a: int, b: int) -> int:
    "Add up."
    return a + b
mcp.run(show_banner=False)
"""


@pytest.mark.slow
async def test_a_fastmcp_server_is_spoken_to_over_stdio(
    manager_of: Managers, servers: McpServers, scope: Any
):
    config = {"command": sys.executable, "args": ["-c", FASTMCP], "startup_timeout": 50}
    async with manager_of({"type": "mcp_local", "config": config}, servers=servers) as tools:
        assert (await tools.call(call("add", a=1, b=2), scope)).text == "3"


async def test_a_server_of_another_event_loop_is_refused_and_never_hangs(
    manager_of: Managers, raw_source: Sources, servers: McpServers
):
    async with manager_of(raw_source(), servers=servers):
        other = manager_of(raw_source(), servers=servers)

        def elsewhere() -> None:
            with pytest.raises(SetupError, match="another event loop"):
                asyncio.run(other.__aenter__())

        await asyncio.to_thread(elsewhere)
