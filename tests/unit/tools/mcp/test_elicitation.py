from __future__ import annotations

from typing import Any

import pytest

from devall.tools.mcp.elicitation import Form, Reply, Visit, answered


def form(required: list[str] | None = None, **fields: Any) -> Form:
    return Form("Well?", {"type": "object", "properties": fields, "required": required or []})


async def reply_to(question: Form | Visit, *answers: str) -> Reply:
    left = list(answers)

    async def ask(_: str) -> str:
        return left.pop(0)

    found = await answered(question, "server", ask)
    assert not left
    return found


@pytest.mark.parametrize(
    ("field", "words", "value"),
    [
        ({"type": "string"}, " Ada ", "Ada"),
        ({"type": "string", "oneOf": [{"const": "r", "title": "Red"}]}, "red", "r"),
        ({"type": "string", "enum": ["r", "g"]}, "g", "g"),
        ({"type": "number"}, "2.5", 2.5),
        ({"type": "boolean"}, "Yes", True),
        ({"type": "boolean"}, "no", False),
        ({"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, "a, b", ["a", "b"]),
        ({"type": "array", "items": {"anyOf": [{"const": "x", "title": "Ex"}]}}, "Ex", ["x"]),
        ({"type": "array", "items": {"type": "string"}}, '["a"]', ["a"]),
        ({"type": "string", "default": "d"}, "", "d"),
        ({"type": "integer", "default": 0}, "", 0),
    ],
)
async def test_words_become_the_value_that_the_field_wants(field: Any, words: str, value: Any):
    assert (await reply_to(form(f=field), words)).content == {"f": value}


async def test_no_words_leave_out_what_is_not_required_and_are_asked_again_for_what_is():
    assert (await reply_to(form(f={"type": "string"}), "")).content == {}
    required = form(["f"], f={"type": "string"})
    assert (await reply_to(required, "", "x")).content == {"f": "x"}
    assert (await reply_to(required, "", "", "")).action == "cancel"


async def test_a_form_without_fields_and_a_page_are_a_matter_of_yes_and_no():
    for question in (form(), Visit("Log in", "https://x.test")):
        assert (await reply_to(question, "yes")).action == "accept"
        assert (await reply_to(question, "later")).action == "decline"
        assert (await reply_to(question, "!cancel")).action == "cancel"


async def test_odd_schemas_ask_for_something_and_never_crash():
    for schema in ({}, {"properties": 5}, {"properties": {"a": 5}}, {"properties": {"a": {}}}):
        assert (await reply_to(Form("Well?", schema), "yes")).action == "accept"
