from __future__ import annotations

import json

import pytest

from devall.agents.skills import Card, active, prompt_of
from devall.core.messages import Message, ToolCall
from devall.tools.base import ToolSpec

PDF = Card("pdf", "Reads PDFs.", ("read_*", "Bash(git:*)", "open(docs/*)"))
ANY = Card("any", "Everything.")
NONE = Card("none", "Only words.", ())


def spec(name: str, *texts: str) -> ToolSpec:
    properties = {"flag": {"type": "boolean"}} | {text: {"type": "string"} for text in texts}
    required = [text for text in texts if text == "command"]
    parameters = {"type": "object", "properties": properties, "required": required}
    return ToolSpec(name, "", parameters)


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall("c", name, json.dumps(arguments))


def activation(id_: str, name: str, *, is_error: bool = False) -> list[Message]:
    asked = ToolCall(id_, "activate_skill", json.dumps({"name": name}))
    return [
        Message("assistant", "", tool_calls=(asked,)),
        Message("tool", "done", tool_call_id=id_, is_error=is_error),
    ]


@pytest.mark.parametrize(
    ("card", "name", "may"),
    [
        (PDF, "read_file", True),
        (PDF, "write_file", False),
        (PDF, "Read_file", False),
        (PDF, "activate_skill", True),
        (PDF, "read_skill_file", True),
        (PDF, "read_tool_result", True),
        (ANY, "write_file", True),
        (NONE, "read_file", False),
    ],
)
def test_globs_name_the_tools_that_may_be_called(card: Card, name: str, may: bool):
    assert card.allows(call(name), spec(name)) is may


@pytest.mark.parametrize(
    ("command", "may"),
    [
        ("git", True),
        ("git status", True),
        ("github", False),
        ("rm -rf git", False),
        ("git status; rm -rf x", False),
        ("git log | sh", False),
        ("git log $(rm x)", False),
        ("git log\nrm x", False),
    ],
)
def test_a_pattern_in_brackets_is_held_against_the_command_alone(command: str, may: bool):
    bash = spec("Bash", "description", "command")
    asked = call("Bash", description="git", command=command)
    assert PDF.allows(asked, bash) is may


def test_a_pattern_of_paths_does_not_lead_out():
    opened = spec("open", "path")
    assert PDF.allows(call("open", path="docs/a.md"), opened)
    assert not PDF.allows(call("open", path="docs/../key"), opened)
    assert not PDF.allows(call("open", path=5), opened)
    assert not PDF.allows(call("open"), opened)
    assert not PDF.allows(ToolCall("c", "open", "no JSON"), opened)
    assert not PDF.allows(call("open", path="docs/a.md"), None)


def test_a_refusal_names_skill_and_tools():
    text = PDF.refusal(call("write_file"), spec("write_file"))
    assert "tool `write_file` is not allowed while skill `pdf` is active" in text
    assert "read_*, Bash(git:*)" in text
    assert PDF.refusal(call("read_file"), spec("read_file")) == ""


def test_the_skill_that_was_made_active_last_is_the_active_one():
    cards = [PDF, ANY]
    assert active(cards, []) is None
    one = activation("1", "pdf")
    assert active(cards, one) == PDF
    assert active(cards, [*one, *activation("2", "any")]) == ANY
    assert active(cards, [*one, *activation("2", "any", is_error=True)]) == PDF
    assert active(cards, one[:1]) is None


def test_the_prompt_lists_the_skills():
    assert prompt_of([]) == ""
    assert prompt_of([PDF, ANY]).splitlines()[1:] == ["- pdf: Reads PDFs.", "- any: Everything."]
