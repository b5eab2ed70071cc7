from __future__ import annotations

from typing import Any

import pytest

from devall.core.messages import user
from devall.estimates.estimate import estimate
from devall.estimates.facts import AgentFacts, Facts, OfferedTool, ToolSide
from devall.estimates.values import NodeValue
from devall.graph.compile import compile_graph
from devall.loading.loader import load_mapping
from devall.models.base import ToolSchema

TOOL = OfferedTool(ToolSchema("look", "Looks.", {"type": "object", "properties": {}}), 400)
SIDE = ToolSide("functions look", "known", (TOOL,), 400)
SERVER = ToolSide("mcp_remote http://x", "not contacted", (), 400, is_known=False, is_server=True)


def planned(
    config: dict[str, Any], *sources: ToolSide, limits: dict[str, Any] | None = None, **node: Any
) -> NodeValue:
    """The estimate of the one agent of a graph."""
    base = {"provider": "openai", "name": "gpt-4o-mini", "role": "You answer."}
    params = {"max_tokens": 10} | config.pop("params", {})
    agent = {"id": "A", "type": "agent", "config": base | {"params": params} | config, **node}
    graph = {"start": "A", "nodes": [agent], "edges": [], "limits": limits or {}}
    facts = AgentFacts("openai", "gpt-4o-mini", sources)
    loaded = load_mapping({"graph": graph}, name="w")
    return estimate(compile_graph(loaded.root), Facts(user("x"), {"A": facts})).nodes[0]


SCHEMA = {"output_schema": {"type": "object"}}
THINKING = {"thinking": {"type": "reflection", "config": {"reflection_prompt": "Sure?"}}}


@pytest.mark.parametrize(
    ("config", "sources", "limits", "calls"),
    [
        ({}, (), {}, 1),
        ({}, (SIDE,), {}, 51),
        ({"params": {"tool_loop_limit": 4}}, (SIDE,), {}, 5),
        ({"params": {"tool_choice": "none"}}, (SIDE,), {}, 1),
        ({"params": {"tool_choice": "required", "tool_choice_then": "none"}}, (SIDE,), {}, 2),
        (THINKING, (), {}, 2),
        (SCHEMA, (), {}, 3),
        (SCHEMA | THINKING, (SERVER,), {}, 54),
        ({}, (SIDE,), {"max_model_calls": 7}, 7),
        # A turn calls a tool, or was cut off: at most every other one.
        ({}, (SIDE,), {"max_tool_calls": 3}, 8),
    ],
)
def test_the_model_calls_of_a_run(config, sources, limits, calls):
    found = planned(dict(config), *sources, limits=limits)
    assert found.cost.model_calls.value == calls
    assert found.cost.attempts.value == calls * 5
    assert found.cost.output_tokens.value == calls * 10


def test_tool_calls_have_no_bound_unless_one_is_set():
    free = planned({}, SIDE).cost.tool_calls
    assert (free.value, {each.key for each in free.missing}) == (None, {"limits.max_tool_calls"})
    assert planned({}, SIDE, limits={"max_tool_calls": 6}).cost.tool_calls.value == 6
    single = {"params": {"parallel_tool_calls": False, "tool_loop_limit": 4}}
    assert planned(single, SIDE).cost.tool_calls.value == 4


def test_results_of_tools_fill_requests_up_to_the_window():
    free = planned({"params": {"tool_loop_limit": 2}}, SIDE).cost.input_tokens
    assert free.value is not None
    assert 2 * 128_000 < free.value < 2 * 128_000 + 500, "the first request is known"
    bounded = planned({"params": {"tool_loop_limit": 2}}, SIDE, limits={"max_tool_calls": 1})
    assert bounded.cost.input_tokens.value is not None
    assert bounded.cost.input_tokens.value < 3 * 128_000
    history = planned({"history": {"max_tokens": 500}, "params": {"tool_loop_limit": 2}}, SIDE)
    assert history.cost.input_tokens.value is not None
    assert history.cost.input_tokens.value <= 3 * 1_000


def test_what_may_fail_and_be_left_out_calls_nothing_for_certain():
    assert planned({}).least.model_calls == 1
    assert planned({}, on_error="continue").least.model_calls == 0


def test_time_is_that_of_all_attempts_and_tools_have_none():
    found = planned({"params": {"timeout": 10}, "retry": {"enabled": False}})
    assert found.seconds.value == 10 + 60, "an endpoint may ask others to wait for a minute"
    with_tools = planned({}, SIDE)
    assert {each.key for each in with_tools.seconds.missing} == {"timeout"}
    assert planned({}, SIDE, timeout=30).seconds.value == 30
    assert planned({}, SIDE, timeout=30).seconds.held_by == ("timeout of node A",)


def test_the_parts_of_a_prompt_are_told_apart():
    known = planned({}, SIDE).agent
    assert known is not None
    assert known.prompt.role > 0
    assert known.prompt.tools > 0
    assert (known.prompt.tool_count, known.prompt.schema, known.prompt.skills) == (1, 0, 0)
