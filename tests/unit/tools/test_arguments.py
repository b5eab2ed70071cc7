from __future__ import annotations

import pytest

from devall.core.errors import ToolArguments
from devall.tools.arguments import parse_arguments

NO_SCHEMA = {"type": "object", "properties": {}}


def test_an_object_is_taken_as_it_stands():
    assert parse_arguments('{"a": [1, {"b": null}]}', NO_SCHEMA) == {"a": [1, {"b": None}]}


def test_empty_text_is_no_arguments_where_none_is_required():
    assert parse_arguments(" ", NO_SCHEMA) == {}
    with pytest.raises(ToolArguments, match="required: city"):
        parse_arguments("", {"required": ["city"]})


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ('{"path":', "line 1, column 9"),
        ("null", "not null"),
        ("[1]", "not a list"),
        ('"x"', "not a text"),
        ("5", "not a number"),
        ("true", "not a boolean"),
        ('{"a": NaN}', "NaN"),
        ('{"a": -Infinity}', "-Infinity"),
        ('{"a": 1, "a": 2}', "given twice: a"),
        ('{"a": 1} x', "Extra data"),
        ("[" * 100_000, "recursion"),
        ('{"a": "\\ud83d"}', "surrogate"),
    ],
)
def test_anything_else_says_what_is_wrong_and_shows_the_text(raw: str, said: str):
    with pytest.raises(ToolArguments) as caught:
        parse_arguments(raw, NO_SCHEMA)
    assert said in str(caught.value)
    assert raw[:8] in str(caught.value)
    assert len(str(caught.value)) < 1000


def test_at_most_800_characters_of_the_text_are_shown():
    with pytest.raises(ToolArguments) as caught:
        parse_arguments('{"a": "' + "x" * 5000, NO_SCHEMA)
    shown = str(caught.value).partition("given: ")[2]
    assert 700 < len(shown) <= 800
