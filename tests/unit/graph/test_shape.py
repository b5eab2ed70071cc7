from __future__ import annotations

from pathlib import Path
from typing import Any

from devall.core.shape import EdgeShape, GraphShape, LoopShape, NodeShape
from devall.graph.compile import compile_graph
from devall.graph.shape import shape_of
from devall.loading.loader import load_mapping


def shape(nodes: list[Any], edges: list[Any], **graph: Any) -> GraphShape:
    data = {"graph": {"id": "g", "nodes": nodes, "edges": edges, **graph}}
    return shape_of(compile_graph(load_mapping(data, folder=Path.cwd()).root))


def literal(name: str) -> dict[str, Any]:
    return {"id": name, "type": "literal", "config": {"content": name}}


def counter(name: str, rounds: int) -> dict[str, Any]:
    return {"id": name, "type": "loop_counter", "config": {"max_iterations": rounds}}


def arrow(source: str, target: str, **more: Any) -> dict[str, Any]:
    return {"from": source, "to": target, **more}


def test_a_graph_is_its_nodes_and_edges_in_file_order():
    inner = {"id": "inner", "start": "X", "end": "X", "nodes": [literal("X")], "edges": []}
    sub = {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner}}
    word = {"type": "keyword", "config": {"any": ["go"]}}
    found = shape(
        [literal("A"), sub],
        [arrow("A", "S", condition=word), arrow("A", "S", trigger=False)],
        start="A",
        end="S",
    )
    assert found == GraphShape(
        "g",
        (
            NodeShape("A", "literal"),
            NodeShape(
                "S",
                "subgraph",
                GraphShape("inner", (NodeShape("X", "literal"),), start=("X",), end=("X",)),
            ),
        ),
        (
            EdgeShape("A", "S", condition={"type": "keyword", "config": {"any": ["go"]}}),
            EdgeShape("A", "S", trigger=False),
        ),
        (),
        ("A",),
        ("S",),
    )


def test_a_loop_is_bounded_by_its_counter_or_by_the_limit():
    nodes = [literal("A"), counter("C", 3), literal("B"), literal("D"), literal("End")]
    edges = [
        *(arrow(*pair) for pair in ("AC", "CA", "BD", "DB")),
        arrow("C", "B"),
        arrow("D", "End"),
    ]
    found = shape(nodes, edges, start="A", limits={"max_loop_iterations": 7})
    assert found.loops == (LoopShape(("A", "C"), 3), LoopShape(("B", "D"), 7))


def test_the_counter_of_an_inner_loop_does_not_bound_the_outer_one():
    nodes = [literal("O"), literal("A"), counter("C", 3), literal("P")]
    edges = [arrow(*pair) for pair in ("OA", "AC", "CA", "CP", "PO")]
    plan = compile_graph(
        load_mapping(
            {"graph": {"start": "O", "nodes": nodes, "edges": edges}}, folder=Path.cwd()
        ).root
    )
    assert plan.last_round((0, 1, 2, 3)) == 100
    assert plan.last_round((1, 2)) == 3
