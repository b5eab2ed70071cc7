"""What the 2026-07-28 revision does in its own way, over stdio."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devall.core.messages import ToolCall
from devall.core.ports import Question
from devall.testing.scope import PlainScope
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]
MODERN = str(Path(__file__).parent / "modern_server.py")


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


def source(*faults: str, **config: Any) -> dict[str, Any]:
    args = ["-I", "-S", MODERN, *faults]
    config = {"startup_timeout": 20, **config}
    return {"type": "mcp_local", "config": {"command": sys.executable, "args": args, **config}}


@pytest.mark.parametrize(("protocol", "discovered"), [("auto", 1), ("modern", 0)])
async def test_there_is_no_handshake(
    manager_of: Managers, servers: McpServers, scope: Any, protocol: str, discovered: int
):
    async with manager_of(source(protocol=protocol), servers=servers) as tools:
        counts = json.loads((await tools.call(call("count"), scope)).text)
        assert counts == {"discover": discovered, "list": 1, "initialize": 0}


async def test_a_server_that_starts_slowly_is_not_taken_for_one_that_ignores_discovery(
    manager_of: Managers, servers: McpServers, scope: Any, warned: Any
):
    slow = f"import runpy, time; time.sleep(2.5); runpy.run_path({MODERN!r})"
    config = {"command": sys.executable, "args": ["-I", "-S", "-c", slow], "startup_timeout": 20}
    async with manager_of({"type": "mcp_local", "config": config}, servers=servers) as tools:
        counts = json.loads((await tools.call(call("count"), scope)).text)
    assert counts == {"discover": 1, "list": 1, "initialize": 0}
    assert warned == []


class Person:
    async def ask(self, question: Question) -> str:
        assert "Who are you?" in question.text
        return "Ada"


async def test_a_question_in_the_form_of_a_result_reaches_the_human(
    manager_of: Managers, servers: McpServers, scope: Any, warned: Any
):
    async with manager_of(source(), servers=servers, human=Person()) as tools:
        found = json.loads((await tools.call(call("who"), scope)).text)
    assert found == [{"action": "accept", "content": {"value": "Ada"}}, "opaque"]
    async with manager_of(source(), servers=servers, emit=warned.take) as tools:
        found = json.loads((await tools.call(call("who"), scope)).text)
    assert found == [{"action": "decline"}, "opaque"]
    assert "declined" in warned[0]


async def test_two_questions_at_once_reach_the_callers_they_belong_to(
    manager_of: Managers, servers: McpServers
):
    class Named:
        def __init__(self, name: str) -> None:
            self.name = name

        async def ask(self, question: Question) -> str:
            await asyncio.sleep(0.05)
            return self.name

    async def ask(name: str) -> str:
        async with manager_of(source(), servers=servers, human=Named(name)) as tools:
            return (await tools.call(call("who"), PlainScope(name, f"/{name}@1"))).text

    for found, name in zip(await asyncio.gather(*map(ask, "abc")), "abc", strict=True):
        assert json.loads(found)[0]["content"] == {"value": name}


async def test_only_questions_to_a_human_are_offered_to_the_server(
    manager_of: Managers, servers: McpServers, scope: Any
):
    async with manager_of(source(), servers=servers) as tools:
        found = json.loads((await tools.call(call("capabilities"), scope)).text)
    assert set(found) == {"elicitation"}


# D9
@pytest.mark.parametrize("protocol", ["auto", "modern"])
async def test_changes_are_subscribed_to_and_taken_over(
    manager_of: Managers, servers: McpServers, scope: Any, protocol: str
):
    async with manager_of(source(protocol=protocol), servers=servers) as tools:
        await asyncio.sleep(0.2)  # the subscription is made beside
        await tools.call(call("change"), scope)
        await tools.refresh()
        assert (await tools.call(call("new"), scope)).text == "new called"
        counts = json.loads((await tools.call(call("count"), scope)).text)
        assert counts["list"] <= 3


async def appears(tools: ToolManager, name: str) -> bool:
    """Whether a tool is there after some of the looks that an agent has between its turns."""
    for _ in range(100):
        if name in [spec.name for spec in tools.specs()]:
            return True
        await asyncio.sleep(0.05)
        await tools.refresh()
    return False


@pytest.mark.parametrize(
    ("protocol", "seconds", "lists"), [("auto", "0", 1), ("auto", "1.5", 2), ("modern", "0", 2)]
)
async def test_a_change_before_the_subscription_stands_is_not_missed(
    manager_of: Managers,
    servers: McpServers,
    scope: Any,
    protocol: str,
    seconds: str,
    lists: int,
):
    config = source(f"early={seconds}", protocol=protocol)
    async with manager_of(config, servers=servers) as tools:
        assert await appears(tools, "early")
        counts = json.loads((await tools.call(call("count"), scope)).text)
    assert counts["list"] == lists


async def test_a_subscription_that_the_server_ends_is_asked_for_anew(
    manager_of: Managers, servers: McpServers
):
    async with manager_of(source("ends"), servers=servers) as tools:
        assert await appears(tools, "late")


async def test_what_a_server_logs_is_asked_for_and_kept(
    manager_of: Managers, servers: McpServers, scope: Any, tmp_path: Path
):
    async with manager_of(source(), servers=servers) as tools:
        await tools.call(call("log"), scope)
    (log,) = (tmp_path / "servers").iterdir()
    assert log.read_text() == "[info] asked for debug\n"


@pytest.mark.parametrize(
    ("ttl", "cache_ttl", "lists"), [("60000", 60, 0), ("60000", 0, 1), ("0", 60, 1), ("1", 60, 1)]
)
async def test_a_servers_own_ttl_is_honoured_within_cache_ttl(
    manager_of: Managers, scope: Any, ttl: str, cache_ttl: float, lists: int
):
    async def count() -> int:
        config = source(f"ttl={ttl}", f"case={cache_ttl}", cache_ttl=cache_ttl)
        async with McpServers() as servers, manager_of(config, servers=servers) as tools:
            return json.loads((await tools.call(call("count"), scope)).text)["list"]

    assert await count() == 1
    await asyncio.sleep(0.01)
    assert await count() == lists
