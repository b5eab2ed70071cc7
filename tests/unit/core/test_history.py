"""Cuts of a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from devall.core.history import trim, units
from devall.core.messages import Message, ToolCall, assistant, user


def call(*ids: str) -> Message:
    return Message("assistant", "", tool_calls=tuple(ToolCall(i, "t", "{}") for i in ids))


def result(call_id: str) -> Message:
    return Message("tool", "r", tool_call_id=call_id)


def kept(message: Message) -> Message:
    return replace(message, keep=True)


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """Rounds of plain messages and of calls with all their results; some marked *keep*."""
    messages: list[Message] = []
    for number in range(draw(st.integers(0, 6))):
        calls = draw(st.integers(0, 3))
        if calls:
            ids = [f"c{number}-{n}" for n in range(calls)]
            messages += [call(*ids), *map(result, ids)]
        else:
            messages.append(user(f"m{number}"))
    marks = draw(st.lists(st.booleans(), min_size=len(messages), max_size=len(messages)))
    return tuple(replace(m, keep=k) for m, k in zip(messages, marks, strict=True))


def is_answered(messages: Sequence[Message]) -> bool:
    asked = [c.id for m in messages for c in m.tool_calls]
    given_back = [m.tool_call_id for m in messages if m.role == "tool"]
    return asked == given_back


@given(conversations(), st.integers(0, 20))
def test_a_cut_never_parts_a_call_from_its_results(
    messages: tuple[Message, ...], window: int
) -> None:
    assert is_answered(trim(messages, window))


@given(conversations(), st.integers(0, 20))
def test_a_cut_keeps_all_that_is_marked_and_the_order(
    messages: tuple[Message, ...], window: int
) -> None:
    left = trim(messages, window)
    places = [next(i for i, m in enumerate(messages) if m is one) for one in left]
    assert places == sorted(set(places))
    assert all(any(m is one for one in left) for m in messages if m.keep)


@given(conversations(), st.integers(0, 20))
def test_only_kept_units_go_over_the_window(messages: tuple[Message, ...], window: int) -> None:
    must = sum(
        len(unit) for unit in units(messages) if any(messages[position].keep for position in unit)
    )
    assert len(trim(messages, window)) <= max(window, must)


@given(conversations(), st.integers(0, 20))
def test_what_is_dropped_is_older_than_every_loose_unit_that_stays(
    messages: tuple[Message, ...], window: int
) -> None:
    left = {id(m) for m in trim(messages, window)}
    loose = [u for u in units(messages) if not any(messages[p].keep for p in u)]
    stays = [id(messages[unit[0]]) in left for unit in loose]
    assert stays == sorted(stays)


@given(conversations())
def test_a_window_as_large_as_the_conversation_keeps_it(messages: tuple[Message, ...]) -> None:
    assert trim(messages, len(messages)) == messages
    assert trim(messages, -1) == messages


@given(conversations(), st.integers(0, 20))
def test_cutting_twice_is_cutting_once(messages: tuple[Message, ...], window: int) -> None:
    assert trim(trim(messages, window), window) == trim(messages, window)


def test_window_two_keeps_the_newest_two() -> None:
    seen = (user("the task"), assistant("d1"), user("bad"))
    assert trim(seen, 2) == (assistant("d1"), user("bad"))


def test_a_kept_message_takes_a_place_of_the_window() -> None:
    seen = (kept(user("write about rain")), assistant("d1"), user("bad"))
    assert trim(seen, 2) == (kept(user("write about rain")), user("bad"))


def test_kept_messages_alone_may_go_over_the_window() -> None:
    seen = (kept(user("a")), user("b"), kept(user("c")))
    assert trim(seen, 1) == (kept(user("a")), kept(user("c")))


def test_without_a_window_only_kept_messages_stay() -> None:
    assert trim((user("a"), user("b")), 0) == ()
    assert trim((user("a"), kept(user("b"))), 0) == (kept(user("b")),)


def test_a_call_too_large_for_the_room_goes_with_its_results_and_all_before_it() -> None:
    seen = (user("a"), call("1", "2"), result("1"), result("2"), assistant("b"))
    assert trim(seen, 3) == (assistant("b"),)
    assert trim(seen, 4) == seen[1:]


def test_a_kept_result_keeps_its_call() -> None:
    seen = (call("1"), kept(result("1")), user("a"))
    assert trim(seen, 0) == seen[:2]


def test_an_id_used_twice_belongs_to_the_nearest_call() -> None:
    assert units((call("1"), result("1"), call("1"), result("1"))) == [[0, 1], [2, 3]]


def test_a_message_between_a_call_and_its_result_does_not_part_them() -> None:
    seen = (call("1"), user("a"), result("1"), user("b"))
    assert units(seen) == [[1], [0, 2], [3]]
    assert trim(seen, 3) == (call("1"), result("1"), user("b"))
