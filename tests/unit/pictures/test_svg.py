from __future__ import annotations

import re
from itertools import product
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devall.pictures.course import Course, NodeCourse
from devall.pictures.looks import DARK, LIGHT
from devall.pictures.svg import svg
from tests.unit.pictures.graphs import HOSTILE, courses, graphs, loaded

SVG = "{http://www.w3.org/2000/svg}"
LOOP = {
    "start": "W",
    "end": ["E"],
    "nodes": [
        {"id": "W", "type": "passthrough"},
        {"id": "C", "type": "passthrough"},
        {
            "id": "S",
            "type": "subgraph",
            "config": {
                "type": "config",
                "config": {
                    "start": "X",
                    "nodes": [{"id": "X", "type": "passthrough"}],
                    "edges": [],
                },
            },
        },
        {"id": "E", "type": "passthrough"},
    ],
    "edges": [
        {"from": "W", "to": "C"},
        {"from": "C", "to": "W", "condition": "code_fail"},
        {"from": "C", "to": "S", "condition": "code_pass"},
        {"from": "S", "to": "E"},
    ],
}
RUN = Course(
    nodes={
        "W": NodeCourse(state="completed", runs=3, seconds=2.4),
        "C": NodeCourse(state="failed", runs=3, seconds=1),
        "S": NodeCourse(state="skipped"),
    },
    edges={("", 0): 3, ("", 1): 2},
    rounds={frozenset({"W", "C"}): 3},
)


def parsed(text: str) -> ET.Element:
    assert text.startswith("<svg ")
    return ET.fromstring(text)


def nodes(root: ET.Element) -> dict[str, ET.Element]:
    return {each.get("data-node", ""): each for each in root.iter() if each.get("data-node")}


def words(element: ET.Element) -> list[str]:
    return [each.text or "" for each in element.iter(f"{SVG}text")]


def test_every_node_is_there_by_its_name():
    root = parsed(svg(loaded(LOOP)))
    assert set(nodes(root)) == {"W", "C", "S", "S/X", "E"}
    assert root.get("role") == "img"
    assert (root.findtext(f"{SVG}desc") or "") == "A workflow of 5 nodes and 4 edges."
    assert words(nodes(root)["S/X"]) == ["X", "passthrough"]
    assert "if code_fail" in words(root)


def test_a_run_shows_what_ran_how_often_and_how_long():
    root = parsed(svg(loaded(LOOP), RUN))
    found = nodes(root)
    assert words(found["W"])[-1] == "×3 · 2.4 s"
    assert words(found["C"])[-1] == "failed · ×3 · 1.0 s"
    assert found["E"].get("data-state") == "unbegun"
    assert "dim" in (found["S"].get("class") or "").split()
    assert {"loop · 3 rounds", "S · skipped", "if code_fail ×2"} <= set(words(root))
    told = [each.text or "" for each in root.iter(f"{SVG}title")]
    assert "W, passthrough, completed, 3 runs, 2.4 s" in told
    assert "C → S: if code_pass (did not fire)" in told
    silent = [each for each in root.iter(f"{SVG}g") if "silent" in (each.get("class") or "")]
    assert sum(each.find(f"{SVG}path") is not None for each in silent) == 3, "two edges, the answer"
    marks = {name: _mark(each) for name, each in found.items() if _mark(each)}
    assert len({marks[name] for name in "WCE"}) == 3, "a state is told by more than its colour"


def _mark(element: ET.Element) -> str:
    return next((e.get("d", "") for e in element.iter() if e.get("class") == "mark"), "")


def test_nodes_may_be_links():
    text = svg(loaded(LOOP), link=lambda name: "" if name == "E" else f'#node-"{name}"', ids="g1-")
    root = parsed(text)
    links = {each.get("href"): set(nodes(each)) for each in root.iter(f"{SVG}a")}
    assert links['#node-"S/X"'] == {"S/X"}
    assert len(links) == 4
    labels = [each.get("aria-label") for each in root.iter(f"{SVG}a")]
    assert "S/X, passthrough" in labels
    assert root.get("role") == "group"
    ids = [each.get("id") for each in root.iter() if each.get("id")]
    assert ids == ["g1-title", "g1-desc"]


@given(st.data())
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
def test_any_graph_is_well_formed_and_needs_nothing_from_elsewhere(data: st.DataObject):
    graph = loaded(data.draw(graphs()))
    text = svg(graph, data.draw(courses(graph)))
    root = parsed(text)
    kinds = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert kinds <= {"svg", "title", "desc", "style", "g", "rect", "path", "circle", "text"}
    assert not re.search(r"url\(|@import|href|[\x00-\x08\x0b-\x1f\x7f-\x9f]", text)
    assert not any(name.lower().startswith("on") for each in root.iter() for name in each.attrib)


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_a_text_and_nothing_else(name: str):
    graph = {"start": name, "nodes": [{"id": name, "type": "passthrough"}], "edges": []}
    root = parsed(svg(loaded(graph)))
    [found] = nodes(root)
    assert found == name.replace("\x1b", "\ufffd")
    assert not list(root.iter("script"))


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_fixed_theme_needs_no_variables(theme: Any):
    text = svg(loaded(LOOP), RUN, theme=theme)
    assert "var(" not in text
    assert "@media" not in text
    assert (LIGHT if theme == "light" else DARK)["ground"] in text


def test_the_theme_of_a_viewer_or_page_is_followed():
    text = svg(loaded(LOOP))
    assert "@media (prefers-color-scheme: dark)" in text
    assert ':root[data-theme="dark"] .devall-picture.auto' in text
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)
    assert style is not None
    for rule in re.findall(r"([^{}]+)\{[^{}]*\}", style[1]):
        selectors = rule.rpartition("{")[2].strip().split(",")
        assert all(".devall-picture.auto" in each for each in selectors), "else it styles the page"


def _contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


SURFACES = ["ground", "face", "loop", "sub", *(name for name in LIGHT if name.endswith("-face"))]
STATES = [name.removesuffix("-face") for name in LIGHT if name.endswith("-face")]


@pytest.mark.parametrize("colours", [LIGHT, DARK], ids=["light", "dark"])
def test_texts_and_signs_stand_out_enough(colours: dict[str, str]):
    for text, surface in product(("text", "muted"), SURFACES):
        assert _contrast(colours[text], colours[surface]) >= 4.5, (text, surface)
    assert _contrast(colours["loop-text"], colours["loop"]) >= 4.5
    for sign, surface in product(("edge", "back", "line", "loop-line"), ("ground", "sub", "loop")):
        if sign != "loop-line" or surface != "sub":
            assert _contrast(colours[sign], colours[surface]) >= 2.7, (sign, surface)
    for state in STATES:
        assert _contrast(colours[state], colours[f"{state}-face"]) >= 3, state
        assert _contrast(colours[state], colours["mark"]) >= 3, state
