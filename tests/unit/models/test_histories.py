"""Conversations in the form of each profile, against files that say what is sent."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devall.core.messages import MediaPart, Message, TextPart, ToolCall, assistant, to_json, user
from devall.models.base import ChatRequest
from devall.models.convert import body_of
from devall.models.convert_messages import body_of as messages_body_of
from devall.models.histories import HISTORIES, NO_RESULT, normalised

GOLDEN = Path(__file__).parent / "histories"
SYSTEM = Message("system", "Be brief.")
SKILL = Message("system", "A skill: count twice.")
IMAGE = MediaPart("image", "image/png", url="https://x/a.png")


def calls(*ids: str, text: str = "", **extra) -> Message:
    asked = tuple(ToolCall(each, "f", '{"a": 1}') for each in ids)
    return Message("assistant", text, tool_calls=asked, extra=extra)


def result(call_id: str, text: str = "42", **more) -> Message:
    return Message("tool", text, tool_call_id=call_id, **more)


CASES: dict[str, tuple[Message, ...]] = {
    "one question": (user("hi"),),
    "system and question": (SYSTEM, user("hi")),
    "nothing at all": (),
    "system alone": (SYSTEM,),
    "an empty question": (user(""),),
    "white space for a question": (SYSTEM, user(" \n")),
    "two inputs in a row": (SYSTEM, user("one"), user("two")),
    "an empty input beside another": (user(""), user("two")),
    "an assistant begins": (assistant("welcome"), user("hi")),
    "two assistants in a row": (user("hi"), assistant("a"), assistant("b"), user("go on")),
    "an empty answer": (user("hi"), assistant(""), user("well?")),
    "system in the middle": (SYSTEM, user("hi"), SKILL, user("go on")),
    "system in the middle alone": (user("hi"), SKILL, user("go on")),
    "a call and its result": (user("hi"), calls("c1"), result("c1")),
    "calls with words": (SYSTEM, user("hi"), calls("c1", "c2", text="wait"),
                         result("c1"), result("c2", "no", is_error=True)),
    "an empty result": (user("hi"), calls("c1"), result("c1", "")),
    "results in another order": (user("hi"), calls("c1", "c2"), result("c2"), result("c1")),
    "an input among the results": (user("hi"), calls("c1", "c2"), result("c1"), user("quick!"),
                                   result("c2")),
    "a result is missing": (user("hi"), calls("c1", "c2"), result("c1"), user("go on")),
    "a result without a call": (user("hi"), result("c9"), user("go on")),
    "calls at the very beginning": (calls("c1"), result("c1"), user("go on")),
    "calls twice with one id": (user("hi"), calls("c1"), result("c1"), calls("c1"), result("c1")),
    "an image and a question": (Message("user", (TextPart("look"), IMAGE)), user("what is it?")),
    "an image of a tool": (user("hi"), calls("c1"), Message("tool", (TextPart("this"), IMAGE),
                                                            tool_call_id="c1"), user("and?")),
    "thoughts and a call": (user("hi"), calls("c1", reasoning_content="hm"), result("c1")),
}  # fmt: skip


def sent(messages: Sequence[Message], profile: str):
    """What goes over the wire."""
    if profile == "anthropic":
        body = messages_body_of(ChatRequest(tuple(messages)), "m")
        return {key: body[key] for key in ("system", "messages") if key in body}
    found = normalised(messages, HISTORIES[profile])
    return body_of(ChatRequest(found), "m")["messages"]


@pytest.mark.parametrize("profile", HISTORIES)
def test_each_history_is_sent_as_its_golden_file_says(profile):
    found = {name: sent(messages, profile) for name, messages in CASES.items()}
    path = GOLDEN / f"{profile}.json"
    if os.environ.get("UPDATE_GOLDEN"):
        lines = (f"{json.dumps(k)}: {json.dumps(v)}" for k, v in found.items())
        path.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    assert found == json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("profile", HISTORIES.values(), ids=lambda each: each.name)
@pytest.mark.parametrize("name", CASES)
def test_what_is_sent_breaks_no_rule_of_the_profile(profile, name):
    check(normalised(CASES[name], profile), profile)


def check(found: Sequence[Message], profile) -> None:
    """A linter of conversations."""
    roles = [message.role for message in found]
    if profile.system_first:
        assert "system" not in roles[1:]
    others = [message for message in found if message.role != "system"]
    if profile.user_first:
        assert others[0].role == "user"
    if profile.alternates:
        spoken = [m.role for m in others]
        pairs = list(itertools.pairwise(spoken))
        assert ("user", "user") not in pairs
        assert ("assistant", "assistant") not in pairs
    if not profile.takes_empty:
        assert all(m.parts or m.tool_calls or m.role in {"tool", "system"} for m in found)
    open_calls: list[str] = []
    for message in found:
        if message.role == "tool":
            assert message.tool_call_id in open_calls
            open_calls.remove(message.tool_call_id)
            continue
        assert not open_calls
        open_calls = [call.id for call in message.tool_calls]
    assert not open_calls


SOMETHING = st.one_of(
    st.sampled_from(["hi", "", " ", "go"]).map(user),
    st.sampled_from(["a", ""]).map(assistant),
    st.just(SYSTEM),
    st.sampled_from([("c1",), ("c1", "c2")]).map(lambda ids: calls(*ids)),
    st.sampled_from(["c1", "c2", "c3"]).map(result),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(SOMETHING, max_size=8), st.sampled_from(list(HISTORIES.values())))
def test_any_history_at_all_breaks_no_rule(messages, profile):
    found = normalised(messages, profile)
    check(found, profile)
    assert normalised(found, profile) == found
    said = "\n".join(m.text for m in found)
    assert all(m.text.strip() in said for m in messages)


def test_a_sound_history_stays_as_it_is():
    sound = CASES["calls with words"]
    for profile in HISTORIES.values():
        assert [to_json(m) for m in normalised(sound, profile)] == [to_json(m) for m in sound]


def test_a_call_that_was_interrupted_is_told_as_such():
    found = normalised(CASES["a result is missing"], HISTORIES["openai"])
    assert found[3] == result("c2", NO_RESULT, is_error=True)
