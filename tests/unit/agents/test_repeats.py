"""Standstill."""

from __future__ import annotations

import pytest

from devall.agents.repeats import Repeats
from devall.core.errors import NoProgress
from devall.core.messages import ToolCall


def turn(*calls: tuple[str, str, str]) -> list[tuple[ToolCall, str]]:
    return [(ToolCall(f"{i}", n, a), r) for i, (n, a, r) in enumerate(calls)]


READ = ("read", '{"a": 1, "b": 2}', "text")


def test_the_third_time_the_model_is_told_and_the_fourth_fails():
    repeats = Repeats(3)
    assert repeats.note(turn(READ)) == ""
    assert repeats.note(turn(READ)) == ""
    assert "read 3 times" in repeats.note(turn(READ))
    with pytest.raises(NoProgress, match="read 4 times"):
        repeats.note(turn(READ))


def test_arguments_in_another_spelling_are_the_same():
    repeats = Repeats(2)
    repeats.note(turn(READ))
    assert repeats.note(turn(("read", '{"b":2,"a":1}', "text")))


@pytest.mark.parametrize(
    "other",
    [
        [("read", '{"a": 1}', "text")],
        [("read", READ[1], "other text")],
        [("write", READ[1], "text")],
        [READ, ("write", "{}", "done")],
        [("read", "no json {", "text")],
    ],
)
def test_anything_else_in_between_is_progress(other: list[tuple[str, str, str]]):
    repeats = Repeats(2)
    for _ in range(4):
        assert repeats.note(turn(READ)) == ""
        assert repeats.note(turn(*other)) == ""


def test_the_order_of_the_calls_of_a_turn_does_not_matter():
    repeats, write = Repeats(2), ("write", "{}", "done")
    repeats.note(turn(READ, write))
    assert repeats.note(turn(write, READ))


def test_zero_is_for_tools_that_poll():
    repeats = Repeats(0)
    assert {repeats.note(turn(READ)) for _ in range(20)} == {""}
