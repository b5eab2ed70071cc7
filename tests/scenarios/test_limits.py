"""Limits, usage and cost of whole runs, over real HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.app import resume
from devall.config.limits import Limits
from devall.core.events import ModelCallFailed, NodeFailed, NodeFinished, Warned
from devall.engine.result import RunResult
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

MINI = "gpt-4o-mini"
"""A model whose price is known: 0.15 and 0.60 dollars a million, 0.075 for cached input."""


def agent(name: str, model: str | None = None, **node: Any) -> dict[str, Any]:
    config = {"provider": "openai", "name": model or name.lower(), "retry": {"enabled": False}}
    return {"id": name, "type": "agent", "config": config | node.pop("config", {}), **node}


def subgraph(name: str, nodes: Sequence[Any], **more: Any) -> dict[str, Any]:
    graph = {"start": nodes[0]["id"], "nodes": list(nodes), "edges": more.pop("edges", [])}
    graph |= more.pop("graph", {})
    return {"id": name, "type": "subgraph", "config": {"type": "config", "config": graph}, **more}


def workflow(nodes: Sequence[Any], edges: Sequence[Any] = (), **graph: Any) -> LoadedWorkflow:
    listed = [
        dict(zip(("from", "to"), e.split(" -> "), strict=True)) if isinstance(e, str) else e
        for e in edges
    ]
    start = graph.pop("start", nodes[0]["id"])
    data = {"graph": {"start": start, "nodes": list(nodes), "edges": listed, **graph}}
    return load_mapping(data, folder=Path.cwd())


def said(text: str, read: int, written: int, cached: int = 0, **more: Any) -> dict[str, Any]:
    usage = {
        "prompt_tokens": read,
        "completion_tokens": written,
        "prompt_tokens_details": {"cached_tokens": cached},
    }
    return {"text": text, "usage": usage, **more}


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    """Makes a server the endpoint of the agents."""

    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


def made(server: ChatServer) -> int:
    return sum(map(len, server.calls.values()))


def error_of(result: RunResult) -> tuple[str, int, str]:
    assert result.error is not None
    return result.status, result.exit_code, result.error.message


def near(result: RunResult) -> list[str]:
    return [text for text in result.warnings if "are used" in text]


# Where a bound may stand: on the graph, on the node, on a subgraph's node, in a subgraph's graph,
# on a node of a subgraph.
def on_graph(limits: Mapping[str, Any], **node: Any) -> LoadedWorkflow:
    return workflow([agent("A", **node), agent("B")], ["A -> B"], limits=limits)


def on_node(limits: Mapping[str, Any], **node: Any) -> LoadedWorkflow:
    return workflow([agent("A", limits=limits, **node), agent("B")], ["A -> B"])


def on_subgraph_node(limits: Mapping[str, Any], **node: Any) -> LoadedWorkflow:
    return workflow([subgraph("S", [agent("A", **node)], limits=limits), agent("B")], ["S -> B"])


def in_subgraph(limits: Mapping[str, Any], **node: Any) -> LoadedWorkflow:
    inner = subgraph("S", [agent("A", **node)], graph={"limits": limits})
    return workflow([inner, agent("B")], ["S -> B"])


def on_inner_node(limits: Mapping[str, Any], **node: Any) -> LoadedWorkflow:
    return workflow([subgraph("S", [agent("A", limits=limits, **node)]), agent("B")], ["S -> B"])


EVERYWHERE = pytest.mark.parametrize(
    "place", [on_graph, on_node, on_subgraph_node, in_subgraph, on_inner_node]
)


@EVERYWHERE
async def test_max_seconds_holds_everywhere(use, place) -> None:
    async with ChatServer({"a": [{"fault": "silence"}]}) as server:
        use(server)
        result = await devall.run(place({"max_seconds": 0.3}), task="x")
        await server.until(lambda: server.abandoned == 1, seconds=2)
    status, code, message = error_of(result)
    assert (status, code) == ("limit_reached", 6)
    assert "max_seconds" in message
    assert "b" not in server.calls


@EVERYWHERE
async def test_max_model_calls_holds_everywhere(use, place) -> None:
    more = {"tooling": [{"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}]}
    calls = [{"tool_calls": [{"name": "get_city_num", "arguments": {"city": "x"}}]}] * 5
    async with ChatServer({"a": calls}) as server:
        use(server)
        result = await devall.run(place({"max_model_calls": 2}, config=more), task="x")
    status, code, message = error_of(result)
    assert (status, code) == ("limit_reached", 6)
    assert "max_model_calls" in message
    assert (made(server), result.usage.model_calls) == (2, 2)


@EVERYWHERE
async def test_max_tool_calls_holds_everywhere_also_within_one_message(use, place) -> None:
    more = {"tooling": [{"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}]}
    calls = [{"name": "get_city_num", "arguments": {"city": str(n)}} for n in range(20)]
    async with ChatServer({"a": [{"tool_calls": calls}]}) as server:
        use(server)
        result = await devall.run(place({"max_tool_calls": 5}, config=more), task="x")
    status, code, message = error_of(result)
    assert (status, code) == ("limit_reached", 6)
    assert "max_tool_calls" in message
    assert (result.usage.tool_calls, made(server)) == (5, 1)


@EVERYWHERE
async def test_a_request_that_would_go_over_max_tokens_is_not_made(use, place) -> None:
    more = {"params": {"max_tokens": 500}}
    async with ChatServer() as server:
        use(server)
        result = await devall.run(place({"max_tokens": 400}, config=more), task="a short task")
    status, code, message = error_of(result)
    assert (status, code) == ("limit_reached", 6)
    assert "max_tokens" in message
    assert "may use about 50" in message
    assert (made(server), result.usage.model_calls) == (0, 0)


@EVERYWHERE
async def test_a_reply_that_goes_over_max_tokens_is_kept_and_nothing_follows(use, place) -> None:
    async with ChatServer({"a": [said("what was paid for", 300, 200)]}) as server:
        use(server)
        recorder = Recorder()
        result = await devall.run(place({"max_tokens": 400}), task="x", on_event=recorder)
    status, code, message = error_of(result)
    assert (status, code) == ("limit_reached", 6)
    assert "max_tokens" in message
    assert "500 are used" in message
    finished = [e for e in recorder.of(NodeFinished) if e.node.endswith("A")]
    assert [m.text for e in finished for m in e.outputs] == ["what was paid for"]
    assert (made(server), result.usage.tokens) == (1, 500)


@EVERYWHERE
async def test_max_usd_holds_everywhere_before_the_call(use, place) -> None:
    more = {"name": MINI, "params": {"max_tokens": 1_000_000}}
    async with ChatServer() as server:
        use(server)
        result = await devall.run(place({"max_usd": 0.5}, config=more), task="x")
    status, code, message = error_of(result)
    assert (status, code, made(server)) == ("limit_reached", 5, 0)
    assert "max_usd" in message


@EVERYWHERE
async def test_max_usd_holds_everywhere_after_the_call(use, place) -> None:
    async with ChatServer({MINI: [said("dear", 1_000_000, 1_000_000)]}) as server:
        use(server)
        result = await devall.run(place({"max_usd": 0.5}, config={"name": MINI}), task="x")
    status, code, message = error_of(result)
    assert (status, code, made(server)) == ("limit_reached", 5, 1)
    assert "max_usd" in message
    assert result.usage.usd == pytest.approx(0.75)


@pytest.mark.parametrize("is_inside", [False, True])
async def test_max_loop_iterations_holds_for_a_graph_and_a_subgraph(use, is_inside) -> None:
    loop = [{"from": "A", "to": "B"}, {"from": "B", "to": "A"}]
    nodes = [agent("A"), agent("B")]
    limits = {"max_loop_iterations": 5}
    inner = subgraph("S", nodes, edges=loop, graph={"limits": limits})
    async with ChatServer() as server:
        use(server)
        file = workflow([inner]) if is_inside else workflow(nodes, loop, limits=limits)
        result = await devall.run(file, task="x")
    status, code, message = error_of(result)
    assert (status, code, made(server)) == ("limit_reached", 6, 10)
    assert "loop A, B" in message
    assert near(result) == ["4 of `max_loop_iterations` of loop A, B (5) are used"]


async def test_the_last_reply_of_a_run_that_went_over_is_its_answer(use) -> None:
    async with ChatServer({"a": [said("paid for", 300, 200)]}) as server:
        use(server)
        result = await devall.run(workflow([agent("A")], limits={"max_tokens": 400}), task="x")
    assert (result.status, result.exit_code, result.answer) == ("limit_reached", 6, "paid for")


async def test_tools_that_a_reply_over_the_limit_asks_for_are_not_run(use) -> None:
    more = {"tooling": [{"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}]}
    call = {"name": "get_city_num", "arguments": {"city": "x"}}
    async with ChatServer({"a": [said("", 300, 200, tool_calls=[call])]}) as server:
        use(server)
        file = workflow([agent("A", config=more)], limits={"max_tokens": 400})
        result = await devall.run(file, task="x")
    assert (result.status, result.usage.tool_calls, made(server)) == ("limit_reached", 0, 1)


async def test_calls_side_by_side_do_not_go_over_a_limit_together(use) -> None:
    names = [f"M{n}" for n in range(6)]
    edges = [f"A -> {name}" for name in names]
    more = {"params": {"max_tokens": 100}}
    script = {"a": [said("go", 10, 5)], **{n.lower(): [said("x", 20, 90)] for n in names}}
    async with ChatServer(script) as server:
        use(server)
        nodes = [agent("A"), *(agent(name, config=more) for name in names)]
        result = await devall.run(workflow(nodes, edges, limits={"max_tokens": 400}), task="x")
    assert result.status == "limit_reached"
    assert made(server) <= 4
    assert result.usage.tokens <= 400


async def test_a_nodes_own_limit_may_be_continued_and_that_of_the_run_may_not(use) -> None:
    for limits, status in (({"node": {"max_tokens": 50}}, "completed"), ({}, "limit_reached")):
        async with ChatServer({"a": [said("long", 60, 60)]}) as server:
            use(server)
            inner = agent("A", limits=limits.get("node", {}), on_error="continue")
            file = workflow(
                [{"id": "L", "type": "literal", "config": {"content": "l"}}, inner, agent("B")],
                ["L -> A", "L -> B", "A -> B"],
                limits={} if limits else {"max_tokens": 50},
            )
            recorder = Recorder()
            result = await devall.run(file, task="x", on_event=recorder)
        assert result.status == status
        assert ("b" in server.calls) == bool(limits)
        assert [e.continued for e in recorder.of(NodeFailed)] == ([True] if limits else [])


async def test_a_limit_of_the_run_met_in_a_subgraph_ends_the_run_whatever_on_error_says(
    use,
) -> None:
    inner = subgraph("S", [agent("A")], on_error="continue")
    async with ChatServer() as server:
        use(server)
        file = workflow([inner, agent("B")], ["S -> B"], limits={"max_model_calls": 0})
        result = await devall.run(file, task="x")
    assert (result.status, made(server)) == ("limit_reached", 0)


async def test_a_nodes_seconds_are_those_of_all_its_runs(use) -> None:
    replies = [{"text": "again", "delay": 0.2}] * 10
    async with ChatServer({"a": replies}) as server:
        use(server)
        file = workflow([agent("A", limits={"max_seconds": 0.5})], ["A -> A"])
        result = await devall.run(file, task="x")
    status, code, message = error_of(result)
    assert (status, code) == ("limit_reached", 6)
    assert "max_seconds of node A" in message
    assert made(server) <= 3


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"max_model_calls": 5}, "4 of `max_model_calls` (5) are used"),
        ({"max_tokens": 100}, "80 of `max_tokens` (100) are used"),
        ({"max_usd": 0.00006}, "4.8e-05 of `max_usd` (6e-05) are used"),
    ],
)
async def test_at_80_percent_a_warning_says_so_once(use, limits: Any, text: str) -> None:
    names = "ABCDE"
    async with ChatServer({MINI: [said("x", 0, 20)] * 5}) as server:
        use(server)
        edges = [f"{a} -> {b}" for a, b in pairwise(names)]
        recorder = Recorder()
        nodes = [agent(name, MINI, config={"params": {"max_tokens": 1}}) for name in names]
        result = await devall.run(
            workflow(nodes[:-1], edges[:-1], limits=limits), task="x", on_event=recorder
        )
    assert result.status == "completed"
    assert near(result) == [f"node D: {text}"]
    assert [e.code for e in recorder.of(Warned)] == ["limit_near"]


async def test_a_warning_comes_when_80_percent_of_the_time_are_over(use) -> None:
    async with ChatServer({"a": [{"text": "done", "delay": 3.3}]}) as server:
        use(server)
        result = await devall.run(workflow([agent("A")], limits={"max_seconds": 4}), task="x")
    assert result.status == "completed"
    assert near(result) == ["3.2 of `max_seconds` (4) are used"]


async def test_limits_of_the_caller_tighten_those_of_the_file_and_never_loosen_them(use) -> None:
    async with ChatServer() as server:
        use(server)
        for own, given, calls in ((5, 1, 1), (1, 5, 1), (None, 2, 2)):
            before = made(server)
            limits = {} if own is None else {"max_model_calls": own}
            file = workflow(
                [agent("A"), agent("B"), agent("C")], ["A -> B", "B -> C"], limits=limits
            )
            result = await devall.run(file, task="x", limits=Limits(max_model_calls=given))
            assert (result.status, made(server) - before) == ("limit_reached", calls)


async def test_usage_is_summed_by_node_and_by_model_subgraphs_and_retries_included(use) -> None:
    script = {
        MINI: [said("a", 100, 10, cached=80), said("inner", 50, 5)],
        "unknown": [{"status": 503}, said("b", 7, 3)],
    }
    retry = {"retry": {"min_wait_seconds": 0, "max_wait_seconds": 0}}
    async with ChatServer(script) as server:
        use(server)
        file = workflow(
            [
                agent("A", MINI),
                subgraph("S", [agent("X", MINI)]),
                agent("B", "unknown", config=retry),
            ],
            ["A -> S", "S -> B"],
        )
        result = await devall.run(file, task="x")
    assert result.status == "completed"
    usage = result.usage
    assert (usage.model_calls, usage.input_tokens, usage.output_tokens) == (4, 157, 18)
    assert (usage.cached_tokens, usage.unknown_calls, usage.unpriced_calls) == (80, 0, 1)
    assert {name: each.tokens for name, each in result.usage_by_node.items()} == {
        "A": 110,
        "S/X": 55,
        "B": 10,
    }
    mini = (20 * 0.15 + 80 * 0.075 + 50 * 0.15 + 15 * 0.60) / 1_000_000
    assert result.usage_by_model[MINI].usd == pytest.approx(mini)
    assert usage.usd == pytest.approx(mini)
    assert result.usage_by_model["unknown"].model_calls == 2
    assert not result.warnings
    found = json.loads(json.dumps(result.to_json()))
    assert (found["usage"]["usd_at_least"], found["usage"]["tokens_at_least"]) == (True, False)
    assert found["usage_by_model"]["unknown"]["unpriced_calls"] == 1
    assert found["usage_by_node"]["S/X"]["input_tokens"] == 50


@pytest.mark.parametrize(("limits", "warnings"), [({}, 0), ({"max_usd": 1}, 1)])
async def test_a_model_of_unknown_price_costs_null_and_is_warned_of_where_money_is_bounded(
    use, limits, warnings
) -> None:
    async with ChatServer() as server:
        use(server)
        nodes = [agent("A", "nobodys"), agent("B", "nobodys")]
        file = workflow(nodes, ["A -> B"], limits=limits)
        result = await devall.run(file, task="x")
    assert len([text for text in result.warnings if "price" in text]) == warnings
    assert result.to_json()["usage"]["usd"] is None
    assert result.to_json()["usage_by_model"]["nobodys"]["usd"] is None


async def test_a_call_without_usage_makes_the_totals_lower_bounds(use) -> None:
    async with ChatServer({MINI: [{"text": "x", "usage": {}}, said("y", 10, 1)]}) as server:
        use(server)
        result = await devall.run(
            workflow([agent("A", MINI), agent("B", MINI)], ["A -> B"]), task="x"
        )
    usage = result.usage
    assert (usage.model_calls, usage.unknown_calls, usage.unpriced_calls) == (2, 1, 1)
    assert usage.tokens == 11
    assert usage.to_json()["tokens_at_least"]
    assert usage.to_json()["usd_at_least"]


async def test_what_a_provider_does_not_count_is_estimated_for_the_limits(use) -> None:
    async with ChatServer({"a": [{"text": "word " * 400, "usage": {}}]}) as server:
        use(server)
        result = await devall.run(on_graph({"max_tokens": 400}), task="x")
    assert (result.status, made(server)) == ("limit_reached", 1)


@pytest.mark.parametrize("protocol", ["chat", "responses"])
async def test_a_failed_attempt_that_was_charged_is_counted(use, protocol: str) -> None:
    bad = said("lost", 40, 2, fault="null_choices")
    if protocol == "responses":
        error = {"code": "invalid_prompt", "message": "no"}
        usage = {"input_tokens": 40, "output_tokens": 2}
        bad = {"body": {"status": "failed", "error": error, "output": [], "usage": usage}}
    async with ChatServer({MINI: [bad]}) as server:
        use(server)
        recorder = Recorder()
        file = workflow([agent("A", MINI, config={"params": {"protocol": protocol}})])
        result = await devall.run(file, task="x", on_event=recorder)
    assert result.status == "failed"
    assert (result.usage.input_tokens, result.usage.output_tokens) == (40, 2)
    assert result.usage.unknown_calls == 0
    (failed,) = recorder.of(ModelCallFailed)
    assert failed.usd == pytest.approx((40 * 0.15 + 2 * 0.6) / 1_000_000)


async def test_an_answer_that_broke_off_was_charged_nobody_knows_how_much(use) -> None:
    retry = {"retry": {"min_wait_seconds": 0, "max_wait_seconds": 0}}
    async with ChatServer(
        {"a": [{"text": "lost", "fault": "half_stream"}, said("ok", 4, 1)]}
    ) as server:
        use(server)
        result = await devall.run(workflow([agent("A", config=retry)]), task="x")
    assert (result.status, result.usage.model_calls, result.usage.unknown_calls) == (
        "completed",
        2,
        1,
    )


async def test_a_call_under_way_when_its_node_ends_is_unknown_and_the_totals_at_least(use) -> None:
    script = {
        "a": [said("go", 5, 5)],
        "bad": [{"status": 400, "delay": 0.2}],
        "slow": [{"fault": "silence"}],
    }
    async with ChatServer(script) as server:
        use(server)
        file = workflow([agent("A"), agent("Bad"), agent("Slow")], ["A -> Bad", "A -> Slow"])
        result = await devall.run(file, task="x")
    assert result.status == "failed"
    assert (result.usage.model_calls, result.usage.unknown_calls) == (3, 1)
    assert result.usage_by_node["Slow"].unknown_calls == 1
    assert result.usage_by_model["slow"].model_calls == 1
    assert result.usage.to_json()["tokens_at_least"]


async def test_an_endpoint_that_names_the_model_behind_a_deployment_gives_its_price(use) -> None:
    body = {
        "model": f"{MINI}-2024-07-18",
        "choices": [{"message": {"content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1_000_000, "completion_tokens": 0},
    }
    async with ChatServer({"my-deployment": [{"body": body}]}) as server:
        use(server)
        result = await devall.run(workflow([agent("A", "my-deployment")]), task="x")
    assert result.answer == "ok"
    assert result.usage_by_model["my-deployment"].usd == pytest.approx(0.15)


@pytest.mark.parametrize(
    ("options", "code", "limit"),
    [(("--max-usd", "0.5"), 5, "max_usd"), (("--max-seconds", "0.4"), 6, "max_seconds")],
)
def test_the_command_line_bounds_money_and_time(
    devall: Any, workspace: Path, options: tuple[str, str], code: int, limit: str
) -> None:
    nodes = [agent("A", MINI), agent("B", "slow")]
    graph = {"start": "A", "nodes": nodes, "edges": [{"from": "A", "to": "B"}]}
    (workspace / "w.yaml").write_text(json.dumps({"graph": graph}))
    script = {MINI: [said("dear", 1_000_000, 1_000_000)], "slow": [{"fault": "silence"}]}
    with ChatServer(script) as server:
        done = devall("run", "w.yaml", "--task", "x", *options, "--json", env=server.env, code=code)
    found = json.loads(done.stdout)
    assert (found["status"], found["error"]["code"]) == ("limit_reached", "limit_reached")
    assert limit in found["error"]["message"]
    assert "$0.75" in done.stderr


@pytest.mark.parametrize(
    "options", [("--max-usd", "-1"), ("--max-seconds", "0"), ("--max-usd", "nan")]
)
def test_a_bound_that_bounds_nothing_is_wrong_usage(
    devall: Any, workspace: Path, options: tuple[str, str]
) -> None:
    graph = {"start": "L", "nodes": [{"id": "L", "type": "literal", "config": {"content": "x"}}]}
    (workspace / "w.yaml").write_text(json.dumps({"graph": graph}))
    done = devall("run", "w.yaml", *options, code=2)
    assert options[0] in done.stderr


async def interrupted(file: LoadedWorkflow, server: ChatServer, **options: Any) -> RunResult:
    """What a run gives that gets SIGINT while model `slow` is asked."""
    running = asyncio.create_task(devall.run(file, task="x", **options))
    await server.until(lambda: bool(server.calls.get("slow")) and server.active == 1)
    running.cancel("SIGINT")
    return await running


async def test_a_call_under_way_at_an_interruption_is_unknown_also_when_the_run_goes_on(
    use, workspace: Path
) -> None:
    script = {MINI: [said("a", 100, 10)], "slow": [{"fault": "silence"}, said("b", 20, 2)]}
    (workspace / "w.yaml").write_text(
        json.dumps(
            {
                "graph": {
                    "start": "A",
                    "nodes": [agent("A", MINI), agent("B", "slow")],
                    "edges": [{"from": "A", "to": "B"}],
                }
            }
        )
    )
    async with ChatServer(script) as server:
        use(server)
        file = devall.load_workflow("w.yaml")
        first = await interrupted(file, server, run_id="r", logs_dir="logs")
        again = await resume("r", logs_dir="logs")
    assert (first.status, first.exit_code) == ("cancelled", 130)
    assert (first.usage.model_calls, first.usage.unknown_calls) == (2, 1)
    assert (first.usage.tokens, first.usage_by_node["B"].unknown_calls) == (110, 1)
    assert (again.status, again.answer) == ("completed", "b")
    assert (again.usage.model_calls, again.usage.unknown_calls) == (3, 1)
    assert again.usage.tokens == 132
    assert again.usage.to_json()["tokens_at_least"]
    assert again.usage_by_model["slow"].model_calls == 2


async def test_a_run_that_goes_on_keeps_its_bounds_and_what_it_has_used(
    use, workspace: Path
) -> None:
    graph = {
        "start": "A",
        "nodes": [agent("A", MINI), agent("B", MINI), agent("C", MINI)],
        "edges": [{"from": "A", "to": "B"}, {"from": "B", "to": "C"}],
    }
    (workspace / "w.yaml").write_text(json.dumps({"graph": graph}))
    async with ChatServer({MINI: [said("dear", 1_000_000, 0)] * 3}) as server:
        use(server)
        bounds = Limits(max_usd=0.2)
        first = await devall.run("w.yaml", task="x", run_id="r", logs_dir="logs", limits=bounds)
        same = await resume("r", logs_dir="logs")
        calls = made(server)
        more = await resume("r", logs_dir="logs", limits=Limits(max_usd=10))
    assert (first.status, first.exit_code, calls) == ("limit_reached", 5, 2)
    assert (same.status, same.exit_code) == ("limit_reached", 5)
    assert (more.status, made(server)) == ("completed", 3)
    assert more.usage.usd == pytest.approx(0.45)


def test_after_a_kill_the_totals_are_at_least(devall: Any, workspace: Path) -> None:
    nodes = [agent("A", MINI), agent("B", "slow")]
    graph = {"start": "A", "nodes": nodes, "edges": [{"from": "A", "to": "B"}]}
    (workspace / "w.yaml").write_text(json.dumps({"graph": graph}))
    script = {MINI: [said("a", 100, 10)], "slow": [{"fault": "silence"}, said("b", 20, 2)]}
    with ChatServer(script) as server:
        env = os.environ | server.env
        options = ["w.yaml", "--task", "x", "--run-id", "r", "--max-usd", "3"]
        child = subprocess.Popen(
            [sys.executable, "-m", "devall", "run", *options],
            cwd=workspace,
            env=env,
            stderr=subprocess.DEVNULL,
        )
        server.wait_until(lambda: bool(server.calls.get("slow")), seconds=20)
        child.kill()
        child.wait(timeout=20)
        done = devall("resume", "r", "--json", env=server.env, code=0)
    usage = json.loads(done.stdout)["usage"]
    assert (usage["model_calls"], usage["unknown_calls"], usage["input_tokens"]) == (3, 1, 120)
    assert usage["tokens_at_least"]
    assert "at least 120 tokens in, 12 out · at least $" in done.stderr
