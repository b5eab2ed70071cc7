"""Whole runs through the Python door: real HTTP, real child processes, real files."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.errors import SetupError, UsageError
from devall.core.events import (
    HumanAsked,
    LoopLeft,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    RunFinished,
    RunStarted,
)
from devall.core.ports import Question
from devall.engine.result import RunResult
from devall.journal.memory import MemoryJournal
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder


def agent(name: str, model: str | None = None, **node: Any) -> dict[str, Any]:
    """An agent node; its model is its name in small letters."""
    config = {"provider": "openai", "name": model or name.lower(), "retry": {"enabled": False}}
    return {"id": name, "type": "agent", "config": config | node.pop("config", {}), **node}


def literal(name: str, content: str, **node: Any) -> dict[str, Any]:
    return {"id": name, "type": "literal", "config": {"content": content}, **node}


def node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "config": config}


def arrow(text: str, **options: Any) -> dict[str, Any]:
    """`A -> B`."""
    source, target = text.split(" -> ")
    return {"from": source, "to": target, **options}


def keyword(**config: Any) -> dict[str, Any]:
    return {"type": "keyword", "config": config}


def workflow(
    nodes: Sequence[Mapping[str, Any]], edges: Sequence[Any] = (), **graph: Any
) -> LoadedWorkflow:
    listed = [arrow(edge) if isinstance(edge, str) else edge for edge in edges]
    start = graph.pop("start", nodes[0]["id"])
    data = {"graph": {"start": start, "nodes": list(nodes), "edges": listed, **graph}}
    return load_mapping(data, folder=Path.cwd())


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    """Makes a server the endpoint of the agents."""

    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


def ran(result: RunResult) -> dict[str, int]:
    return {name: summary.runs for name, summary in result.nodes.items() if summary.runs}


async def test_a_failed_node_cancels_its_siblings_and_nothing_follows(use) -> None:
    script = {"a": ["go"], "bad": [{"error": "invalid_api_key"}], "slow": [{"fault": "silence"}]}
    async with ChatServer(script) as server:
        use(server)
        graph = workflow(
            [agent("A"), agent("Bad"), agent("Slow"), agent("C")],
            ["A -> Bad", "A -> Slow", "Bad -> C", "Slow -> C"],
        )
        recorder = Recorder()
        result = await devall.run(graph, task="x", on_event=recorder)
        await server.until(lambda: server.abandoned == 1, seconds=2)
    assert (result.status, result.exit_code, result.answer) == ("failed", 1, None)
    assert result.error is not None
    assert (result.error.code, result.error.node) == ("model_refused", "Bad")
    assert {name: each.status for name, each in result.nodes.items()} == {
        "A": "completed",
        "Bad": "failed",
        "Slow": "cancelled",
        "C": "skipped",
    }
    assert "c" not in server.calls
    assert isinstance(recorder.events[0], RunStarted)
    assert isinstance(recorder.events[-1], RunFinished)


async def test_on_error_continue_skips_the_node_and_the_join_runs_without_it(use) -> None:
    async with ChatServer({"bad": [{"status": 400}], "c": ["fine"]}) as server:
        use(server)
        graph = workflow(
            [literal("L", "x"), agent("Bad", on_error="continue"), agent("C")],
            ["L -> Bad", "L -> C", "Bad -> C"],
        )
        recorder = Recorder()
        result = await devall.run(graph, on_event=recorder)
    assert (result.status, result.answer) == ("completed", "fine")
    assert result.nodes["Bad"].status == "failed"
    assert [event.continued for event in recorder.of(NodeFailed)] == [True]
    assert [m["content"] for m in server.calls["c"][0]["messages"]] == ["x"]


async def test_a_failure_never_becomes_a_message(use) -> None:
    async with ChatServer({"a": [{"error": "invalid_api_key"}]}) as server:
        use(server)
        result = await devall.run(workflow([agent("A"), agent("B")], ["A -> B"]), task="x")
    assert result.status == "failed"
    assert "b" not in server.calls


async def test_a_nodes_timeout_ends_the_request_and_the_run(use) -> None:
    async with ChatServer({"a": [{"fault": "silence"}]}) as server:
        use(server)
        result = await devall.run(workflow([agent("A", timeout=0.3)]), task="x")
        await server.until(lambda: server.abandoned == 1, seconds=2)
    assert (result.status, result.exit_code) == ("limit_reached", 6)
    assert result.error is not None
    assert (result.error.code, result.error.node) == ("timeout", "A")


async def test_max_seconds_of_the_graph_ends_whatever_runs(use) -> None:
    async with ChatServer({"a": [{"fault": "silence"}]}) as server:
        use(server)
        result = await devall.run(workflow([agent("A")], limits={"max_seconds": 0.3}), task="x")
        await server.until(lambda: server.abandoned == 1, seconds=2)
    assert (result.status, result.exit_code) == ("limit_reached", 6)
    assert result.error is not None
    assert "max_seconds" in result.error.message


@pytest.mark.parametrize(("limits", "calls"), [({"max_model_calls": 2}, 2), ({"max_tokens": 1}, 0)])
async def test_a_limit_is_looked_at_before_the_call(use, limits: Any, calls: int) -> None:
    async with ChatServer() as server:
        use(server)
        graph = workflow([agent("A"), agent("B"), agent("C")], ["A -> B", "B -> C"], limits=limits)
        result = await devall.run(graph, task="a few words to count")
    assert (result.status, result.exit_code) == ("limit_reached", 6)
    assert sum(map(len, server.calls.values())) == calls
    assert result.usage.model_calls == calls


async def test_a_limit_on_money_ends_the_run_with_its_own_exit_code(use) -> None:
    usage = {"prompt_tokens": 1_000_000, "completion_tokens": 1_000_000}
    script = {"gpt-4o-mini": [{"text": "dear", "usage": usage}] * 3}
    async with ChatServer(script) as server:
        use(server)
        graph = workflow(
            [agent("A", "gpt-4o-mini"), agent("B", "gpt-4o-mini")],
            ["A -> B"],
            limits={"max_usd": 0.5},
        )
        result = await devall.run(graph, task="x")
    assert (result.status, result.exit_code) == ("limit_reached", 5)
    assert result.usage.model_calls == 1


async def test_a_limit_on_money_says_that_it_cannot_hold_for_a_model_of_unknown_price(use) -> None:
    async with ChatServer({"nobodys-model": ["one"]}) as server:
        use(server)
        graph = workflow([agent("A", "nobodys-model")], limits={"max_usd": 0.5})
        result = await devall.run(graph, task="x")
    assert result.status == "completed"
    assert [text for text in result.warnings if "price is unknown" in text]


async def test_a_nodes_limit_counts_all_its_runs_and_obeys_on_error(use) -> None:
    async with ChatServer({"b": ["fine"]}) as server:
        use(server)
        graph = workflow(
            [
                agent("A", limits={"max_model_calls": 2}, on_error="continue"),
                literal("L", "l"),
                agent("B"),
            ],
            ["A -> A", "L -> B", arrow("A -> B", condition=keyword(any=["never"]))],
            start=["A", "L"],
            limits={"on_loop_limit": "continue"},
        )
        result = await devall.run(graph, task="x")
    assert result.status == "completed"
    assert len(server.calls["a"]) == 2


async def test_a_limit_of_the_graph_is_not_softened_by_on_error(use) -> None:
    async with ChatServer() as server:
        use(server)
        graph = workflow(
            [agent("A"), agent("B", on_error="continue")],
            ["A -> B"],
            limits={"max_model_calls": 1},
        )
        result = await devall.run(graph, task="x")
    assert (result.status, result.exit_code) == ("limit_reached", 6)


async def test_parallel_calls_do_not_overshoot_a_limit_together(use) -> None:
    script = {"m": [{"text": "x", "delay": 0.2}] * 10}
    async with ChatServer(script) as server:
        use(server)
        nodes = [literal("L", "x")] + [agent(f"A{at}", "m") for at in range(6)]
        edges = [f"L -> A{at}" for at in range(6)]
        result = await devall.run(workflow(nodes, edges, limits={"max_model_calls": 3}))
    assert result.status == "limit_reached"
    assert len(server.calls.get("m", ())) <= 3


async def test_a_loop_at_its_bound_is_an_error_that_names_it() -> None:
    graph = workflow(
        [node("A", "passthrough"), node("B", "passthrough")],
        ["A -> B", "B -> A"],
        limits={"max_loop_iterations": 4},
    )
    result = await devall.run(graph, task="x")
    assert (result.status, result.exit_code) == ("limit_reached", 6)
    assert result.error is not None
    assert "loop A, B" in result.error.message
    assert ran(result) == {"A": 4, "B": 4}


async def test_on_loop_limit_continue_ends_the_loop_silently() -> None:
    graph = workflow(
        [node("A", "passthrough")],
        ["A -> A"],
        limits={"max_loop_iterations": 4, "on_loop_limit": "continue"},
        end="A",
    )
    recorder = Recorder()
    result = await devall.run(graph, task="x", on_event=recorder)
    assert (result.status, result.answer) == ("completed", "x")
    assert [(event.rounds, event.exited) for event in recorder.of(LoopLeft)] == [(4, False)]


async def test_a_short_branch_does_not_wait_for_a_long_one(use) -> None:
    script = {"slow": [{"text": "s", "delay": 0.5}]}
    async with ChatServer(script) as server:
        use(server)
        graph = workflow(
            [literal("L", "x"), agent("Slow"), agent("B"), agent("C")],
            ["L -> Slow", "L -> B", "B -> C"],
        )
        recorder = Recorder()
        await devall.run(graph, on_event=recorder)
    order = [
        (type(event).__name__, event.node)
        for event in recorder.events
        if isinstance(event, NodeStarted | NodeFinished)
    ]
    assert order.index(("NodeStarted", "C")) < order.index(("NodeFinished", "Slow"))


async def test_a_human_nobody_can_ask_leaves_the_run_waiting_when_all_else_is_done(use) -> None:
    async with ChatServer({"b": [{"text": "done", "delay": 0.3}]}) as server:
        use(server)
        graph = workflow(
            [
                literal("L", "x"),
                node("H", "human", description="Well?"),
                agent("B"),
                node("I", "human", description="And?"),
            ],
            ["L -> H", "L -> B", "B -> I"],
        )
        result = await devall.run(graph)
    assert (result.status, result.exit_code, result.answer) == ("waiting", 75, None)
    assert result.waiting == (("/H@1", "Well?"), ("/I@1", "And?"))
    assert {name: each.status for name, each in result.nodes.items()} == {
        "L": "completed",
        "H": "waiting",
        "B": "completed",
        "I": "waiting",
    }


async def test_given_answers_are_used_in_order_and_reach_into_subgraphs() -> None:
    inner = {"start": "H", "nodes": [node("H", "human")], "edges": []}
    graph = workflow(
        [node("S", "subgraph", type="config", config=inner), node("T", "passthrough")],
        ["S -> S", arrow("S -> T", condition=keyword(any=["b"]))],
    )
    recorder = Recorder()
    result = await devall.run(graph, task="x", answers={"S/H": ["a", "b"]}, on_event=recorder)
    assert (result.status, result.answer) == ("completed", "b")
    assert ran(result) == {"S": 2, "S/H": 2, "T": 1}
    assert [event.path for event in recorder.of(HumanAsked)] == ["/S@1/H@1", "/S@2/H@1"]


class Slow:
    """A human who thinks for a while."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def ask(self, question: Question, /) -> str:
        await asyncio.sleep(self.seconds)
        return question.text


