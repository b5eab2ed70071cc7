from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from devall.pictures.ascii import MOST_BOXES, ascii_art
from devall.pictures.widths import columns
from tests.unit.pictures.graphs import courses, graphs, loaded
from tests.unit.pictures.test_svg import LOOP, RUN

DRAWN = """\
● start
  │
  ▼
┏╍ loop ╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍┓
┇ ╭─────────────╮          ┇
┇ │ W           │          ┇
┇ │ passthrough │          ┇
┇ ╰─────────────╯          ┇
┇   │                      ┇
┇   ▼                      ┇
┇ ╭─────────────╮          ┇
┇ │ C           │          ┇
┇ │ passthrough │          ┇
┇ ╰─────────────╯          ┇
┇   ├──▶ ↺ W  if code_fail ┇
┇   └──▶ S  if code_pass   ┇
┗╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍╍┛

┌─ S (subgraph) ──┐
│ ╭─────────────╮ │
│ │ X           │ │
│ │ passthrough │ │
│ ╰─────────────╯ │
└─────────────────┘
  │
  ▼
╭─────────────╮
│ E           │
│ passthrough │
╰─────────────╯
  │
  ▼
● answer
"""


def test_nodes_stand_below_each_other_and_edges_say_where_they_lead():
    assert ascii_art(loaded(LOOP)) == DRAWN


def test_a_run_is_told_by_marks_and_words():
    text = ascii_art(loaded(LOOP), RUN)
    assert "loop · 3 rounds" in text
    assert "✓ ×3 · 2.4 s" in text
    assert "✗ failed · ×3 · 1.0 s" in text
    assert "S (subgraph) – skipped" in text
    assert "· did not begin" in text
    assert "└··▶ S  (did not fire) if code_pass" in text
    assert "├──▶ ↺ W  if code_fail ×2" in text


def test_a_terminal_without_unicode_gets_none():
    text = ascii_art(loaded(LOOP), RUN, plain=True)
    assert text.isascii()
    assert "+ x3, 2.4 s" in text
    assert "|--> back to W  if code_fail x2" in text


@given(st.data(), st.integers(20, 90), st.booleans())
@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
def test_no_line_is_wider_than_the_terminal(data: st.DataObject, width: int, plain: bool):
    graph = loaded(data.draw(graphs()))
    text = ascii_art(graph, data.draw(courses(graph)), width=width, plain=plain)
    lines = text.splitlines()
    assert max(map(columns, lines)) <= max(width, 24)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", text)
    assert text.isascii() or not plain
    assert lines[0].endswith("start")


def test_a_long_condition_is_told_on_several_lines():
    when = "score >= 8 and len(faults) == 0 and not draft"
    graph = {
        "start": "A",
        "nodes": [{"id": name, "type": "passthrough"} for name in "ABC"],
        "edges": [
            {"from": "A", "to": "C", "condition": {"type": "expression", "config": {"when": when}}},
            {"from": "A", "to": "B"},
        ],
    }
    assert """\
  ├──▶ C  if score >= 8 and len(faults)
  │      == 0 and not draft
  │
  ▼
""" in ascii_art(loaded(graph), width=42)


def test_many_nodes_are_a_list():
    names = [f"n{number}" for number in range(MOST_BOXES + 1)]
    graph: dict[str, Any] = {
        "start": "n0",
        "nodes": [{"id": name, "type": "passthrough"} for name in names],
        "edges": [{"from": "n0", "to": name} for name in names[1:]],
    }
    lines = ascii_art(loaded(graph)).splitlines()
    assert "● n7  passthrough" in lines
    assert "╭" not in "".join(lines)
    assert len(lines) < 4 * len(names)


@pytest.mark.parametrize("width", [30, 80])
def test_wide_characters_do_not_bend_a_frame(width: int):
    name = "审查员😀 é́"
    graph = {"start": name, "nodes": [{"id": name, "type": "passthrough"}], "edges": []}
    frame = ascii_art(loaded(graph), width=width).splitlines()[3:7]
    assert len({columns(line) for line in frame}) == 1
