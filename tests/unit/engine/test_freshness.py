"""Which steps still count after a change, while a graph runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from devall.engine.freshness import Cuts, Freshness
from devall.graph.compile import compile_graph
from devall.graph.digests import digests, following
from devall.graph.model import Plan
from devall.loading.loader import load_mapping


def plan_of(*ways: str, **more: object) -> Plan:
    """A graph of passthroughs: `plan_of("AB", "BC")`."""
    names = sorted({name for way in ways for name in way})
    nodes = [{"id": name, "type": "passthrough", **more.get(name, {})} for name in names]
    edges = [{"from": way[0], "to": way[1]} for way in ways]
    graph = {"start": names[0], "nodes": nodes, "edges": edges}
    return compile_graph(load_mapping({"graph": graph}, folder=Path.cwd()).root)


def freshness(plan: Plan, inherited: int = 0, **cuts: int) -> tuple[Freshness, dict[str, int]]:
    return Freshness(plan, Cuts(cuts), "", inherited), {node.id: node.index for node in plan.nodes}


def test_what_comes_before_a_change_counts_and_what_follows_does_not():
    found, at = freshness(plan_of("AB", "BC", "AD"), B=2)
    assert found.since(at["A"]) == 0
    found.ended(at["A"], 0)
    assert (found.since(at["B"]), found.since(at["C"]), found.since(at["D"])) == (2, 0, 0)
    found.ended(at["B"], 2)
    assert (found.since(at["C"]), found.since(at["D"])) == (2, 0)
    assert found.newest == 2


def test_in_a_loop_the_first_runs_before_the_change_count():
    found, at = freshness(plan_of("AB", "BC", "CA", "CD"), B=3)
    assert found.since(at["A"]) == 0
    found.ended(at["A"], 0)
    found.ended(at["B"], found.since(at["B"]))
    assert [found.since(at[name]) for name in "ABCD"] == [3, 3, 3, 3]


def test_the_newest_of_several_changes_holds():
    found, at = freshness(plan_of("AC", "BC", "CD"), A=2, B=4)
    found.ended(at["B"], 4)
    found.ended(at["A"], 2)
    assert (found.since(at["C"]), found.newest) == (4, 4)


def test_a_graph_within_a_changed_node_is_done_anew_whole():
    found, at = freshness(plan_of("AB"), inherited=5)
    assert [found.since(at[name]) for name in "AB"] == [5, 5]


def test_a_node_that_is_done_anew_alone_leaves_what_follows():
    plan = plan_of("AB", "BC")
    at = {node.id: node.index for node in plan.nodes}
    found = Freshness(plan, Cuts({"A": 1, "B": 1}, frozenset({"A"})), "")
    found.ended(at["A"], 1)
    assert found.since(at["C"]) == 0
    found.ended(at["B"], 1)
    assert found.since(at["C"]) == 1


def test_names_of_a_graph_within_begin_with_the_node_it_is_in():
    plan = plan_of("AB")
    found = Freshness(plan, Cuts({"S/A": 2, "B": 3}), "S/")
    at = {node.id: node.index for node in plan.nodes}
    assert (found.since(at["A"]), found.since(at["B"])) == (2, 0)


@pytest.mark.parametrize(
    ("changes", "changed"),
    [
        ({"B": {"config": {"only_last_message": False}}}, {"B"}),
        ({"B": {"context_window": -1}}, {"B"}),
        ({"B": {"description": "another"}}, set()),
        ({"B": {"timeout": 5, "on_error": "continue", "log_output": False}}, set()),
        ({"B": {"limits": {"max_tokens": 5}}}, set()),
    ],
)
def test_a_node_is_changed_by_what_decides_its_result(changes, changed):
    before, after = (
        digests(plan_of("AB", "BC", **each), lambda value: value) for each in ({}, changes)
    )
    assert {name for name in after if before[name] != after[name]} == changed


def test_an_edge_changes_the_node_it_leads_to():
    before = digests(plan_of("AB", "BC"), lambda value: value)
    after = digests(plan_of("AB", "BC", "AC"), lambda value: value)
    assert {name for name in after if before[name] != after[name]} == {"C"}


def test_what_follows_is_listed_in_the_order_of_the_file_and_once():
    plan = plan_of("AB", "BC", "CA", "CD", "EF")
    assert list(following(plan, {"B"})) == ["A", "C", "D"]
    assert list(following(plan, {"B", "C"})) == ["A", "D"]
    assert list(following(plan, {"E"})) == ["F"]
