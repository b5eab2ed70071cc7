from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import devall
from devall.core.errors import ConfigError
from devall.core.events import Event, LoopLeft
from devall.core.messages import user
from devall.estimates.course import Course
from devall.estimates.estimate import estimate
from devall.estimates.facts import Facts
from devall.estimates.texts import estimated
from devall.graph.compile import compile_graph
from devall.loading.loader import LoadedWorkflow, load_mapping
from devall.testing.scripted_model import ScriptedModels

RANDOM = Path(__file__).parents[2] / "conformance" / "random.jsonl"
CASES = [json.loads(line) for line in RANDOM.read_text(encoding="utf-8").splitlines()]
WORDS = ("left", "right", "again", "again")


async def hold(loaded: LoadedWorkflow, script: dict[str, Any]) -> str:
    """Run a workflow and compare it with its estimate; its status."""
    plan = compile_graph(loaded.root)
    course = Course(plan)
    found = estimate(plan, Facts(user("the task")))
    events: list[Event] = []
    models = ScriptedModels(script)
    result = await devall.run(loaded, task="the task", model_source=models, on_event=events.append)
    runs = {node.index: result.nodes[node.id].runs for node in plan.nodes}
    units = plan.dynamics.keys()
    for node in plan.nodes:
        if node.index not in units:
            assert runs[node.index] <= course.runs[node.index], node.id
        most = next(each for each in found.nodes if each.name == node.id).runs.value
        assert most is None or runs[node.index] <= most, node.id
    for event in events:
        if isinstance(event, LoopLeft):
            loop = course.loop(tuple(n.index for n in plan.nodes if n.id in event.loop))
            assert event.rounds <= loop.rounds.most, loop.rounds
    for value in found.nodes:
        if value.agent is not None:
            sent = sum(
                estimated(each.messages) for each in models.requests.get(value.agent.model, ())
            )
            most = value.cost.input_tokens.value
            assert most is None or sent <= most, value.name
    assert found.cost.model_calls.value is not None
    assert result.usage.model_calls <= found.cost.model_calls.value
    if result.status == "completed":
        for node in course.certain:
            assert runs[node], plan.nodes[node].id
        assert result.usage.model_calls >= found.least.model_calls
    return result.status


@pytest.mark.parametrize("part", range(3))
async def test_the_random_workflows_of_the_suite_run_within_their_estimates(part: int) -> None:
    for case in CASES[part::3]:
        replies = [text for texts in case["script"]["replies"].values() for text in texts]
        for node in case["workflow"]["graph"]["nodes"]:
            if node["type"] == "agent":
                node["config"]["params"] = {"max_tokens": max(1, -(-max(map(len, replies)) // 4))}
        loaded = load_mapping(case["workflow"], name=case["name"])
        assert await hold(loaded, case["script"]) == "completed", case["name"]


def agent(name: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "provider": "openai",
        "name": name,
        "base_url": "http://x",
        "role": f"role {name}",
    }
    config["params"] = {"max_tokens": 3}
    return {"id": name, "type": "agent", "config": config}


@st.composite
def workflows(draw: st.DrawFn) -> dict[str, Any]:
    """Graphs with counters, conditions and loops of every kind; few of them mean anything."""
    names = [*"ABCDEF"][: draw(st.integers(2, 6))]
    nodes: list[dict[str, Any]] = []
    for name in names:
        kind = draw(st.sampled_from(["agent", "agent", "passthrough", "loop_counter", "literal"]))
        if kind == "agent":
            nodes.append(agent(name) | {"context_window": draw(st.integers(-1, 3))})
        elif kind == "loop_counter":
            count = draw(st.integers(1, 4))
            config = {"max_iterations": count, "reset_on_emit": draw(st.booleans())}
            nodes.append({"id": name, "type": kind, "config": config})
        elif kind == "literal":
            text = draw(st.sampled_from(WORDS))
            nodes.append({"id": name, "type": kind, "config": {"content": text}})
        else:
            nodes.append({"id": name, "type": kind})
    condition = st.sampled_from(
        [None, None, None, *({kind: [word]} for kind in ("any", "none") for word in WORDS)]
    )
    edges: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 10))):
        edge: dict[str, Any] = {
            "from": draw(st.sampled_from(names)),
            "to": draw(st.sampled_from(names)),
        }
        words = draw(condition)
        if words is not None:
            edge["condition"] = {"type": "keyword", "config": words}
        if draw(st.integers(0, 9)) == 0:
            edge["trigger"] = False
        if draw(st.integers(0, 9)) == 0:
            edge["carry_data"] = False
        if draw(st.integers(0, 4)) == 0:
            edge["keep_message"] = True
        edges.append(edge)
    starts = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
    limits = {"max_loop_iterations": draw(st.integers(1, 6)), "on_loop_limit": "continue"}
    graph = {"id": "g", "start": starts, "limits": limits, "nodes": nodes, "edges": edges}
    return {"version": "0.4.0", "graph": graph}


