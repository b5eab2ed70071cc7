"""Calls of MCP tools: the figures, and what is measured: `python -m bench.tools WHAT WAY`."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.figures import Row, ratio
from bench.processes import Worker, side_by_side

SERVER = str(Path(__file__).with_name("tool_server.py"))
CALLS = 200
TURN = 8
SECONDS = 0.2

Once = Callable[[str], Awaitable[float]]


@contextmanager
def ways(env: Mapping[str, str]) -> Generator[dict[str, str]]:
    """How to reach a server: by a URL, or by starting it."""
    with Worker("bench.tools", "server", "", env=env) as server:
        yield {"HTTP": server.read(), "stdio": "stdio"}


def calls(env: Mapping[str, str]) -> Iterator[Row]:
    """200 calls of a tool that says its argument again, one after the other, by `ToolManager`,
    as an agent has them : by a bare `fastmcp.Client`. Each has one session, which is open.
    """
    with ways(env) as found:
        for name, way in found.items():
            with Worker("bench.tools", "calls", way, env=env) as worker:
                names = ("devall", "devall-cpu", "bare", "bare-cpu")
                took = side_by_side({what: (worker, what) for what in names}, 5)
            yield ratio(f"{name}: wall time", took["devall"], took["bare"], 1.3)
            yield ratio(f"{name}: CPU time of the client", took["devall-cpu"], took["bare-cpu"])


def turns(env: Mapping[str, str]) -> Iterator[Row]:
    """Eight calls of 200 ms in one turn of an agent, from the first's start to the last's end :
    200 ms. Beside it what a bare client's eight calls at once take with the same server.
    """
    with ways(env) as found:
        for name, way in found.items():
            with Worker("bench.tools", "turn", way, env=env) as worker:
                took = side_by_side({who: (worker, who) for who in ("devall", "bare")}, 9)
            yield ratio(name, took["devall"], SECONDS, 1.3)
            yield ratio(f"{name}, a bare `fastmcp.Client`", took["bare"], SECONDS)


def sessions(env: Mapping[str, str]) -> Iterator[Row]:
    """How often a server is asked to begin (`server/discover`, or `initialize`) in a run of four
    agents that call it.
    """
    with ways(env) as found:
        for name, way in found.items():
            for protocol in ("auto", "legacy"):
                with Worker("bench.tools", "sessions", way, env=env) as worker:
                    times = worker.measure(protocol)
                yield Row(f"{name}, `protocol: {protocol}`", f"{times:g}", "1", times == 1)


SECTIONS = {
    "200 calls of an MCP tool": calls,
    "Eight MCP calls in one turn": turns,
    "MCP sessions of a run": sessions,
}


def source(way: str, protocol: str = "auto") -> dict[str, Any]:
    """The source of tools."""
    config: dict[str, Any] = {"protocol": protocol}
    if way == "stdio":
        config |= {"command": sys.executable, "args": [SERVER], "startup_timeout": 60}
        return {"type": "mcp_local", "config": config}
    return {"type": "mcp_remote", "config": config | {"server": way, "timeout": 60}}


def bare_client(way: str) -> Any:
    """The library's client with nothing around it."""
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport

    if way == "stdio":
        return Client(StdioTransport(sys.executable, [SERVER], keep_alive=False))
    return Client(way)


async def calls_once(stack: AsyncExitStack, way: str) -> Once:
    """Wall time of 200 calls (`devall`, `bare`); `devall-cpu`, `bare-cpu`: what CPU time they took."""
    import devall

    tools = await stack.enter_async_context(devall.ToolManager(source(way)))
    client = await stack.enter_async_context(bare_client(way))
    cpu: dict[str, float] = {}

    async def once(what: str) -> float:
        who, _, is_asked = what.partition("-")
        if is_asked:
            return cpu[who]
        began, cpu_began = time.perf_counter(), time.process_time()
        for number in range(CALLS):
            text = f"number {number}"
            if what == "bare":
                assert (await client.call_tool("echo", {"text": text})).data == text
            else:
                assert (await tools.call("echo", {"text": text})).text == text
        cpu[what] = time.process_time() - cpu_began
        return time.perf_counter() - began

    return once


async def turn_once(_: AsyncExitStack, way: str) -> Once:
    """Wall time of the calls of one turn (`devall`), and of a bare client's at once (`bare`)."""
    from devall.core.events import Event, ToolCallFinished, ToolCallStarted

    async def once(who: str) -> float:
        if who == "bare":
            async with bare_client(way) as client:
                await client.list_tools()
                began = time.perf_counter()
                given = {"seconds": SECONDS}
                await asyncio.gather(*(client.call_tool("wait", given) for _ in range(TURN)))
                return time.perf_counter() - began
        events: list[Event] = []
        call = {"name": "wait", "arguments": {"seconds": SECONDS}}
        await _run(source(way), {"a": [{"tool_calls": [call] * TURN}, "done"]}, events.append)
        starts = [event.at for event in events if isinstance(event, ToolCallStarted)]
        ends = [event.at for event in events if isinstance(event, ToolCallFinished)]
        assert len(starts) == len(ends) == TURN
        return max(ends) - min(starts)

    return once


async def sessions_once(_: AsyncExitStack, way: str) -> Once:
    """How often a run begins a conversation, by `protocol`."""

    async def once(protocol: str) -> float:
        script = {
            name: [{"tool_calls": [{"name": "echo", "arguments": {"text": name}}]}, "done"]
            for name in "abc"
        }
        script["d"] = [{"tool_calls": [{"name": "requests"}]}, "done"]
        bodies = await _run(source(way, protocol), script)
        asked = json.loads(bodies["d"][-1].messages[-1].content)
        assert asked["tools/call"] == 4, asked
        return asked.get("initialize", 0) + asked.get("server/discover", 0)

    return once


async def _run(
    tools: dict[str, Any], script: dict[str, list[Any]], on_event: Any = None
) -> dict[str, list[Any]]:
    """A run of agents, one after the other; what their models were asked."""
    import devall
    from devall.loading.loader import load_mapping
    from devall.testing.scripted_model import ScriptedModels

    config = {"provider": "openai", "tooling": tools}
    nodes = [{"id": n, "type": "agent", "config": config | {"name": n}} for n in script]
    names = list(script)
    edges = [{"from": a, "to": b} for a, b in pairwise(names)]
    models = ScriptedModels(script)
    loaded = load_mapping({"graph": {"start": names[0], "nodes": nodes, "edges": edges}})
    result = await devall.run(loaded, task="x", model_source=models, on_event=on_event)
    assert result.answer == "done", result.outcome
    models.check_all_used()
    return models.requests


WORK = {"calls": calls_once, "turn": turn_once, "sessions": sessions_once}


def serve() -> None:
    """A server over HTTP, in a child process, until standard input ends."""
    import subprocess

    with subprocess.Popen([sys.executable, SERVER, "--http"], stdin=subprocess.DEVNULL) as server:
        sys.stdin.read()
        server.terminate()


async def main(what: str, way: str) -> None:
    """Do one piece of work for each line."""
    async with AsyncExitStack() as stack:
        once = await WORK[what](stack, way)
        while line := await asyncio.to_thread(sys.stdin.readline):
            print(await once(line.strip()), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve()
    else:
        asyncio.run(main(*sys.argv[1:]))
