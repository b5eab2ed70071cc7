from __future__ import annotations

from typing import Any

import pytest

from devall.core.messages import user
from devall.estimates.course import Course
from devall.estimates.estimate import estimate
from devall.estimates.facts import Facts
from devall.estimates.rounds import Rounds
from devall.estimates.values import LoopValue
from devall.graph.compile import compile_graph
from devall.graph.model import Plan
from devall.loading.loader import load_mapping

AGAIN = {"type": "keyword", "config": {"any": ["again"]}}
OTHER = {"type": "keyword", "config": {"any": ["other"]}}
LIMIT = "limits.max_loop_iterations"


def agent(name: str, **params: Any) -> dict[str, Any]:
    config = {"provider": "openai", "name": "gpt-4o-mini", "params": {"max_tokens": 10, **params}}
    return {"id": name, "type": "agent", "config": config}


def counter(name: str, count: int) -> dict[str, Any]:
    return {"id": name, "type": "loop_counter", "config": {"max_iterations": count}}


def way(source: str, target: str, condition: Any = None, **more: Any) -> dict[str, Any]:
    found = {"from": source, "to": target, **more}
    return found | ({"condition": condition} if condition is not None else {})


def plan_of(nodes: list[Any], edges: list[Any], **limits: Any) -> Plan:
    graph = {"start": "A", "nodes": nodes, "edges": edges, "limits": limits}
    return compile_graph(load_mapping({"graph": graph}, name="w").root)


def rounds_of(nodes: list[Any], edges: list[Any], **limits: Any) -> Rounds:
    """Of the one outermost loop."""
    plan = plan_of(nodes, edges, **limits)
    (loop,) = plan.regions.loops()
    return Course(plan).loop(loop).rounds


RING = [agent("A"), agent("B"), counter("K", 3), agent("Z")]
CLOSED = [way("A", "B"), way("K", "A"), way("K", "Z")]


def test_a_counter_that_is_triggered_with_the_way_back_bounds_the_loop():
    found = rounds_of(RING, [*CLOSED, way("B", "A", AGAIN), way("B", "K", AGAIN)])
    assert found == Rounds(3, "max_iterations", "K")


def test_a_counter_that_is_always_triggered_bounds_the_loop():
    found = rounds_of(RING, [*CLOSED, way("B", "A", AGAIN), way("A", "K")])
    assert found == Rounds(3, "max_iterations", "K")


def test_a_counter_that_may_be_passed_by_bounds_nothing():
    found = rounds_of(RING, [*CLOSED, way("B", "A", AGAIN), way("B", "K", OTHER)])
    assert found == Rounds(100, LIMIT, "", loose=("K",))


def test_a_counter_on_one_of_two_ways_back_bounds_nothing():
    edges = [*CLOSED, way("B", "A", AGAIN), way("B", "K", AGAIN), way("A", "A", OTHER)]
    assert rounds_of(RING, edges).key == LIMIT


def test_a_counter_whose_way_out_may_stay_shut_bounds_nothing():
    edges = [way("A", "B"), way("K", "A"), way("K", "Z", AGAIN)]
    found = rounds_of(RING, [*edges, way("B", "A", AGAIN), way("B", "K", AGAIN)])
    assert found == Rounds(100, LIMIT, "", loose=("K",))


def test_what_a_counter_says_decides_the_condition_of_its_way_out():
    spoken = {"type": "keyword", "config": {"any": ["limit reached"]}}
    edges = [way("A", "B"), way("K", "A"), way("K", "Z", spoken)]
    found = rounds_of(RING, [*edges, way("B", "A", AGAIN), way("B", "K", AGAIN)])
    assert found == Rounds(3, "max_iterations", "K")


def test_a_counter_above_the_limit_raises_it():
    nodes = [agent("A"), agent("B"), counter("K", 9), agent("Z")]
    edges = [*CLOSED, way("B", "A", AGAIN), way("B", "K", OTHER)]
    found = rounds_of(nodes, edges, max_loop_iterations=5)
    assert (found.most, found.key, found.node) == (9, "max_iterations", "K")


def test_a_function_that_decides_both_ways_is_trusted_and_named():
    again = {"type": "function", "config": {"name": "need_another_round"}}
    found = rounds_of(RING, [*CLOSED, way("B", "A", again), way("B", "K", again)])
    assert found == Rounds(3, "max_iterations", "K", trusted=("need_another_round",))


def test_a_way_out_that_is_always_taken_leaves_one_round():
    found = rounds_of([agent("A"), agent("Z")], [way("A", "A", AGAIN), way("A", "Z")])
    assert found == Rounds(1, "edges", "A")


