"""What an agent is told."""

from __future__ import annotations

import pytest

from devall.agents.prompts import conversation, with_note
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, assistant, user

PICTURE = MediaPart("image", "image/png", attachment="x.png")


def told(*inputs: Message, mode: str = "messages", role: str = "") -> tuple[Message, ...]:
    return conversation(inputs, role=role, input_mode=mode)


def test_each_input_is_a_message_of_its_own_behind_the_role():
    inputs = (user("one", "X"), assistant("two", "Y"))
    assert told(*inputs, role="r") == (Message("system", "r"), *inputs)


def test_without_a_role_there_is_no_system_message():
    assert told(user("one")) == (user("one"),)


def test_skills_stand_behind_the_role():
    [system, _] = conversation([user("x")], role="r", skills="s", input_mode="messages")
    assert system == Message("system", "r\n\ns")


@pytest.mark.parametrize("mode", ["messages", "prompt"])
def test_no_input_at_all_is_one_empty_user_message(mode: str):
    assert told(mode=mode) == (user(""),)


@pytest.mark.parametrize("mode", ["messages", "prompt"])
def test_system_inputs_go_to_the_front(mode: str):
    found = told(user("one"), Message("system", "late"), role="r", mode=mode)
    assert [m.role for m in found] == ["system", "system", "user"]
    assert [m.text for m in found[:2]] == ["r", "late"]


def test_a_prompt_holds_all_inputs_behind_a_line_for_each_source():
    found = told(user("the task"), user("first", "L1"), assistant("second", "L2"), mode="prompt")
    assert found == (user("=== task ===\nthe task\n\n=== L1 ===\nfirst\n\n=== L2 ===\nsecond"),)


def test_a_prompt_tells_of_earlier_tool_results_in_words():
    call = Message("assistant", "", "A", tool_calls=(ToolCall("1", "get", "{}"),))
    result = Message("tool", "73", "A", tool_call_id="1")
    [found] = told(user("go", "X"), call, result, assistant("done", "A"), mode="prompt")
    assert found.text == "=== X ===\ngo\n\n=== A: result of get ===\n73\n\n=== A ===\ndone"
    assert not found.tool_calls


def test_a_prompt_keeps_pictures_behind_the_text_they_came_with():
    look = Message("user", (TextPart("look"), PICTURE), "X")
    [found] = told(look, user("and?", "Y"), mode="prompt")
    assert found.parts == (
        TextPart("=== X ===\nlook"),
        PICTURE,
        TextPart("=== Y ===\nand?"),
    )


def test_a_note_comes_before_the_last_user_message():
    messages = (user("a"), assistant("b"), user("c"))
    assert with_note(messages, "note") == (user("a"), assistant("b"), user("note"), user("c"))


def test_a_note_comes_last_where_no_user_speaks():
    assert with_note((assistant("b"),), "note") == (assistant("b"), user("note"))


def test_no_text_is_no_note():
    assert with_note((user("a"),), "") == (user("a"),)
