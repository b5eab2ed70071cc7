"""What a receiver of OTLP gets of whole runs, with models that play a script in process."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace

import devall
from devall.core.errors import AnswerNeeded
from devall.core.events import ToolCallFinished
from devall.core.outgoing import HEADERS
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.scripted_model import ScriptedModels

BUSY = {"error": "rate_limit_exceeded"}
QUICK = {"min_wait_seconds": 0, "max_wait_seconds": 0}


def agent(name: str, **config: Any) -> dict[str, Any]:
    base = {"provider": "scripted", "name": name.lower(), "retry": QUICK}
    return {"id": name, "type": "agent", "config": base | config}


def flow(*nodes: dict[str, Any], edges: list[Any] = [], **graph: Any) -> LoadedWorkflow:  # noqa: B006
    plain = [{"from": e[0], "to": e[1]} if isinstance(e, tuple) else e for e in edges]
    data = {"id": "f", "start": nodes[0]["id"], "nodes": list(nodes), "edges": plain} | graph
    return load_mapping({"graph": data}, folder=Path.cwd())


async def played(workflow: LoadedWorkflow, script: dict[str, Any], **options: Any):
    models = ScriptedModels(script)
    return await devall.run(workflow, model_source=models, **{"task": "hi"} | options)


async def test_an_agents_turns_and_calls_lie_in_its_span(otlp, project):
    tools = {"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}
    asks = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": "Rome"}, "id": "c1"}]}
    result = await played(flow(agent("A", tooling=tools)), {"a": [asks, "done"]}, run_id="r1")
    assert result.status == "completed", result.error
    assert otlp.tree() == [
        "invoke_workflow f",
        "  invoke_agent A",
        "    chat a",
        "    execute_tool get_city_num",
        "    chat a",
    ]
    assert len({span.trace for span in otlp.spans}) == 1
    root, node = otlp.span("invoke_workflow f"), otlp.span("invoke_agent A")
    tool, chat = otlp.span("execute_tool get_city_num"), otlp.named("chat a")[0]
    assert {span.kind for span in (root, node, tool)} == {"internal"}
    assert chat.kind == "client"
    assert {span.status for span in otlp.spans} == {"unset"}
    assert root.attributes["devall.run_id"] == "r1"
    assert root.attributes["devall.model_calls"] == 2
    assert node.attributes["gen_ai.agent.name"] == "A"
    assert node.attributes["devall.path"] == "/A@1"
    assert tool.attributes["gen_ai.tool.call.id"] == "c1"
    wanted = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "scripted",
        "gen_ai.request.model": "a",
        "gen_ai.response.model": "a",
        "gen_ai.conversation.id": "r1",
        "gen_ai.agent.name": "A",
    }
    assert wanted.items() <= chat.attributes.items()
    assert chat.attributes["gen_ai.response.finish_reasons"] == ["tool_calls"]
    assert chat.attributes["gen_ai.usage.input_tokens"] > 0
    last = otlp.named("chat a")[1]
    assert last.attributes["gen_ai.usage.output_tokens"] > 0
    assert last.attributes["gen_ai.response.time_to_first_chunk"] >= 0
    for span in otlp.spans:
        assert root.began <= span.began <= span.ended <= root.ended


async def test_nothing_that_is_said_goes_along_unless_it_is_asked_for(otlp):
    await played(flow(agent("A", role="ROLE-words")), {"a": ["ANSWER-words"]}, task="TASK-words")
    assert "-words" not in str(otlp.spans)


async def test_side_by_side_branches_units_and_subgraphs_do_not_get_into_each_other(otlp):
    inner = {"start": "X", "nodes": [agent("X"), agent("Y")], "edges": [{"from": "X", "to": "Y"}]}
    split = {"type": "map", "split": {"type": "regex", "pattern": "[a-z]+"}}
    workflow = flow(
        {"id": "words", "type": "literal", "config": {"content": "one two"}},
        agent("L"),
        agent("R"),
        agent("M"),
        {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner}},
        edges=[
            ("words", "L"),
            ("words", "R"),
            {"from": "words", "to": "M", "dynamic": split},
            ("L", "S"),
        ],
    )
    script = {"l": [{"text": "l", "delay": 0.02}], "r": [{"text": "r", "delay": 0.01}]}
    result = await played(workflow, script | {"m": [{"text": "m", "delay": 0.02}, "m"]})
    assert result.status == "completed", result.error
    lines = otlp.tree()
    assert lines[:2] == ["invoke_workflow f", "  literal words"]
    blocks = sorted("\n".join(lines[2:]).replace("\n  inv", "\n|  inv").split("\n|"))
    assert blocks == [
        "  invoke_agent L\n    chat l",
        "  invoke_agent M\n    unit M\n      chat m\n    unit M\n      chat m",
        "  invoke_agent R\n    chat r",
        "  invoke_workflow S\n    invoke_agent S/X\n      chat x\n    invoke_agent S/Y\n      chat y",
    ]
    units = otlp.named("unit M")
    assert sorted(unit.attributes["devall.unit"] for unit in units) == [1, 2]
    assert {unit.attributes["devall.units"] for unit in units} == {2}
    assert otlp.span("invoke_agent M").attributes["devall.model_calls"] == 2
    assert otlp.span("invoke_workflow S").attributes["gen_ai.workflow.name"] == "S"


async def test_a_failed_attempt_is_a_span_with_an_error_and_its_retry_an_event(otlp):
    await played(flow(agent("A")), {"a": [BUSY, "well"]})
    first, second = otlp.named("chat a")
    assert (first.status, first.attributes["error.type"]) == ("error", "429")
    assert first.attributes["devall.attempt"] == 1
    assert "gen_ai.usage.input_tokens" not in first.attributes
    assert (second.status, second.attributes["devall.attempt"]) == ("unset", 2)
    retry = otlp.span("invoke_agent A").event("devall.retry").attributes
    assert retry["error.type"] == "429"
    assert retry["devall.attempt"] == 1
    assert otlp.span("invoke_agent A").status == "unset"
    failed = otlp.point("gen_ai.client.operation.duration", error__type="429")
    assert failed.count == 1
    assert "gen_ai.response.model" not in failed.attributes
    assert otlp.point("gen_ai.client.token.usage", gen_ai__token__type="output").count == 1


async def test_a_failing_node_fails_its_run_and_what_it_stops_is_cancelled(otlp):
    workflow = flow(agent("A"), agent("B"), start=["A", "B"])
    script = {"a": [{"status": 401, "error": "bad key"}], "b": [{"fault": "silence"}]}
    result = await played(workflow, script)
    assert result.status == "failed"
    node, root = otlp.span("invoke_agent A"), otlp.span("invoke_workflow f")
    assert (node.status, node.attributes["error.type"]) == ("error", "model_refused")
    assert "scripted 401" in node.message
    assert (root.status, root.attributes["error.type"]) == ("error", "model_refused")
    assert root.attributes["devall.status"] == "failed"
    other = otlp.span("invoke_agent B")
    assert (other.status, other.attributes["devall.status"]) == ("unset", "cancelled")
    assert otlp.span("chat b").parent == other.id
    assert otlp.point("devall.node.duration", devall__status="failed").count == 1
    assert otlp.point("devall.run.duration", error__type="model_refused").count == 1


async def test_a_tool_that_fails_is_an_error_of_its_span_alone(otlp):
    tools = {"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}
    asks = {"tool_calls": [{"name": "get_city_num", "arguments": {"town": "Rome"}}]}
    await played(flow(agent("A", tooling=tools)), {"a": [asks, "never mind"]})
    tool = otlp.span("execute_tool get_city_num")
    assert (tool.status, tool.attributes["error.type"]) == ("error", "tool_error")
    assert otlp.span("invoke_agent A").status == "unset"
    assert otlp.point("gen_ai.execute_tool.duration", error__type="tool_error").count == 1


async def test_rounds_of_loops_are_told_by_the_graph_and_by_each_node(otlp):
    def says(word: str) -> dict[str, Any]:
        return {"type": "keyword", "config": {"any": [word]}}

    workflow = flow(
        agent("A"),
        {"id": "out", "type": "passthrough"},
        edges=[
            {"from": "A", "to": "A", "condition": says("again")},
            {"from": "A", "to": "out", "condition": says("done")},
        ],
    )
    result = await played(workflow, {"a": ["again", "again", "done"]})
    assert result.status == "completed", result.error
    rounds = [span.attributes["devall.loop.round"] for span in otlp.named("invoke_agent A")]
    assert rounds == [1, 2, 3]
    events = [e for e in otlp.span("invoke_workflow f").events if e.name == "devall.loop.round"]
    assert [e.attributes["devall.loop.round"] for e in events] == [1, 2, 3]
    assert events[0].attributes["devall.loop"] == ["A"]
    visits = [span.attributes["devall.visit"] for span in otlp.named("invoke_agent A")]
    assert visits == [1, 2, 3]
    left = otlp.span("invoke_workflow f").event("devall.loop.left").attributes
    assert (left["devall.loop.rounds"], left["devall.loop.exited"]) == (3, True)
    assert "devall.loop.round" not in otlp.span("passthrough out").attributes


async def test_the_time_that_a_human_takes_is_a_span_of_its_own(otlp):
    class Slow:
        async def ask(self, question: Any) -> str:
            await asyncio.sleep(0.02)
            return "yes"

    await played(flow({"id": "ask", "type": "human", "config": {}}), {}, human=Slow())
    assert otlp.tree() == ["invoke_workflow f", "  human ask", "    wait_for_human ask"]
    wait = otlp.span("wait_for_human ask")
    assert wait.ended - wait.began > 10_000_000
    assert wait.attributes["devall.status"] == "answered"


async def test_a_run_that_waits_for_a_human_is_no_error(otlp):
    class Nobody:
        async def ask(self, question: Any) -> str:
            raise AnswerNeeded([(question.path, question.text)])

    result = await played(flow({"id": "ask", "type": "human", "config": {}}), {}, human=Nobody())
    assert result.status == "waiting"
    root = otlp.span("invoke_workflow f")
    assert (root.status, root.attributes["devall.status"]) == ("unset", "waiting")
    assert otlp.span("wait_for_human ask").attributes["devall.status"] == "waiting"


async def test_what_is_skipped_and_warned_of_are_events(otlp):
    workflow = flow(
        agent("A"),
        {"id": "B", "type": "passthrough"},
        edges=[{"from": "A", "to": "B", "condition": False}],
        end=["B"],
    )
    await played(workflow, {})
    root = otlp.span("invoke_workflow f")
    assert root.event("devall.node.skipped").attributes["devall.node"] == "B"
    assert root.event("devall.warning").attributes["devall.code"] == "answer"
    assert "passthrough B" not in otlp.tree()


async def test_tokens_and_durations_are_measured_with_the_advised_boundaries(otlp):
    reply = {"text": "a b c", "usage": {"prompt_tokens": 7, "completion_tokens": 3}}
    await played(
        flow(agent("A"), agent("B") | {"config": agent("A")["config"]}, edges=[("A", "B")]),
        {"a": [reply, reply]},
    )
    tokens = otlp.point("gen_ai.client.token.usage", gen_ai__token__type="input")
    assert (tokens.count, tokens.sum) == (2, 14)
    assert tokens.bounds[:4] == [1, 4, 16, 64]
    assert tokens.bounds[-1] == 67108864
    assert tokens.attributes["gen_ai.request.model"] == "a"
    duration = otlp.point("gen_ai.client.operation.duration")
    assert duration.count == 2
    assert (duration.bounds[0], duration.bounds[-1]) == (0.01, 81.92)
    assert otlp.units["gen_ai.client.token.usage"] == "{token}"
    assert otlp.units["gen_ai.client.operation.duration"] == "s"
    assert otlp.point("devall.run.duration").attributes == {
        "gen_ai.workflow.name": "f",
        "devall.status": "completed",
    }
    assert otlp.point("devall.node.duration", devall__node="B").count == 1


async def test_a_resumed_run_is_linked_to_the_first_and_counts_nothing_twice(otlp, tmp_path):
    class Late:
        answer = ""

        async def ask(self, question: Any) -> str:
            if not self.answer:
                raise AnswerNeeded([(question.path, question.text)])
            return self.answer

    tools = {"type": "function", "config": {"tools": [{"name": "get_city_num"}]}}
    asks = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": "Rome"}}]}
    file = tmp_path / "w.yaml"
    graph = {
        "id": "f",
        "start": "A",
        "nodes": [agent("A", tooling=tools), {"id": "ask", "type": "human"}, agent("B")],
        "edges": [{"from": "A", "to": "ask"}, {"from": "ask", "to": "B"}],
    }
    file.write_text(json.dumps({"graph": graph}), encoding="utf-8")
    models = ScriptedModels({"a": [BUSY, asks, "one"], "b": ["two"]})
    human = Late()
    first = await devall.run(
        file, run_id="r", task="x", logs_dir=tmp_path / "logs", model_source=models, human=human
    )
    assert first.status == "waiting", first.error
    before = otlp.span("invoke_workflow f")
    counted = len(otlp.named("chat a"))
    otlp.spans.clear()
    otlp.metrics.clear()
    human.answer = "go on"
    again = await devall.resume("r", logs_dir=tmp_path / "logs", model_source=models, human=human)
    assert again.status == "completed", again.error
    assert counted == 3
    root = otlp.span("invoke_workflow f")
    assert root.trace != before.trace
    assert root.links == [(before.trace, before.id)]
    assert root.attributes["devall.turn_of_run"] == 2
    assert root.attributes["devall.run_id"] == before.attributes["devall.run_id"] == "r"
    assert otlp.tree() == [
        "invoke_workflow f",
        "  invoke_agent A",
        "  human ask",
        "    wait_for_human ask",
        "  invoke_agent B",
        "    chat b",
    ]
    assert otlp.span("invoke_agent A").attributes["devall.replayed_calls"] == 3
    assert otlp.point("gen_ai.client.operation.duration").attributes["gen_ai.request.model"] == "b"
    assert "gen_ai.execute_tool.duration" not in otlp.metrics
    nodes = {p.attributes["devall.node"] for p in otlp.metrics["devall.node.duration"]}
    assert nodes == {"ask", "B"}


async def test_a_replay_goes_to_no_network_at_all(otlp, tmp_path):
    file = tmp_path / "w.yaml"
    file.write_text(json.dumps({"graph": {"start": "A", "nodes": [agent("A")]}}), encoding="utf-8")
    models = ScriptedModels({"a": ["one"]})
    await devall.run(file, run_id="r", task="x", logs_dir=tmp_path / "logs", model_source=models)
    otlp.spans.clear()
    sent = len(otlp.paths)
    assert (await devall.replay("r", logs_dir=tmp_path / "logs")).answer == "one"
    assert len(otlp.paths) == sent


async def test_a_test_of_a_workflow_goes_to_no_network_either(otlp, write):
    write("w.yaml", json.dumps({"graph": {"start": "A", "nodes": [agent("A")]}}))
    case = {"workflow": "../w.yaml", "task": "x", "replies": {"A": ["one"]}}
    write("c/case.yaml", json.dumps(case | {"expect": {"answer": "one"}}))
    result = await devall.run_case("c/case.yaml")
    assert result.is_passed, result
    assert not otlp.paths


async def test_code_of_tools_and_edges_has_its_own_span_as_the_current_one(otlp, write, tmp_path):
    write(
        "functions/function_calling/place.py",
        """
        import time
        from opentelemetry import trace

        def place(n: int) -> str:
            "Where it runs."
            time.sleep(0.01 * n)
            return f"{trace.get_current_span().get_span_context().span_id:016x}"
        """,
    )
    write(
        "functions/edge/placed.py",
        """
        from opentelemetry import trace

        seen = []

        def placed(text: str) -> bool:
            found = f"{trace.get_current_span().get_span_context().span_id:016x}"
            raise RuntimeError(f"edge at {found}")
        """,
    )
    tools = {"type": "function", "config": {"tools": [{"name": "place"}]}}
    both = {"tool_calls": [{"name": "place", "arguments": {"n": n}, "id": f"c{n}"} for n in (2, 1)]}
    results: dict[tuple[str, str], str] = {}

    def see(event: Any) -> None:
        if isinstance(event, ToolCallFinished):
            results[event.node, event.call_id] = event.result

    workflow = flow(
        agent("A", tooling=tools),
        agent("B", tooling=tools),
        {"id": "C", "type": "passthrough"},
        edges=[
            {
                "from": "A",
                "to": "C",
                "condition": {"type": "function", "config": {"name": "placed"}},
            }
        ],
        start=["A", "B"],
    )
    script = {"a": [both, {"text": "done", "delay": 0.05}], "b": [both, "done"]}
    result = await played(workflow, script, on_event=see, functions_dir=tmp_path / "functions")
    assert result.error is not None
    node = otlp.span("invoke_agent A")
    assert f"edge at {node.id}" in result.error.message
    spans = otlp.named("execute_tool place")
    by_call = {
        (s.attributes["gen_ai.agent.name"], s.attributes["gen_ai.tool.call.id"]): s.id
        for s in spans
    }
    assert len(results) == 4
    assert results == by_call


async def test_runs_side_by_side_have_traces_of_their_own(otlp):
    script = {"a": [{"text": "x", "delay": 0.01}] * 4}
    models = ScriptedModels(script)
    await asyncio.gather(
        *(
            devall.run(flow(agent("A")), task="x", model_source=models, run_id=f"r{n}")
            for n in range(4)
        )
    )
    assert otlp.tree() == ["invoke_workflow f", "  invoke_agent A", "    chat a"] * 4
    assert len({span.trace for span in otlp.spans}) == 4
    assert len({span.resource["service.instance.id"] for span in otlp.spans}) == 4
    by_trace = {s.trace: s.attributes["devall.run_id"] for s in otlp.named("invoke_workflow f")}
    for span in otlp.named("chat a"):
        assert span.attributes["gen_ai.conversation.id"] == by_trace[span.trace]


async def test_who_tells_is_devall_or_what_the_environment_says(otlp, monkeypatch):
    await played(flow(agent("A")), {})
    assert otlp.spans[0].resource["service.name"] == "devall"
    assert otlp.spans[0].scope == "devall"
    otlp.spans.clear()
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "team=poets,service.instance.id=i1")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "poems")
    await played(flow(agent("A")), {})
    wanted = {"service.name": "poems", "team": "poets", "service.instance.id": "i1"}
    assert wanted.items() <= otlp.spans[0].resource.items()


async def test_the_environments_trace_is_the_runs_parent(otlp, monkeypatch):
    trace_id, span_id = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
    monkeypatch.setenv("TRACEPARENT", f"00-{trace_id}-{span_id}-01")
    await played(flow(agent("A")), {})
    root = otlp.span("invoke_workflow f")
    assert (root.trace, root.parent) == (trace_id, span_id)
    assert {span.trace for span in otlp.spans} == {trace_id}


@pytest.mark.parametrize("value", ["", "nonsense", "00-0-0-01"])
async def test_a_parent_that_is_none_makes_a_trace_of_its_own(otlp, monkeypatch, value):
    monkeypatch.setenv("TRACEPARENT", value)
    await played(flow(agent("A")), {})
    assert otlp.span("invoke_workflow f").parent == ""


async def test_the_context_of_the_caller_is_as_it_was(otlp):
    before = trace.get_current_span()
    await played(flow(agent("A")), {"a": [{"status": 401, "error": "no"}]})
    assert trace.get_current_span() is before
    await played(flow(agent("A")), {})
    assert trace.get_current_span() is before
    assert not HEADERS.get()
