"""Whole runs of agents with MCP servers, good and odd: what the model sees, and what is left."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.events import ToolProgress, Warned
from devall.journal.memory import MemoryJournal
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

SERVERS = Path(__file__).parents[1] / "unit/tools/mcp"
ODD = str(SERVERS / "odd_server.py")
RAW = str(SERVERS / "raw_server.py")


def local(script: str, *faults: str, **source: Any) -> dict[str, Any]:
    config = {"command": sys.executable, "args": ["-I", "-S", script, *faults]}
    config |= {"startup_timeout": 20, "protocol": "legacy"} | source.pop("config", {})
    return {"type": "mcp_local", "config": config, **source}


def agent(name: str, *sources: dict[str, Any], **config: Any) -> dict[str, Any]:
    base = {"provider": "openai", "name": name.lower(), "retry": {"enabled": False}}
    return {"id": name, "type": "agent", "config": base | config | {"tooling": list(sources)}}


def workflow(*nodes: dict[str, Any], edges: list[dict[str, Any]] | None = None) -> LoadedWorkflow:
    start = [node["id"] for node in nodes if not edges] or nodes[0]["id"]
    data = {"graph": {"start": start, "nodes": list(nodes), "edges": edges or []}}
    return load_mapping(data, folder=Path.cwd())


def calls(*names: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments} for name in names]}


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


def offered(body: dict[str, Any]) -> list[str]:
    return [tool["function"]["name"] for tool in body.get("tools", ())]


# D9
async def test_a_change_of_the_tools_is_seen_in_the_next_turn(use) -> None:
    script = {"a": [calls("change", kind="remove"), calls("weird"), calls("new_remove"), "done"]}
    recorder = Recorder()
    async with ChatServer(script) as server:
        use(server)
        result = await devall.run(workflow(agent("A", local(ODD))), on_event=recorder)
        bodies = server.calls["a"]
    assert result.answer == "done"
    assert "weird" in offered(bodies[0])
    assert "new_remove" not in offered(bodies[0])
    for body in bodies[1:]:
        assert "weird" not in offered(body)
        assert "new_remove" in offered(body)
    assert "no longer available" in bodies[2]["messages"][-1]["content"]
    assert bodies[3]["messages"][-1]["content"] == "new_remove called"
    (warned,) = [e for e in recorder.events if isinstance(e, Warned) and e.code == "tools_changed"]
    assert "added new_remove; gone weird" in warned.message


async def test_a_run_that_is_replayed_offers_in_each_turn_what_it_offered_before(
    use, workspace: Path
) -> None:
    def read_on(body: dict[str, Any]) -> dict[str, Any]:
        name = body["messages"][-1]["content"].partition("attachment ")[2].split()[0]
        return calls("read_tool_result", attachment=name, length=5)

    script = {"a": [calls("change", kind="remove"), calls("big", kind="lines"), read_on, "done"]}
    journal = MemoryJournal()
    async with ChatServer(script) as server:
        use(server)
        flow = workflow(agent("A", local(ODD, max_result_chars=500)))
        first = await devall.run(flow, journal=journal)
        again = await devall.run(flow, journal=journal)
        assert len(server.calls["a"]) == 4
    assert (first.answer, again.answer) == ("done", "done")


# E6
async def test_an_image_reaches_the_model_and_no_base64_is_in_the_text(use, workspace) -> None:
    script = {"a": [calls("picture"), "seen"]}
    async with ChatServer(script) as server:
        use(server)
        result = await devall.run(workflow(agent("A", local(ODD))), logs_dir=workspace / "logs")
        tool, user = server.calls["a"][1]["messages"][-2:]
    assert tool["role"] == "tool"
    assert len(tool["content"]) < 200
    (url,) = [p["image_url"]["url"] for p in user["content"] if p["type"] == "image_url"]
    assert url.startswith("data:image/png;base64,iVBORw0KGgo")
    assert result.logs_dir is not None
    folder = result.logs_dir / "attachments"
    assert [each.suffix for each in folder.iterdir() if each.name != "manifest.json"] == [".png"]
    [entry] = json.loads((folder / "manifest.json").read_text())
    assert (entry["made_by"], entry["node"]) == ("tool", "A")


# E7
async def test_a_result_that_was_cut_can_be_read_on(use) -> None:
    def read_on(body: dict[str, Any]) -> dict[str, Any]:
        assert "read_tool_result" in offered(body)
        name = body["messages"][-1]["content"].partition("attachment ")[2].split()[0]
        return calls("read_tool_result", attachment=name, start=1000, length=7)

    script = {"a": [calls("big", kind="lines"), read_on, "done"]}
    async with ChatServer(script) as server:
        use(server)
        source = local(ODD, max_result_chars=500)
        result = await devall.run(workflow(agent("A", source)))
        bodies = server.calls["a"]
    assert result.answer == "done"
    assert "read_tool_result" not in offered(bodies[0])
    assert bodies[2]["messages"][-1]["content"].startswith("[characters 1000 to 1007 of 5888889]")


async def test_no_more_tools_are_offered_than_the_provider_takes_and_that_is_said_first(
    scripted,
) -> None:
    recorder = Recorder()
    models = scripted({"a": ["done"]})
    await devall.run(
        workflow(agent("A", local(ODD, "many=130"))), model_source=models, on_event=recorder
    )
    (request,) = models.requests["a"]
    assert [tool.name for tool in request.tools] == [f"tool_{n}" for n in range(128)]
    kinds = [type(e).__name__ for e in recorder.events]
    (warned,) = [e for e in recorder.events if isinstance(e, Warned) and e.code == "tools_left_out"]
    assert "takes 128 tools at most: 2 are not offered (tool_128, tool_129)" in warned.message
    assert kinds.index("Warned") < kinds.index("ModelCallStarted")


@pytest.fixture
def scripted():
    from devall.testing.scripted_model import ScriptedModels

    return ScriptedModels


# D1
async def test_a_tool_without_properties_is_offered_with_them_and_checked_without(use) -> None:
    script = {"a": [calls("pid"), "done"]}
    async with ChatServer(script) as server:
        use(server)
        await devall.run(workflow(agent("A", local(RAW))))
        tools = {t["function"]["name"]: t["function"] for t in server.calls["a"][0]["tools"]}
    assert tools["pid"]["parameters"] == {"type": "object", "properties": {}}


# D11
async def test_required_sources_that_fail_are_all_named_before_the_first_call(use) -> None:
    async with ChatServer({"a": ["never"]}) as server:
        use(server)
        sources = [
            local(ODD),
            local(RAW, "exit"),
            {"type": "mcp_remote", "config": {"server": "http://127.0.0.1:9/mcp", "timeout": 1}},
        ]
        result = await devall.run(workflow(agent("A", *sources)))
        assert not server.requests
    assert result.exit_code == 4
    assert result.outcome.error is not None
    assert "missing API key" in result.outcome.error.message
    assert "http://127.0.0.1:9/mcp" in result.outcome.error.message


async def test_a_server_that_is_not_required_is_missed_in_the_summary_alone(use) -> None:
    async with ChatServer({"a": ["done"]}) as server:
        use(server)
        sources = [local(ODD), local(RAW, "exit", required=False)]
        result = await devall.run(workflow(agent("A", *sources)))
    assert result.answer == "done"
    assert any("is left out" in text and "missing API key" in text for text in result.warnings)


# E14, E15 of parallel calls; C4: a dead server is a result
async def test_calls_of_one_turn_end_by_themselves_in_the_order_of_the_calls(use) -> None:
    def batch(_: dict[str, Any]) -> dict[str, Any]:
        wanted = [("sleep", {"seconds": 1}), ("fail", {}), ("sleep", {"seconds": 0}), ("nope", {})]
        return {"tool_calls": [{"name": n, "arguments": a} for n, a in wanted]}

    async with ChatServer({"a": [batch, "done"]}) as server:
        use(server)
        recorder = Recorder()
        result = await devall.run(workflow(agent("A", local(RAW, timeout=0.5))), on_event=recorder)
        found = [m["content"] for m in server.calls["a"][1]["messages"] if m["role"] == "tool"]
    assert result.answer == "done"
    # The first one's progress started its half second anew, which it then ran out of.
    assert "outcome unknown" in found[0]
    assert found[1:3] == ["Error: disk full", "slept"]
    assert "there is no tool `nope`" in found[3]
    assert any(isinstance(event, ToolProgress) for event in recorder.events)


# B9, B14: a subgraph and parallel nodes share the run's one process, and nothing stays
async def test_one_process_serves_nodes_subgraphs_and_loops_and_is_gone_after_the_run(
    use, workspace: Path
) -> None:
    source = local(RAW)
    inner = {"start": "X", "nodes": [agent("X", source)], "edges": []}
    nodes = [
        agent("A", source),
        agent("B", source),
        {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner}},
    ]
    ask = [calls("pid"), lambda body: body["messages"][-1]["content"]] * 5
    threads: list[int] = []
    async with ChatServer({"a": list(ask), "b": list(ask), "x": list(ask)}) as server:
        use(server)
        pids: list[str] = []
        for _ in range(5):
            result = await devall.run(workflow(*nodes))
            assert result.exit_code == 0, result.outcome
            pids.append(str(result.answer))
            # The event loop's own pool grows when it likes and ends with the loop.
            alive = [t for t in threading.enumerate() if not t.name.startswith("asyncio_")]
            threads.append(len(alive))
            said = {
                m["content"]
                for name in "abx"
                for m in server.calls[name][-1]["messages"]
                if m["role"] == "tool"
            }
            assert said == {result.answer}
    assert len(set(pids)) == 5
    assert not any(Path(f"/proc/{pid}").exists() for pid in pids)
    assert threads[-1] <= threads[0]


# C9: one session for all calls; point 12: one handshake
async def test_all_calls_of_a_run_use_one_session(use) -> None:
    script = {"a": [*[calls("echo", text=str(n)) for n in range(5)], calls("count"), "done"]}
    async with ChatServer(script) as server:
        use(server)
        await devall.run(workflow(agent("A", local(RAW))))
        counts = json.loads(server.calls["a"][-1]["messages"][-1]["content"])
    assert counts == {"initialize": 1, "call": 6}


async def test_a_question_of_a_server_is_answered_by_the_nodes_given_answer(use) -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}}
    script = {"a": [calls("ask", schema=schema), "done"]}
    async with ChatServer(script) as server:
        use(server)
        await devall.run(workflow(agent("A", local(ODD))), answers={"A": "Ada"})
        given = json.loads(server.calls["a"][1]["messages"][-1]["content"])
    assert given["result"] == {"action": "accept", "content": {"name": "Ada"}}
    async with ChatServer(script) as server:
        use(server)
        result = await devall.run(workflow(agent("A", local(ODD))))
        given = json.loads(server.calls["a"][1]["messages"][-1]["content"])
    assert given["result"] == {"action": "decline"}
    assert result.answer == "done"
    assert any("nobody can be asked: declined" in text for text in result.warnings)


FILE = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: slow
            tooling:
              - type: mcp_local
                config:
                  command: {python}
                  args: ["-I", "-S", {server}, deaf, orphan]
                  startup_timeout: 20
                  shutdown_grace: 0.3
      edges: []
"""