def test_a_node_that_may_fail_and_be_gone_on_without_leaves_nothing_for_certain():
    nodes = [agent("A") | {"on_error": "continue"}, agent("B"), agent("Z")]
    edges = [way("A", "B"), way("B", "A", AGAIN), way("A", "Z", AGAIN)]
    assert rounds_of(nodes, edges).most == 100


def test_a_timer_bounds_the_time_of_its_loop_and_no_rounds():
    timer = {
        "id": "T",
        "type": "loop_timer",
        "config": {"max_duration": 2, "duration_unit": "hours"},
    }
    nodes = [agent("A", timeout=10), timer, agent("Z")]
    nodes[0]["config"]["retry"] = {"enabled": False}
    edges = [way("A", "A", AGAIN), way("A", "T"), way("T", "A"), way("T", "Z")]
    found = estimate(plan_of(nodes, edges, max_loop_iterations=1000), Facts(user("x")))
    (loop,) = [step for stage in found.stages for step in stage if isinstance(step, LoopValue)]
    assert loop.rounds == Rounds(1000, LIMIT, "", timers=(("T", 7200.0),))
    assert found.seconds.value is not None
    # Two rounds more than the timer, and the node behind the loop.
    assert 7200 < found.seconds.value < 7200 + 4 * 4000


def test_loops_in_loops_multiply():
    nodes = [agent("A"), agent("B"), agent("C"), agent("Z")]
    edges = [
        way("A", "B"),
        way("B", "B", AGAIN),
        way("B", "C", OTHER),
        way("C", "A", AGAIN),
        way("C", "Z", OTHER),
    ]
    course = Course(plan_of(nodes, edges, max_loop_iterations=4))
    assert course.runs == {0: 4, 1: 16, 2: 4, 3: 1}


def test_loops_that_may_begin_in_too_many_ways_have_no_bound():
    names = [f"N{n}" for n in range(13)]
    nodes = [agent("A"), *map(agent, names)]
    edges = [way("A", name) for name in names]
    edges += [way(one, other, AGAIN) for one in names for other in names if one != other]
    found = estimate(plan_of(nodes, edges), Facts(user("x")))
    assert found.cost.model_calls.value is None
    assert {each.key for each in found.cost.model_calls.missing} == {LIMIT}
    assert found.seconds.value is None


def test_entries_that_are_always_triggered_together_are_one_way_to_begin():
    names = [f"N{n}" for n in range(20)]
    nodes = [agent("A"), agent("J"), agent("Z"), *map(agent, names)]
    edges = [way("A", name) for name in names] + [way(name, "J") for name in names]
    edges += [*(way("J", name, AGAIN) for name in names), way("J", "Z", OTHER)]
    found = Course(plan_of(nodes, edges, max_loop_iterations=4))
    assert set(found.runs.values()) == {1, 4}


@pytest.mark.parametrize(("other", "runs"), [(OTHER, 16), (AGAIN, 4)])
def test_entries_that_are_triggered_apart_may_each_begin_a_round(other: Any, runs: int):
    nodes = [agent(name) for name in "ABCDZ"]
    edges = [
        way("A", "B", AGAIN),
        way("A", "C", other),
        way("B", "D"),
        way("C", "D"),
        way("D", "B", AGAIN),
        way("D", "C", other),
        way("D", "Z", OTHER),
    ]
    # Where a round begins at B alone, C and D are a loop in it.
    course = Course(plan_of(nodes, edges, max_loop_iterations=4))
    assert course.runs == {0: 1, 1: runs, 2: runs, 3: runs, 4: 1}


@pytest.mark.parametrize(
    ("edges", "certain"),
    [
        ([way("A", "B"), way("B", "Z")], "ABZ"),
        ([way("A", "B", AGAIN), way("B", "Z"), way("A", "Z", trigger=False)], "A"),
        ([way("A", "B"), way("B", "A", AGAIN), way("B", "Z", OTHER)], "AB"),
        # B may leave the loop before C runs.
        (
            [
                way("A", "B"),
                way("B", "Z", OTHER),
                way("B", "C"),
                way("C", "A", AGAIN),
                way("C", "Z", OTHER),
            ],
            "AB",
        ),
    ],
)
def test_what_runs_in_any_case(edges: list[Any], certain: str):
    names = {each[end] for each in edges for end in ("from", "to")}
    plan = plan_of([agent(name) for name in sorted(names)], edges)
    assert "".join(plan.nodes[node].id for node in sorted(Course(plan).certain)) == certain