async def test_no_clock_of_the_run_goes_on_while_a_human_thinks() -> None:
    graph = workflow(
        [node("H", "human", description="fine"), node("P", "passthrough")],
        ["H -> P"],
        limits={"max_seconds": 0.3},
    )
    result = await devall.run(graph, human=Slow(0.8))
    assert (result.status, result.answer) == ("completed", "fine")


async def test_a_human_has_a_time_and_a_default_of_their_own() -> None:
    late = node("H", "human", timeout=0.1, default="never mind")
    result = await devall.run(workflow([late]), human=Slow(20))
    assert (result.status, result.answer) == ("completed", "never mind")
    result = await devall.run(workflow([node("H", "human", timeout=0.1)]), human=Slow(20))
    assert (result.status, result.exit_code) == ("limit_reached", 6)


CODE = """
import os, pathlib, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
pathlib.Path(r"{place}").write_text(f"{{os.getpid()}} {{child.pid}}")
time.sleep(60)
"""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2][1] != "Z"
    except OSError:
        return False


async def until(predicate, seconds: float = 5) -> None:
    end = time.monotonic() + seconds
    while not predicate():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(("signal", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
async def test_a_signal_reaches_a_child_process_and_an_open_request(
    use, tmp_path: Path, signal: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the sandbox the code could neither write its ids there nor know them.
    monkeypatch.setenv("DEVALL_CODE_SANDBOX", "off")
    place = tmp_path / "pids"
    async with ChatServer({"a": [{"fault": "silence"}]}) as server:
        use(server)
        graph = workflow(
            [literal("L", CODE.format(place=place)), node("P", "python"), agent("A")],
            ["L -> P", "L -> A"],
        )
        recorder = Recorder()
        running = asyncio.ensure_future(devall.run(graph, on_event=recorder))
        await until(lambda: place.exists() and len(place.read_text().split()) == 2)
        await server.until(lambda: server.active == 1)
        running.cancel(signal)
        result = await running
        await server.until(lambda: server.abandoned == 1, seconds=1)
    assert (result.status, result.exit_code) == ("cancelled", code)
    assert isinstance(recorder.events[-1], RunFinished)
    pids = [int(text) for text in place.read_text().split()]
    await until(lambda: not any(map(alive, pids)), seconds=1)


async def test_a_cancelled_caller_gets_its_cancellation_and_nothing_stays_open(use) -> None:
    async with ChatServer({"a": [{"fault": "silence"}]}) as server:
        use(server)
        recorder = Recorder()
        running = asyncio.ensure_future(
            devall.run(workflow([agent("A")]), task="x", on_event=recorder)
        )
        await server.until(lambda: server.active == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await server.until(lambda: server.connections == 0, seconds=1)
    assert isinstance(recorder.events[-1], RunFinished)


async def test_many_runs_in_one_loop_do_not_see_each_other(use) -> None:
    script = {f"m{at}": [{"text": f"reply {at}", "delay": 0.05}] for at in range(30)}
    async with ChatServer(script) as server:
        use(server)
        graph = workflow(
            [agent("A", "x"), node("N", "loop_counter", max_iterations=2), node("H", "human")],
            ["A -> N", "A -> A", "N -> A", "N -> H"],
        )
        runs = [
            devall.run(
                graph, task=f"task {at}", models={"": f"m{at}"}, answers={"H": f"human {at}"}
            )
            for at in range(30)
        ]
        results = await asyncio.gather(*runs)
    assert [result.answer for result in results] == [f"human {at}" for at in range(30)]
    for at in range(30):
        first = server.calls[f"m{at}"][0]["messages"]
        assert [message["content"] for message in first] == [f"task {at}"]
        assert len(server.calls[f"m{at}"]) == 2
    assert len({result.run_id for result in results}) == 30


async def test_a_subgraph_starts_fresh_each_time_and_shares_usage_and_limits(use) -> None:
    inner = {
        "start": "N",
        "nodes": [node("N", "loop_counter", max_iterations=1, message="again"), agent("X")],
        "edges": [arrow("N -> X")],
    }
    async with ChatServer({"x": ["one", "two", "stop", "four"]}) as server:
        use(server)
        graph = workflow(
            [node("S", "subgraph", type="config", config=inner)],
            [arrow("S -> S", condition=keyword(none=["stop"]))],
            end="S",
        )
        result = await devall.run(graph, task="x")
    assert (result.status, result.answer) == ("completed", "stop")
    assert ran(result) == {"S": 3, "S/N": 3, "S/X": 3}
    assert result.usage.model_calls == 3
    assert len(server.calls["x"]) == 3


async def test_a_failure_in_a_subgraph_names_the_inner_node(use) -> None:
    inner = {"start": "X", "nodes": [agent("X")], "edges": []}
    async with ChatServer({"x": [{"error": "invalid_api_key"}]}) as server:
        use(server)
        graph = workflow([node("S", "subgraph", type="config", config=inner)])
        result = await devall.run(graph, task="x")
    assert result.error is not None
    assert result.error.node == "S/X"
    assert result.nodes["S"].status == "failed"


def mapping(**options: Any) -> dict[str, Any]:
    return {"type": "map", "split": {"type": "regex", "pattern": ".+"}, **options}


async def test_units_answer_in_their_own_order_and_at_most_so_many_at_once(use) -> None:
    texts = [str(at) for at in range(12)]
    script = {"m": [{"text": "x", "delay": 0.05}] * 12}
    async with ChatServer(script) as server:
        use(server)
        graph = workflow(
            [
                literal("L", "\n".join(texts)),
                agent("M"),
                node("P", "passthrough", only_last_message=False),
            ],
            [arrow("L -> M", dynamic=mapping(config={"max_parallel": 4})), "M -> P"],
        )
        recorder = Recorder()
        result = await devall.run(graph, on_event=recorder)
    assert result.nodes["M"].runs == 12
    assert server.most_active == 4
    finished = next(event for event in recorder.of(NodeFinished) if event.node == "M")
    assert len(finished.outputs) == 12


async def test_a_failing_unit_cancels_the_rest(use) -> None:
    def reply(body: Mapping[str, Any]) -> dict[str, Any]:
        if body["messages"][0]["content"] == "bad":
            return {"error": "invalid_api_key", "delay": 0.1}
        return {"fault": "silence"}

    async with ChatServer({"m": [reply] * 3}) as server:
        use(server)
        graph = workflow(
            [literal("L", "one\nbad\nthree"), agent("M")], [arrow("L -> M", dynamic=mapping())]
        )
        result = await devall.run(graph)
        await server.until(lambda: server.abandoned == 2, seconds=2)
    assert result.error is not None
    assert (result.status, result.error.node) == ("failed", "M")


async def test_no_unit_and_no_other_input_skips_the_node() -> None:
    split = {"type": "regex", "pattern": "never", "on_no_match": "empty"}
    graph = workflow(
        [literal("L", "x"), node("M", "passthrough"), node("P", "passthrough")],
        [arrow("L -> M", dynamic=mapping(split=split)), "M -> P"],
    )
    result = await devall.run(graph)
    assert result.status == "completed"
    assert ran(result) == {"L": 1}


async def test_an_edge_function_that_raises_fails_the_run_with_its_name_and_edge(
    workspace: Path,
) -> None:
    folder = workspace / "functions" / "edge"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text("def picky(text: str) -> bool:\n    raise ValueError('no')\n")
    place = workspace / "w.yaml"
    place.write_text(
        "graph:\n  start: A\n  nodes:\n"
        "  - {id: A, type: literal, config: {content: x}}\n"
        "  - {id: B, type: passthrough}\n"
        "  edges:\n  - {from: A, to: B, condition: picky}\n"
    )
    result = await devall.run(place)
    assert result.error is not None
    assert (result.status, result.error.code, result.error.node) == ("failed", "function", "A")
    for text in ("picky", "A -> B", "w.yaml:7:", "ValueError: no"):
        assert text in result.error.message


async def test_python_code_works_in_the_workspace_without_the_secrets(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "sentinel-value")
    monkeypatch.setenv("GITHUB_TOKEN", "sentinel-value")
    monkeypatch.setenv("PLAIN", "plain-value")
    code = (
        "import os, pathlib\n"
        "pathlib.Path('made.txt').write_text('x')\n"
        "print(os.environ.get('MY_API_KEY', os.environ.get('GITHUB_TOKEN')), os.environ.get('PLAIN'), os.environ.get('MORE'))\n"
    )
    graph = workflow([literal("L", code), node("P", "python", env={"MORE": "m"})], ["L -> P"])
    result = await devall.run(graph, logs_dir=workspace / "logs", run_id="r1")
    assert result.answer == "None plain-value m\n"
    made = workspace / "logs" / "r1" / "workspace" / "made.txt"
    assert made.read_text() == "x"
    assert (workspace / "logs" / "r1").stat().st_mode & 0o777 == 0o700


async def test_python_code_that_takes_too_long_is_ended_and_says_so() -> None:
    graph = workflow(
        [
            literal("L", "print('begun', flush=True)\nimport time\ntime.sleep(60)"),
            node("P", "python", timeout_seconds=0.5),
        ],
        ["L -> P"],
    )
    result = await devall.run(graph)
    assert result.answer is not None
    assert result.answer.startswith("==CODE EXECUTION FAILED==\ntimed out after 0.5 s")
    assert "begun" in result.answer


async def test_an_interpreter_that_is_not_there_is_a_setup_error() -> None:
    graph = workflow([literal("L", "1"), node("P", "python", interpreter="no-such")], ["L -> P"])
    result = await devall.run(graph)
    assert (result.status, result.exit_code) == ("failed", 4)
    assert result.error is not None
    assert "no-such" in result.error.message


async def test_a_timer_is_silent_until_its_time_is_up_and_passes_on_if_asked() -> None:
    timer = node("T", "loop_timer", max_duration=0.15, message="time is up", passthrough=True)
    pause = node("W", "python")
    graph = workflow(
        [
            literal("L", "import time\ntime.sleep(0.05)\nprint('import time; time.sleep(0.05)')"),
            pause,
            timer,
            node("E", "passthrough"),
        ],
        [
            "L -> W",
            "W -> T",
            arrow("T -> W", condition=keyword(none=["time is up"])),
            arrow("T -> E", condition=keyword(any=["time is up"])),
        ],
    )
    result = await devall.run(graph)
    assert (result.status, result.answer) == ("completed", "time is up")
    assert result.nodes["T"].runs >= 2


async def test_a_missing_key_is_said_before_anything_runs() -> None:
    recorder = Recorder()
    with pytest.raises(SetupError) as caught:
        await devall.run(workflow([literal("L", "x"), agent("A")], ["L -> A"]), on_event=recorder)
    assert caught.value.exit_code == 4
    assert "API_KEY" in str(caught.value) + caught.value.hint
    assert "--provider local" in caught.value.hint
    assert recorder.events == []


async def test_an_option_for_a_node_that_is_not_there_is_an_error() -> None:
    with pytest.raises(UsageError, match="no node Writter"):
        await devall.run(workflow([literal("Writer", "x")]), answers={"Writter": "y"})


async def test_a_run_id_is_used_once(workspace: Path) -> None:
    graph = workflow([literal("L", "x")])
    await devall.run(graph, run_id="mine", logs_dir="logs")
    with pytest.raises(UsageError, match="mine"):
        await devall.run(graph, run_id="mine", logs_dir="logs")
    for name in ("../x", "", "a/b"):
        with pytest.raises(UsageError):
            await devall.run(graph, run_id=name, logs_dir="logs")


async def test_the_json_of_a_run_has_the_documented_keys(workspace: Path) -> None:
    result = await devall.run(workflow([literal("L", "x")]), logs_dir="logs")
    found = json.loads(json.dumps(result.to_json()))
    assert {
        "run_id",
        "workflow",
        "status",
        "exit_code",
        "answer",
        "answer_node",
        "nodes",
        "usage",
        "seconds",
        "error",
        "waiting",
        "logs_dir",
    } <= set(found)
    assert found["nodes"] == {"L": {"runs": 1, "status": "completed"}}
    assert (found["answer"], found["answer_node"], found["error"]) == ("x", "L", None)


async def test_run_sync_refuses_to_run_inside_a_loop() -> None:
    with pytest.raises(UsageError, match="event loop"):
        devall.run_sync(workflow([literal("L", "x")]))


def test_run_sync_runs() -> None:
    assert devall.run_sync(workflow([literal("L", "x")])).answer == "x"


async def test_a_majority_ignores_empty_words_and_takes_the_first_among_equals(use) -> None:
    script = {"a": [""], "b": ["two"], "c": ["one"], "d": ["one "], "e": ["two"]}
    async with ChatServer(script) as server:
        use(server)
        nodes = [agent(name) for name in "ABCDE"]
        result = await devall.run(workflow(nodes, is_majority_voting=True), task="x")
    assert (result.answer, result.answer_node) == ("two", "B")


async def test_a_run_without_an_answer_says_so() -> None:
    graph = workflow(
        [literal("L", "x"), node("E", "passthrough")],
        [arrow("L -> E", condition=keyword(any=["never"]))],
        end="E",
    )
    result = await devall.run(graph)
    assert (result.status, result.answer) == ("completed", None)
    assert any("no answer" in text for text in result.warnings)


async def test_the_interpreter_may_be_named(workspace: Path) -> None:
    python = node("P", "python", interpreter=sys.executable, args=["one", "two"])
    graph = workflow([literal("L", "import sys; print(sys.argv[1:])"), python], ["L -> P"])
    assert (await devall.run(graph)).answer == "['one', 'two']\n"


async def test_a_run_from_a_full_journal_calls_nothing_and_ends_the_same(use) -> None:
    """Loops, units, subgraphs, tools and humans: every effect is found by its logical path."""
    inner = {"start": "X", "nodes": [agent("X")], "edges": []}
    tools = [{"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}]
    call = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": "Rome"}}] * 2}
    script = {
        "a": [call, {"text": "one\ntwo", "delay": 0.1}, "again"],
        "m": [{"text": "left", "delay": 0.2}, "right"],
        "x": ["redo", "fine"],
    }
    journal = MemoryJournal()
    async with ChatServer(script) as server:
        use(server)
        graph = workflow(
            [
                agent("A", config={"tooling": tools}),
                agent("M"),
                node("S", "subgraph", type="config", config=inner),
                node("H", "human"),
            ],
            [
                arrow("A -> M", dynamic=mapping()),
                "M -> S",
                arrow("S -> A", condition=keyword(any=["redo"])),
                arrow("S -> H", condition=keyword(any=["fine"])),
            ],
        )
        first = await devall.run(graph, task="x", answers={"H": "ok"}, journal=journal)
        sent = sum(map(len, server.calls.values()))
        steps = journal.records
        again = await devall.run(graph, task="x", journal=journal)
        assert sum(map(len, server.calls.values())) == sent
    assert (first.status, first.answer) == ("completed", "ok")
    assert again.to_json() | {"run_id": 0, "seconds": 0} == first.to_json() | {
        "run_id": 0,
        "seconds": 0,
    }
    assert journal.records == steps
    assert len({step.key for step in steps}) == len(steps)
