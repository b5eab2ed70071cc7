from __future__ import annotations

import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devall.core.errors import DevallError, SetupError
from devall.loading.loader import load_mapping
from devall.pictures import graphviz
from devall.pictures.labels import cleared
from devall.pictures.layout import layout_of
from devall.pictures.places import Layout
from devall.pictures.rows import holders_of, innermost, rows_of
from devall.pictures.scene import Scene, every, scene_of
from devall.pictures.widths import columns
from tests.unit.pictures.graphs import check, courses, graphs, loaded

RANDOM = Path(__file__).parents[2] / "conformance" / "random.jsonl"
KEYS = {"BASE_URL": "x", "API_KEY": "y"}


def laid_out(graph: dict[str, Any]) -> Layout:
    return layout_of(scene_of(loaded(graph)))


def passthroughs(*names: str) -> list[dict[str, Any]]:
    return [{"id": name, "type": "passthrough"} for name in names]


def edge(source: str, target: str, **keys: Any) -> dict[str, Any]:
    return {"from": source, "to": target, **keys}


@given(st.data())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_lies_upon_another_and_all_is_in_its_box(data: st.DataObject):
    graph = loaded(data.draw(graphs()))
    course = data.draw(courses(graph))
    found = layout_of(scene_of(graph, course))
    check(found, is_clear=False)
    again = layout_of(scene_of(graph, course))
    assert [each.rect for each in again.nodes] == [each.rect for each in found.nodes]
    assert [each.way for each in again.arrows] == [each.way for each in found.arrows]


def test_the_graphs_of_the_conformance_suite_are_laid_out():
    lines = RANDOM.read_text(encoding="utf-8").splitlines()[::8]
    for line in lines:
        workflow = json.loads(line)["workflow"]
        check(layout_of(scene_of(load_mapping(workflow, variables=KEYS).root)))


def test_three_hundred_nodes_are_laid_out():
    chance = random.Random(7)
    names = [f"node {number}" for number in range(300)]
    edges: dict[tuple[str, str], dict[str, Any]] = {}
    for number in range(1, 300):
        source = names[max(0, number - chance.randint(1, 5))]
        edges[source, names[number]] = edge(source, names[number])
        if number % 9 == 0:
            back = (names[number], names[number - 3])
            edges[back] = edge(*back, condition="code_fail")
    found = laid_out(
        {"start": names[0], "nodes": passthroughs(*names), "edges": list(edges.values())}
    )
    check(found)
    assert len(found.nodes) == 300
    assert len(found.arrows) >= len(edges)


def test_what_leads_on_leads_down_and_a_loop_leads_up_again():
    found = laid_out(
        {
            "start": "A",
            "nodes": passthroughs("C", "B", "A", "Z"),
            "edges": [
                edge("C", "A", condition="code_fail"),
                edge("A", "B"),
                edge("B", "C"),
                edge("C", "Z", condition="code_pass"),
            ],
        }
    )
    tops = {each.dot.name: each.rect.y for each in found.nodes}
    assert tops["A"] < tops["B"] < tops["C"] < tops["Z"]
    [loop] = found.boxes
    assert loop.box.members == {"A", "B", "C"}
    assert [each.arrow.place for each in found.arrows if each.arrow and each.arrow.is_back] == [
        ("", 0)
    ]
    [back] = [each for each in found.arrows if each.arrow and each.arrow.is_back]
    assert back.way[0].y > back.tip.y


def test_a_box_is_around_the_labels_of_its_edges():
    long = {"type": "keyword", "config": {"any": ["not yet good enough", "once more, please"]}}
    names = [*"ABCD"]
    found = laid_out(
        {
            "start": "A",
            "nodes": passthroughs(*names),
            "edges": [
                edge("A", "B"),
                edge("B", "C"),
                edge("C", "D"),
                edge("D", "A", condition=long),
            ],
        }
    )
    [box] = found.boxes
    [label] = [each.label for each in found.arrows if each.label is not None]
    assert box.rect.x <= label.x
    assert label.right <= box.rect.right


def test_a_label_that_lies_upon_a_node_is_moved_to_its_edge():
    found = laid_out(
        {
            "start": "A",
            "nodes": passthroughs("A", "B"),
            "edges": [edge("A", "B", condition="code_pass")],
        }
    )
    [at] = [number for number, each in enumerate(found.arrows) if each.label is not None]
    label = found.arrows[at].label
    assert label is not None
    lower = max(found.nodes, key=lambda each: each.rect.y).rect
    found.arrows[at] = replace(found.arrows[at], label=label._replace(x=lower.x, y=lower.y + 4))
    with pytest.raises(AssertionError, match="code_pass"):
        check(found)
    check(cleared(found))


def test_an_edge_of_a_subgraph_to_itself_stands_in_its_title():
    inner = {"start": "X", "nodes": passthroughs("X"), "edges": []}
    node = {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner}}
    found = laid_out(
        {"start": "S", "nodes": [node], "edges": [edge("S", "S", condition="code_fail")]}
    )
    assert [each.title for each in found.boxes] == ["S · again if code_fail"]
    assert all(each.arrow is None for each in found.arrows), "none from a node within to itself"


def test_a_graph_without_an_end_has_no_answer():
    graph = {
        "start": "A",
        "nodes": passthroughs("A", "B"),
        "edges": [edge("A", "B"), edge("B", "A", condition="code_fail")],
    }
    assert set(laid_out(graph).pills) == {"start"}


def test_a_layout_that_fails_says_so():
    with pytest.raises(DevallError, match="could not be laid out"):
        graphviz.laid_out("this is no graph")
    with pytest.raises(SetupError, match="/no/such/program cannot be started") as caught:
        graphviz._run(["/no/such/program"], "")
    assert "graphviz-pure" in caught.value.hint


@given(graphs())
@settings(max_examples=60)
def test_rows_hold_every_child_once_and_none_above_what_leads_to_it(graph: dict[str, Any]):
    scene = scene_of(loaded(graph))
    holders = holders_of(scene)
    rows = rows_of(scene.children, innermost(scene, holders).get("", []), holders)
    assert sorted(item.key for row in rows for item in row) == sorted(
        item.key for item in scene.children
    )
    if not _has_cycle(scene):
        level = {item.key: at for at, row in enumerate(rows) for item in row}
        for arrow in scene.arrows:
            one, other = holders[arrow.source.key][0], holders[arrow.target.key][0]
            assert one == other or level[one] < level[other]


def _has_cycle(scene: Scene) -> bool:
    """Whether data edges lead in a circle as well, which no order suits."""
    after: dict[str, set[str]] = {item.key: set() for item in every(scene.children)}
    holders = holders_of(scene)
    for arrow in scene.arrows:
        one, other = holders[arrow.source.key][0], holders[arrow.target.key][0]
        if one != other:
            after[one].add(other)
    left = dict(after)
    while free := [key for key, targets in left.items() if not targets & left.keys()]:
        for key in free:
            del left[key]
    return bool(left)


def test_what_stands_in_a_node_is_no_wider_than_it():
    name = "审查员 " * 20
    found = laid_out({"start": name.strip(), "nodes": passthroughs(name.strip()), "edges": []})
    [node] = found.nodes
    assert len(node.face.names) == 2
    assert all(columns(line) * 7 < node.rect.width for line in node.face.names)
