"""Conversations that are cut to fit."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.agents.history import answered
from devall.agents.window import SHORTENED, Fitted, fit
from devall.config.agents import HistoryConfig
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, assistant, user
from devall.tools.slices import is_wanted, notice

SYSTEM = Message("system", "role")


def size(message: Message) -> int:
    """One token for each character, calls included: exact, so that every cut is met."""
    return len(message.text) + sum(len(c.arguments) for c in message.tool_calls) + 1


def call(*ids: str) -> Message:
    return Message("assistant", "", "A", tool_calls=tuple(ToolCall(i, "t", "{}") for i in ids))


def result(call_id: str, text: str = "r") -> Message:
    return Message("tool", text, "A", tool_call_id=call_id)


def rounds(*texts: str, calls: int = 2) -> list[Message]:
    """Rounds of parallel calls, each with results of that text."""
    found: list[Message] = []
    for number, text in enumerate(texts):
        ids = [f"c{number}-{n}" for n in range(calls)]
        found += [call(*ids), *(result(i, text) for i in ids)]
    return found


def total(messages: Sequence[Message]) -> int:
    return sum(map(size, messages))


def cut(messages: Sequence[Message], room: int, **history: int) -> Fitted:
    return fit(messages, room, HistoryConfig(**history), size, lambda text: f"{len(text)}.txt")


def is_note(message: Message) -> bool:
    return message.role == "user" and "left out here" in message.text


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Message, ...]:
    """A system prompt, then turns: inputs, rounds of parallel calls, perhaps an answer."""
    messages = [SYSTEM] if draw(st.booleans()) else []
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        for n in range(draw(st.integers(1, 3))):
            keep = draw(st.booleans()) and draw(st.booleans())
            messages.append(Message("user", f"input {turn}.{n} ", keep=keep))
        for _ in range(draw(st.integers(0, 3))):
            ids = [f"c{number}-{n}" for n in range(draw(st.integers(1, 4)))]
            number += 1
            length = draw(st.sampled_from([1, 50, 3000]))
            messages += [call(*ids), *(result(i, "x" * length) for i in ids)]
        if draw(st.booleans()):
            messages.append(assistant(f"answer {turn}", "A"))
    return tuple(messages)


@given(conversations(), st.integers(0, 2), st.integers(1, 3), st.data())
def test_no_cut_parts_a_call_from_its_results(
    messages: tuple[Message, ...], first: int, last: int, data: st.DataObject
):
    room = data.draw(st.integers(0, total(messages) + 5))
    fitted = cut(messages, room, keep_first=first, keep_last=last)
    assert answered(fitted.messages) == fitted.messages
    calls = [c.id for m in fitted.messages for c in m.tool_calls]
    assert [m.tool_call_id for m in fitted.messages if m.role == "tool"] == calls


@given(conversations(), st.integers(0, 2), st.integers(1, 3), st.data())
def test_system_prompt_task_newest_inputs_and_last_rounds_stay(
    messages: tuple[Message, ...], first: int, last: int, data: st.DataObject
):
    room = data.draw(st.integers(0, total(messages) + 5))
    left = cut(messages, room, keep_first=first, keep_last=last).messages
    stays = [m for m in messages if m.role == "system" or m.keep]
    inputs = [m for m in messages if m.role == "user"]
    stays += [inputs[0], inputs[-1]]
    answers = [m for m in messages if m.role == "assistant"]
    stays += answers[:first] + answers[-last:]
    for message in stays:
        assert message in left


@given(conversations(), st.data())
def test_what_is_left_is_in_order_and_a_note_stands_for_each_gap(
    messages: tuple[Message, ...], data: st.DataObject
):
    room = data.draw(st.integers(0, total(messages) + 5))
    fitted = cut(messages, room)
    heads = [m for m in fitted.messages if m.role != "tool" and not is_note(m)]
    whole = [m for m in messages if m.role != "tool"]
    places = [whole.index(m) for m in heads]
    assert places == sorted(places)
    told = sum(int(m.text[1:].split()[0]) for m in fitted.messages if is_note(m))
    assert told == fitted.left_out
    assert len(fitted.messages) - sum(map(is_note, fitted.messages)) + told == len(messages)
    assert fitted.tokens == total(fitted.messages)


@given(conversations(), st.data())
def test_it_fits_wherever_it_can(messages: tuple[Message, ...], data: st.DataObject):
    least = cut(messages, 0).tokens
    room = data.draw(st.integers(0, total(messages) + 5))
    fitted = cut(messages, room)
    if room >= least + 2000:
        assert fitted.tokens <= room
    if total(messages) <= room:
        assert fitted == Fitted(messages, total(messages))


def test_every_cut_point_of_three_rounds_of_parallel_calls():
    messages = [SYSTEM, user("task"), *rounds("x" * 300, "y" * 300, "z" * 300), assistant("end")]
    lengths: set[int] = set()
    for room in range(total(messages) + 2):
        left = cut(messages, room).messages
        assert answered(left) == left
        assert left[:2] == (SYSTEM, user("task"))
        assert left[-1] == assistant("end")
        lengths.add(len(left))
    assert len(lengths) >= 4


def test_old_results_are_shortened_before_anything_is_left_out():
    messages = [user("task"), *rounds("x" * 8000, "y" * 8000, "z" * 8000, calls=1)]
    fitted = cut(messages, 18_000)
    assert (fitted.left_out, fitted.shortened) == (0, 1)
    short = fitted.messages[2].text
    assert len(short) <= SHORTENED
    assert short.startswith("xxx")
    assert short.endswith("xxx")
    assert notice("8000.txt") in short
    assert is_wanted(fitted.messages)
    assert fitted.messages[3:] == tuple(messages[3:])


def test_a_result_that_was_cut_before_keeps_the_name_of_its_whole_text():
    text = "a" * 4000 + notice("first.txt") + "b" * 4000
    messages = [user("task"), call("1"), result("1", text), *rounds("z")]
    short = cut(messages, 3000).messages[2].text
    assert notice("first.txt") in short
    assert "8" not in short.partition("first.txt")[0][-20:]


def test_pictures_of_a_result_that_is_shortened_stay():
    picture = MediaPart("image", "image/png", attachment="p.png")
    shown = Message("tool", (TextPart("x" * 9000), picture), "A", tool_call_id="1")
    fitted = cut([user("task"), call("1"), shown, *rounds("z")], 3000)
    assert picture in fitted.messages[2].parts


def test_old_turns_go_before_the_rounds_of_the_newest():
    old = [user("first"), assistant("a"), user("second"), *rounds("x" * 400), assistant("b")]
    new = [
        user("third"),
        *(
            Message(
                m.role,
                m.content,
                m.source,
                tool_calls=tuple(ToolCall(f"n{c.id}", c.name, c.arguments) for c in m.tool_calls),
                tool_call_id=m.tool_call_id and f"n{m.tool_call_id}",
            )
            for m in rounds("y" * 400, "z" * 400)
        ),
    ]
    left = cut([*old, *new], 2000).messages
    texts = [m.text[:5] for m in left]
    assert "xxxxx" not in texts
    assert texts.count("yyyyy") == 2


def test_keep_first_and_keep_last_name_rounds():
    messages = [user("task"), *rounds(*"abcdefgh", calls=1)]
    left = cut(messages, 1, keep_first=2, keep_last=3).messages
    assert [m.text for m in left if m.role == "tool"] == ["a", "b", "f", "g", "h"]
    assert sum(map(is_note, left)) == 1


def test_the_newest_results_are_shortened_where_nothing_else_helps():
    messages = [user("task"), *rounds("x" * 9000, calls=1)]
    fitted = fit(messages, 1500, HistoryConfig(), lambda message: size(message) // 4)
    assert fitted.tokens <= 1500
    assert fitted.shortened == 1
    assert len(fitted.messages[-1].text) > 3000
    assert not is_wanted(fitted.messages)  # there was nobody to keep the whole text


@pytest.mark.parametrize("room", [0, 10, 50])
def test_what_cannot_fit_is_given_as_small_as_it_gets(room: int):
    fitted = cut([SYSTEM, user("long " * 100)], room)
    assert fitted.tokens > room
    assert fitted.left_out == 0
