from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from devall.core.diagnostics import Diagnostic
from devall.graph.rules import check
from devall.loading.loader import load_mapping
from devall.plugins.functions import Kind, Trouble


class Anything:
    """Knows every function."""

    def check(self, kind: Kind, name: str) -> Trouble | None:
        return None


def found(nodes: str, edges: Sequence[str], **more: Any) -> list[Diagnostic]:
    """Findings; `N#3` is a loop counter, `T@` a loop timer, `A B?` a conditional edge."""
    made = [node(name) for name in nodes.split()]
    ways = [way(*edge.split(maxsplit=2)) for edge in edges]
    graph = {"start": made[0]["id"], "nodes": made, "edges": ways} | more
    return check(load_mapping({"graph": graph}).root, Anything())


def node(name: str) -> dict[str, Any]:
    if "#" in name:
        name, _, count = name.partition("#")
        return {"id": name, "type": "loop_counter", "config": {"max_iterations": int(count)}}
    if name.endswith("@"):
        return {"id": name[:-1], "type": "loop_timer"}
    return {"id": name, "type": "passthrough"}


def way(source: str, target: str, more: str = "{}") -> dict[str, Any]:
    edge = {"from": source, "to": target.rstrip("?")} | json.loads(more)
    return edge | {"condition": "some"} if target.endswith("?") else edge


def codes(*args: Any, **more: Any) -> list[str]:
    return [each.code for each in found(*args, **more)]


@pytest.mark.parametrize(
    "edges",
    [
        ["W R", "R W?"],
        ["W R", "R W?", "R E?"],
        ["W R", "R W", "R E?"],
        ["W R?", "R W"],
        ["W R", "R W?", "R E"],
        ["W R", "R R?", "R W?", "R E?"],
    ],
)
def test_a_loop_that_a_condition_can_end_is_fine(edges: list[str]):
    assert "endless-loop" not in codes("W R E", [*edges, "W E?"])


@pytest.mark.parametrize("edges", [["A B", "B A"], ["A A"], ["A B", "B C", "C A", "B A?"]])
def test_a_loop_that_only_its_limit_ends_is_a_warning(edges: list[str]):
    problems = found("S A B C", ["S A", "S B?", "S C?", *edges])
    assert [(d.code, d.severity) for d in problems] == [("endless-loop", "warning")]
    assert "100 rounds, which is an error" in problems[0].message


def test_where_the_limit_is_meant_the_message_says_no_error():
    limits = {"max_loop_iterations": 7, "on_loop_limit": "continue"}
    (problem,) = found("A B", ["A B", "B A"], limits=limits)
    assert problem.message.endswith("ends by its limit of 7 rounds")


def test_a_bad_loop_behind_a_good_one_is_found_and_so_is_every_other():
    problems = found(
        "A B C D E F",
        ["A B", "B A?", "B C?", "C D", "D C", "A E?", "E E", "A F?", "F F?"],
    )
    assert [each.message.partition(" has no")[0] for each in problems] == [
        "the loop C, D",
        "the loop E",
    ]


def test_a_loop_within_a_loop_is_looked_at_by_itself():
    edges = ["O A", "A B", "B A", "C O?", "O E?"]
    assert codes("O A B C E", [*edges, "B C?"]) == []
    # Nothing leads from the inner loop back: it holds the outer one up for ever.
    problems = found("O A B E", ["O A?", "A B", "B A", "O O?", "O E?"])
    assert [each.code for each in problems] == ["endless-loop"]
    assert "the loop A, B" in problems[0].message


def test_a_counter_or_a_timer_in_a_loop_ends_it():
    for guard in ("N#3", "N@"):
        assert codes(f"W C {guard} E", ["W C", "C N", "N W", "N E"]) == []
        assert codes(f"W {guard} E", ["W N", "N W", "N E"], end="E") == []


def test_an_edge_that_drops_what_it_does_not_match_can_end_a_loop():
    drop = {"process": {"type": "regex_extract", "config": {"pattern": "x", "on_no_match": "drop"}}}
    assert codes("A", ["A A " + json.dumps(drop)]) == []


def test_an_edge_that_never_fires_makes_no_loop():
    assert codes("A B", ["A B", 'B A {"condition": false}']) == ["edge-never-fires"]


def test_a_part_held_together_by_data_edges_is_no_loop():
    assert codes("A B", ["A B", 'B A {"trigger": false}']) == []


@pytest.mark.parametrize("guard", ["N#3", "N@"])
def test_a_guard_outside_of_the_loop_it_should_guard_is_a_warning(guard: str):
    problems = found(f"W C {guard} E", ["W C", "C W", "C N", "N E"])
    assert [(d.code, d.severity) for d in problems] == [("guard-outside-loop", "warning")]
    assert "outside of the loop W, C" in problems[0].message


def test_a_guard_in_no_loop_at_all_is_a_warning():
    assert codes("A N#3 E", ["A N", "N E"]) == ["guard-outside-loop"]


def test_a_counter_of_one_speaks_at_once_and_needs_no_loop():
    assert codes("A N#1 E", ["A N", "N E"]) == []


def test_a_way_out_that_is_always_taken_is_a_warning():
    problems = found("W R E", ["W R", "R W?", "R E"])
    assert [(d.code, d.severity) for d in problems] == [("exit-always-taken", "warning")]
    assert codes("W R E", ["W R", "R W?", "R E?"]) == []
    # The node with the way out has no way back: only the loop's end leads there.
    assert codes("W R X E", ["W R", "R W?", "R X?", "X E"]) == []


def test_a_vote_has_no_loops():
    assert codes("A B", ["A B", "B A"], is_majority_voting=True) == ["voting-with-edges"]