def descendants(pid: int) -> set[int]:
    found: set[int] = set()
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            found |= {child} | descendants(child)
    return found


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


# B7
@pytest.mark.parametrize(
    ("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)]
)
def test_however_devall_ends_its_servers_and_their_children_are_gone(
    write, workspace: Path, how: signal.Signals, code: int
) -> None:
    write("flow.yaml", FILE.format(python=sys.executable, server=RAW))
    start = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "os.execv(sys.executable, [sys.executable, '-m', 'devall', *sys.argv[1:]])"
    )
    with ChatServer({"slow": [{"text": "late", "delay": 60}]}) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", start, "run", "flow.yaml", "--task", "go"],
            cwd=workspace,
            env=os.environ | server.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        server.wait_until(lambda: server.active == 1, 25)
        children = descendants(process.pid)
        assert len(children) == 3  # the server, its sleep, the watchdog
        process.send_signal(how)
        assert process.wait(timeout=10) == code
    deadline = time.monotonic() + 8
    while any(map(is_alive, children)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not [pid for pid in children if is_alive(pid)]


# B6, D12
def test_a_server_that_cannot_start_ends_the_command_with_4_and_says_why(devall, write) -> None:
    for command, args, said in [
        (sys.executable, f'["-I", "-S", "{RAW}", exit]', "boom: missing API key"),
        ("no-such-command", "[]", "`no-such-command` is not found"),
    ]:
        write(
            "flow.yaml",
            f"""
            graph:
              start: A
              nodes:
                - id: A
                  type: agent
                  config:
                    provider: openai
                    name: m
                    api_key: none
                    base_url: http://127.0.0.1:9/v1
                    tooling: [{{type: mcp_local, config: {{command: "{command}", args: {args}}}}}]
              edges: []
            """,
        )
        done = devall("run", "flow.yaml", "--task", "go", code=4)
        assert said in done.stderr
