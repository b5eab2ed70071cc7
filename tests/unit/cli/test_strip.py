from __future__ import annotations

import pytest
from rich.text import Text

from devall.cli.board import State
from devall.cli.strip import bar, end_of, packed, strip_of


def strip(nodes: list[tuple[str, State]], width: int, lines: int, *, is_ascii: bool = False):
    found = strip_of(
        nodes, width, lines, is_ascii=is_ascii, shown=lambda name, longest: name[:longest]
    )
    assert len(found) <= lines
    assert all(line.cell_len <= width for line in found)
    return [line.plain for line in found]


def test_few_nodes_are_shown_by_name():
    nodes: list[tuple[str, State]] = [
        ("A", "done"),
        ("B", "running"),
        ("C", "asking"),
        ("D", "failed"),
        ("E", "skipped"),
        ("F", "waiting"),
    ]
    assert strip(nodes, 60, 1) == ["✓ A  ● B  ? C  ✗ D  – E  · F"]
    assert strip(nodes, 15, 2) == ["✓ A  ● B  ? C", "✗ D  – E  · F"]
    assert strip(nodes, 60, 1, is_ascii=True) == ["+ A  > B  ? C  x D  - E  . F"]


def test_of_more_nodes_each_has_a_mark():
    nodes: list[tuple[str, State]] = [(f"node {n}", "waiting") for n in range(100)]
    nodes[0], nodes[99] = ("first", "done"), ("last", "failed")
    assert strip(nodes, 70, 2) == ["✓" + "·" * 69, "·" * 29 + "✗"]


def test_of_very_many_nodes_a_mark_stands_for_several_and_shows_the_gravest():
    nodes: list[tuple[str, State]] = [(f"n{n}", "done") for n in range(1000)]
    nodes[500], nodes[501], nodes[999] = ("x", "failed"), ("y", "running"), ("z", "running")
    [line] = strip(nodes, 50, 1)
    assert line == "✓" * 25 + "✗" + "✓" * 23 + "●"


def test_a_graph_without_nodes_is_an_empty_strip():
    assert strip([], 50, 2) == []


@pytest.mark.parametrize("width", [10, 17, 40, 60])
@pytest.mark.parametrize("total", [1, 3, 10, 100, 10_000])
@pytest.mark.parametrize("failed", [0, 1])
@pytest.mark.parametrize("share", [0, 0.01, 0.5, 1])
def test_a_bar_is_full_only_at_the_end_and_shows_each_failure(
    width: int, total: int, failed: int, share: float
):
    failed = min(failed, total)
    done = round((total - failed) * share)
    parts: list[tuple[State, int]] = [("done", done), ("failed", failed), ("running", 0)]
    text = bar(parts, total, width, is_ascii=False).plain
    assert len(text) == width
    assert ("─" in text) == (done + failed < total)
    assert ("✗" in text) == (failed > 0)
    assert ("━" in text) == (done > 0) or width < 3


def test_a_bar_shows_what_runs_behind_what_is_over():
    parts: list[tuple[State, int]] = [("done", 50), ("failed", 10), ("running", 20)]
    assert bar(parts, 100, 10, is_ascii=False).plain == "━━━━━✗╍╍──"
    assert bar(parts, 100, 10, is_ascii=True).plain == "=====x>>--"


def test_parts_are_never_broken():
    lines = packed([Text(word) for word in ("one", "two", "three", "eleven")], 10)
    assert [line.plain for line in lines] == ["one  two", "three", "eleven"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [("short", "short"), ("a text that is long", "…is long"), ("日本語日本語", "…日本語")],
)
def test_of_a_long_text_the_end_is_shown(text: str, shown: str):
    assert end_of(text, 8) == shown
