"""Random workflows for pictures, and what must hold of every layout."""

from __future__ import annotations

import math
from itertools import combinations
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from devall.loading.loader import LoadedGraph, load_mapping
from devall.pictures.course import Course, NodeCourse
from devall.pictures.places import Layout, Rect
from devall.pictures.rows import holders_of

HOSTILE = ['<script>alert("1")</script>', "a & b", "]]>", "-->", "\x1b[31m", "line\nbreak", "{}%"]
NAMES = [*"ABCDEFGHIJ", *HOSTILE, "审查员", "😀", "x" * 80, "W" * 40, "a/b", "é́"]
CONDITIONS: list[Any] = [
    True,
    True,
    "code_pass",
    {"type": "keyword", "config": {"any": ["审查通过", "<ok>"], "none": ["no"]}},
    {"type": "expression", "config": {"when": "score >= 8 and len(faults) == 0"}},
]


def loaded(graph: dict[str, Any]) -> LoadedGraph:
    return load_mapping({"graph": graph}, folder=Path("/nowhere")).root


@st.composite
def graphs(draw: st.DrawFn, depth: int = 0) -> dict[str, Any]:
    """A graph as its file has it: loops, data edges, subgraphs, odd names."""
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=8, unique=True))
    nodes: list[dict[str, Any]] = []
    for name in names:
        if depth < 2 and draw(st.integers(0, 5)) == 0:
            config = {"type": "config", "config": draw(graphs(depth + 1))}
            nodes.append({"id": name, "type": "subgraph", "config": config})
        else:
            kind = draw(st.sampled_from(["passthrough", "python"]))
            nodes.append({"id": name, "type": kind})
    edges: dict[tuple[str, str], dict[str, Any]] = {}
    for _ in range(draw(st.integers(0, 2 * len(names)))):
        source, target = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        edges[source, target] = {
            "from": source,
            "to": target,
            "condition": draw(st.sampled_from(CONDITIONS)),
            "trigger": draw(st.sampled_from([True, True, False])),
        }
    graph = {"start": [names[0]], "nodes": nodes, "edges": list(edges.values())}
    if draw(st.booleans()):
        graph["end"] = [draw(st.sampled_from(names))]
    return graph


@st.composite
def courses(draw: st.DrawFn, graph: LoadedGraph) -> Course | None:
    """What a run of the graph did, or none."""
    if draw(st.booleans()):
        return None
    states = st.sampled_from(["completed", "failed", "skipped", "waiting", "cancelled", "running"])
    nodes: dict[str, NodeCourse] = {}
    edges: dict[tuple[str, int], int] = {}

    def go(each: LoadedGraph, name: str) -> None:
        for node in each.config.nodes:
            if draw(st.booleans()):
                nodes[f"{name}/{node.id}" if name else node.id] = NodeCourse(
                    state=draw(states), runs=draw(st.integers(0, 1200)), seconds=1.5, units=3
                )
        for index in range(len(each.config.edges)):
            edges[name, index] = draw(st.integers(0, 12))
        for key, child in each.subgraphs.items():
            go(child, f"{name}/{key}" if name else key)

    go(graph, "")
    return Course(nodes=nodes, edges=edges)


def check(layout: Layout, *, is_clear: bool = True) -> None:
    """See that nothing lies upon another, that all is within its box, and within the picture.

    Args:
        layout: The layout.
        is_clear: Whether labels must lie upon no node: where it is very crowded some may.
    """
    holders = holders_of(layout.scene)
    boxes = {each.box.key: each.rect for each in layout.boxes}
    solid = [(each.dot.key, each.rect) for each in layout.nodes]
    solid += [(word, rect) for word, rect in layout.pills.items()]
    for (one, rect), (other, second) in combinations(solid, 2):
        assert not _overlap(rect, second), (one, other)
    for key, rect in solid:
        for box, outer in boxes.items():
            if box in holders.get(key, ()):
                assert _is_within(rect, outer), (key, box)
            else:
                assert not _overlap(rect, outer), (key, box)
    for one, other in combinations(boxes, 2):
        if one in holders[other]:
            assert _is_within(boxes[other], boxes[one])
        elif other in holders[one]:
            assert _is_within(boxes[one], boxes[other])
        else:
            assert not _overlap(boxes[one], boxes[other])
    whole = Rect(0, 0, layout.width, layout.height)
    for _, rect in [*solid, *boxes.items()]:
        assert _is_within(rect, whole)
    for arrow in layout.arrows:
        assert len(arrow.way) % 3 == 1
        assert all(math.isfinite(number) for point in arrow.way for number in point)
        if is_clear and arrow.label is not None:
            for key, rect in solid:
                assert not _overlap(arrow.label, rect), (arrow.lines, key)
    assert {each.dot.key for each in layout.nodes}.isdisjoint(boxes)


def _overlap(one: Rect, other: Rect) -> bool:
    slack = 0.5
    return (
        one.x + slack < other.right
        and other.x + slack < one.right
        and one.y + slack < other.bottom
        and other.y + slack < one.bottom
    )


def _is_within(inner: Rect, outer: Rect) -> bool:
    slack = 0.5
    return (
        inner.x >= outer.x - slack
        and inner.y >= outer.y - slack
        and inner.right <= outer.right + slack
        and inner.bottom <= outer.bottom + slack
    )
