"""The units of dynamic edges in whole runs: seen one by one, left out, many, nested."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.events import NodeFinished, NodeStarted, UnitFailed, UnitFinished, UnitStarted
from devall.engine.result import RunResult
from devall.journal.memory import MemoryJournal
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.telemetry.run_log import read_events
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

LINES = {"type": "regex", "pattern": r"[^\n]+"}


def agent(name: str, **node: Any) -> dict[str, Any]:
    config = {"provider": "openai", "name": name.lower(), "retry": {"enabled": False}}
    return {"id": name, "type": "agent", "config": config, **node}


def node(name: str, kind: str, **config: Any) -> dict[str, Any]:
    return {"id": name, "type": kind, "config": config}


def arrow(text: str, **options: Any) -> dict[str, Any]:
    source, target = text.split(" -> ")
    return {"from": source, "to": target, **options}


def dynamic(kind: str = "map", **config: Any) -> dict[str, Any]:
    return {"type": kind, "split": LINES, "config": config}


def workflow(
    nodes: Sequence[Mapping[str, Any]], edges: Sequence[Mapping[str, Any]], **graph: Any
) -> LoadedWorkflow:
    start = graph.pop("start", nodes[0]["id"])
    data = {"graph": {"start": start, "nodes": list(nodes), "edges": list(edges), **graph}}
    return load_mapping(data, folder=Path.cwd())


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


def picky(body: Mapping[str, Any]) -> dict[str, Any]:
    """Says what it is told, and refuses what holds `bad`."""
    said = " ".join(str(message["content"]) for message in body["messages"])
    return {"status": 400} if "bad" in said else {"text": f"<{said}>"}


def outputs(recorder: Recorder, name: str) -> list[str]:
    event = next(event for event in recorder.of(NodeFinished) if event.node == name)
    return [message.text for message in event.outputs]


async def test_every_unit_is_told_of_with_its_path_and_number():
    graph = workflow(
        [node("L", "literal", content="a\nb\nc"), node("M", "passthrough")],
        [arrow("L -> M", dynamic=dynamic())],
    )
    recorder = Recorder()
    await devall.run(graph, on_event=recorder)
    started = [(e.path, e.node, e.unit, e.units, e.layer) for e in recorder.of(UnitStarted)]
    assert started == [(f"/M@1/unit:{n}", "M", n, 3, 0) for n in (1, 2, 3)]
    assert [e.outputs[0].text for e in recorder.of(UnitFinished)] == ["a", "b", "c"]
    assert outputs(recorder, "M") == ["a", "b", "c"]


async def test_units_of_a_tree_are_told_of_layer_by_layer():
    graph = workflow(
        [node("L", "literal", content="a\nb\nc\nd\ne"), node("M", "passthrough")],
        [arrow("L -> M", dynamic=dynamic("tree", group_size=2))],
    )
    recorder = Recorder()
    result = await devall.run(graph, on_event=recorder)
    told = [(e.layer, e.unit, e.units) for e in recorder.of(UnitFinished)]
    assert told == [(1, 1, 3), (1, 2, 3), (1, 3, 3), (2, 1, 2), (2, 2, 2), (3, 1, 1)]
    assert result.answer == "e"


async def test_skip_leaves_failed_units_out_in_order_and_says_so(use) -> None:
    async with ChatServer({"m": [picky] * 4}) as server:
        use(server)
        graph = workflow(
            [node("L", "literal", content="one\nbad\nthree\nbad too"), agent("M")],
            [arrow("L -> M", dynamic=dynamic(on_unit_error="skip"))],
        )
        recorder = Recorder()
        result = await devall.run(graph, on_event=recorder)
    assert (result.status, result.exit_code) == ("completed", 0)
    assert outputs(recorder, "M") == ["<one>", "<three>"]
    failed = sorted((e.unit, e.continued, e.code) for e in recorder.of(UnitFailed))
    assert failed == [(2, True, "model_refused"), (4, True, "model_refused")]
    assert len(result.warnings) == 1
    assert "node M: 2 of 4 units failed and were left out (2, 4); the first:" in result.warnings[0]


async def test_where_every_unit_fails_the_node_fails_also_with_skip(use) -> None:
    async with ChatServer({"m": [picky] * 2}) as server:
        use(server)
        graph = workflow(
            [node("L", "literal", content="bad\nbad too"), agent("M"), node("P", "passthrough")],
            [arrow("L -> M", dynamic=dynamic(on_unit_error="skip")), arrow("M -> P")],
        )
        result = await devall.run(graph)
    assert result.error is not None
    assert (result.status, result.error.code, result.error.node) == ("failed", "model_refused", "M")
    assert not result.nodes["P"].runs


async def test_a_tree_reduces_what_is_left_after_a_failed_group(use) -> None:
    async with ChatServer({"m": [picky] * 4}) as server:
        use(server)
        graph = workflow(
            [node("L", "literal", content="a\nb\nbad\nc\nd\ne"), agent("M")],
            [arrow("L -> M", dynamic=dynamic("tree", group_size=2, on_unit_error="skip"))],
        )
        result = await devall.run(graph)
    assert result.answer == "<<a b> <d e>>"


async def test_a_failed_unit_is_told_of_before_its_node_and_the_rest_is_cancelled(use) -> None:
    def reply(body: Mapping[str, Any]) -> dict[str, Any]:
        return {"status": 400} if body["messages"][0]["content"] == "bad" else {"fault": "silence"}

    async with ChatServer({"m": [reply] * 3}) as server:
        use(server)
        graph = workflow(
            [node("L", "literal", content="one\nbad\nthree"), agent("M")],
            [arrow("L -> M", dynamic=dynamic())],
        )
        recorder = Recorder()
        result = await devall.run(graph, on_event=recorder)
        await server.until(lambda: server.abandoned == 2, seconds=2)
    assert result.status == "failed"
    assert [(e.unit, e.continued) for e in recorder.of(UnitFailed)] == [(2, False)]
    assert recorder.of(UnitFinished) == []


async def test_a_limit_of_the_run_is_never_skipped(use) -> None:
    async with ChatServer({"m": [picky] * 4}) as server:
        use(server)
        graph = workflow(
            [node("L", "literal", content="a\nb\nc\nd"), agent("M")],
            [arrow("L -> M", dynamic=dynamic(on_unit_error="skip", max_parallel=1))],
            limits={"max_model_calls": 2},
        )
        result = await devall.run(graph)
    assert (result.status, result.exit_code) == ("limit_reached", 6)
    assert len(server.calls["m"]) == 2


async def test_what_was_left_out_stays_left_out_when_the_run_is_done_again(use) -> None:
    def once(body: Mapping[str, Any]) -> dict[str, Any]:
        return picky(body)

    journal = MemoryJournal()
    nodes = [node("L", "literal", content="one\nbad"), agent("M"), agent("N")]
    edges = [arrow("L -> M", dynamic=dynamic(on_unit_error="skip")), arrow("M -> N")]
    async with ChatServer({"m": [once, once], "n": ["end"]}) as server:
        use(server)
        first = await devall.run(workflow(nodes, edges), journal=journal)
        again = await devall.run(workflow(nodes, edges), journal=journal)
        assert (len(server.calls["m"]), len(server.calls["n"])) == (2, 1)
    assert first.answer == again.answer == "end"
    assert first.warnings == again.warnings != ()


async def test_a_replay_leaves_out_what_the_recorded_run_left_out(use, tmp_path: Path) -> None:
    async with ChatServer({"m": [picky] * 2}) as server:
        use(server)
        file = tmp_path / "w.yaml"
        file.write_text(
            "graph:\n  start: L\n  nodes:\n"
            "  - {id: L, type: literal, config: {content: 'one,bad'}}\n"
            "  - {id: M, type: agent, config: {provider: openai, name: m, retry: {enabled: no}}}\n"
            "  edges:\n  - {from: L, to: M, dynamic: {type: map, split: {type: regex,"
            " pattern: '\\w+'}, config: {on_unit_error: skip}}}\n".replace("no}", "false}")
        )
        result = await devall.run(file, logs_dir=tmp_path / "logs")
    replayed = await devall.replay(result.run_id, logs_dir=tmp_path / "logs")
    assert (result.answer, replayed.answer) == ("<one>", "<one>")
    assert replayed.warnings == result.warnings


async def test_a_thousand_units_take_seconds_and_stay_in_order():
    texts = [f"unit {n}" for n in range(1000)]
    graph = workflow(
        [
            node("L", "literal", content="\n".join(texts)),
            node("M", "passthrough"),
            node("P", "passthrough", only_last_message=False),
        ],
        [arrow("L -> M", dynamic=dynamic()), arrow("M -> P")],
    )
    recorder = Recorder()
    began = time.process_time()
    result = await devall.run(graph, on_event=recorder)
    assert time.process_time() - began < 5
    assert result.nodes["M"].runs == 1000
    assert outputs(recorder, "M") == texts
    assert len(recorder.of(UnitFinished)) == 1000


async def test_a_thousand_units_of_subgraphs_with_loops(tmp_path: Path):
    inner = {
        "start": "A",
        "nodes": [
            node("A", "passthrough"),
            node("B", "passthrough"),
            node("C", "loop_counter", max_iterations=2),
            node("E", "passthrough"),
        ],
        "edges": [
            arrow("A -> B"),
            arrow("B -> A"),
            arrow("B -> C"),
            arrow("C -> A"),
            arrow("C -> E"),
        ],
        "end": ["E"],
    }
    texts = [f"unit {n}" for n in range(1000)]
    graph = workflow(
        [node("L", "literal", content="\n".join(texts)), node("S", "subgraph", **_inline(inner))],
        [arrow("L -> S", dynamic=dynamic(max_parallel=50))],
    )
    began = time.process_time()
    result = await devall.run(graph, logs_dir=tmp_path)
    assert time.process_time() - began < 9
    assert result.status == "completed"
    assert result.nodes["S"].runs == 1000
    assert result.nodes["S/B"].runs == 2000
    found = [event for event in read_events(tmp_path / result.run_id) if "unit" in event]
    assert len(found) == 2000


def _inline(graph: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "config", "config": dict(graph)}


async def test_units_in_a_loop_are_units_of_each_round():
    graph = workflow(
        [
            node("A", "passthrough", only_last_message=False),
            node("M", "passthrough"),
            node("C", "loop_counter", max_iterations=3),
            node("E", "passthrough"),
        ],
        [
            arrow("A -> M", dynamic=dynamic()),
            arrow("M -> C"),
            arrow("M -> A"),
            arrow("C -> A"),
            arrow("C -> E"),
        ],
    )
    recorder = Recorder()
    result = await devall.run(graph, task="a\nb", on_event=recorder)
    assert result.status == "completed"
    paths = [event.path for event in recorder.of(UnitStarted)]
    assert paths == [f"/M@{visit}/unit:{unit}" for visit in (1, 2, 3) for unit in (1, 2)]


async def test_units_of_a_subgraph_within_units_have_nested_paths():
    inner = {
        "start": "X",
        "nodes": [node("X", "passthrough"), node("Y", "passthrough")],
        "edges": [
            arrow("X -> Y", dynamic={"type": "map", "split": {"type": "regex", "pattern": r"\w+"}})
        ],
    }
    graph = workflow(
        [node("L", "literal", content="a b\nc"), node("S", "subgraph", **_inline(inner))],
        [arrow("L -> S", dynamic=dynamic())],
    )
    recorder = Recorder()
    await devall.run(graph, on_event=recorder)
    paths = {event.path for event in recorder.of(UnitStarted)}
    assert "/S@1/unit:1/Y@1/unit:2" in paths
    assert "/S@1/unit:1/X@1" in {event.path for event in recorder.of(NodeStarted)}
    assert outputs(recorder, "S") == ["a", "b", "c"]


async def test_outputs_of_units_that_logs_must_not_hold_are_not_in_the_log(tmp_path: Path):
    graph = workflow(
        [
            node("L", "literal", content="open sesame\nshut sesame"),
            {**node("M", "passthrough"), "log_output": False},
        ],
        [
            arrow(
                "L -> M",
                process={"type": "regex_extract", "config": {"pattern": "sesame"}},
                dynamic=dynamic(),
            )
        ],
    )
    result: RunResult = await devall.run(graph, logs_dir=tmp_path)
    events = read_events(tmp_path / result.run_id)
    told = [event for event in events if event["event"] == "unit_finished"]
    assert told
    assert "sesame" not in json.dumps([event["outputs"] for event in told])