@st.composite
def counted(draw: st.DrawFn) -> dict[str, Any]:
    """A ring with a counter beside it that leads out, and some ways more."""
    ring = [*"ABC"][: draw(st.integers(1, 3))]
    words = st.sampled_from([None, None, {"any": ["again"]}, {"none": ["left"]}, {"any": ["left"]}])

    def edge(source: str, target: str, condition: dict[str, Any] | None) -> dict[str, Any]:
        found: dict[str, Any] = {"from": source, "to": target}
        return found | (
            {"condition": {"type": "keyword", "config": condition}} if condition else {}
        )

    edges = [edge(one, other, draw(words)) for one, other in pairwise([*ring, ring[0]])]
    edges.append(edge(draw(st.sampled_from(ring)), "K", draw(words)))
    edges.append(edge("K", draw(st.sampled_from(ring)), None))
    edges.append(edge("K", "Z", draw(st.sampled_from([None, None, {"any": ["limit"]}, None]))))
    for _ in range(draw(st.integers(0, 3))):
        source, target = (
            draw(st.sampled_from([*ring, "K"])),
            draw(st.sampled_from([*ring, "K", "Z"])),
        )
        edges.append(edge(source, target, draw(words)))
    counter = {"max_iterations": draw(st.integers(1, 3)), "reset_on_emit": draw(st.booleans())}
    nodes = [*map(agent, ring), {"id": "K", "type": "loop_counter", "config": counter}, agent("Z")]
    starts = draw(st.lists(st.sampled_from(ring), min_size=1, max_size=2, unique=True))
    limits = {"max_loop_iterations": 5, "on_loop_limit": "continue"}
    graph = {"id": "g", "start": starts, "end": "Z", "limits": limits, "nodes": nodes}
    return {"version": "0.4.0", "graph": graph | {"edges": draw(st.permutations(edges))}}


REPLIES = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=2).map(" ".join), min_size=30, max_size=30
)


@st.composite
def entered(draw: st.DrawFn) -> dict[str, Any]:
    """A loop that is entered at several places, some of them always together."""
    ring = [*"ABCD"][: draw(st.integers(2, 4))]
    words = st.sampled_from([None, {"any": ["again"]}, {"none": ["left"]}, {"any": ["left"]}])

    def edge(source: str, target: str, condition: dict[str, Any] | None) -> dict[str, Any]:
        found: dict[str, Any] = {"from": source, "to": target}
        return found | (
            {"condition": {"type": "keyword", "config": condition}} if condition else {}
        )

    edges = [edge(one, other, draw(words)) for one, other in pairwise([*ring, ring[0]])]
    shared = draw(words)
    edges += [edge("S", name, shared) for name in ring if draw(st.booleans())]
    edges += [edge("S", draw(st.sampled_from(ring)), draw(words)), edge(ring[-1], "Z", None)]
    edges[-1]["condition"] = {"type": "keyword", "config": draw(words.filter(bool))}
    for _ in range(draw(st.integers(0, 4))):
        edges.append(edge(draw(st.sampled_from(ring)), draw(st.sampled_from(ring)), draw(words)))
    limits = {"max_loop_iterations": draw(st.integers(2, 4)), "on_loop_limit": "continue"}
    nodes = [agent("S"), *map(agent, ring), agent("Z")]
    graph = {"id": "g", "start": "S", "end": "Z", "limits": limits, "nodes": nodes}
    return {"version": "0.4.0", "graph": graph | {"edges": draw(st.permutations(edges))}}


@settings(
    max_examples=45,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)
@given(
    st.one_of(counted(), entered(), workflows()),
    st.fixed_dictionaries(dict.fromkeys("ABCDEFKSZ", REPLIES)),
)
async def test_no_run_goes_over_the_bounds_or_leaves_out_what_is_certain(
    workflow: dict[str, Any], script: dict[str, Any]
) -> None:
    try:
        loaded = load_mapping(workflow, name="random")
    except ConfigError:
        assume(False)
        raise
    await hold(loaded, script)
