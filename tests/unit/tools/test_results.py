from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from devall.core.errors import ToolFailed
from devall.core.messages import MediaPart, TextPart
from devall.tools.base import ToolResult
from devall.tools.results import NOTHING_RETURNED, to_result
from devall.workspace import Workspace

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@dataclass
class Point:
    x: int


class City(BaseModel):
    name: str


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        ({"città": 1}, {"città": 1}),
        ([1, 2.5, None, True], [1, 2.5, None, True]),
        (3, 3),
        (Point(1), {"x": 1}),
        ([City(name="Rom")], [{"name": "Rom"}]),
        ({"t": dt.date(2026, 1, 2)}, {"t": "2026-01-02"}),
        ((1, {2}), [1, [2]]),
        (float("nan"), "NaN"),
    ],
)
def test_values_become_json(value: Any, plain: Any):
    assert json.loads(to_result(value, None).text) == plain


def test_text_stays_as_it_is_and_other_alphabets_are_readable():
    assert to_result("è\n{", None).text == "è\n{"
    assert "città" in to_result({"città": 1}, None).text


def test_nothing_is_said_in_words():
    assert to_result(None, None).text == NOTHING_RETURNED


def test_an_object_without_json_form_becomes_its_text():
    class Odd:
        def __str__(self) -> str:
            return "odd one"

    assert json.loads(to_result({"a": Odd()}, None).text) == {"a": "odd one"}


def test_a_value_that_holds_itself_is_a_failure():
    value: list[Any] = []
    value.append(value)
    with pytest.raises(ToolFailed, match="no JSON form"):
        to_result(value, None)


def test_bytes_become_an_attachment_that_the_text_names(workspace: Workspace):
    text, media = to_result(PNG, workspace).parts
    assert isinstance(media, MediaPart)
    assert (media.type, media.mime_type) == ("image", "image/png")
    assert workspace.read_attachment(media.attachment) == PNG
    assert isinstance(text, TextPart)
    assert media.attachment in text.text


def test_parts_in_a_list_stay_parts(workspace: Workspace):
    result = to_result(["see:", PNG, {"a": 1}], workspace)
    kinds = [type(part).__name__ for part in result.parts]
    assert kinds == ["TextPart", "TextPart", "MediaPart", "TextPart"]
    assert result.parts[-1] == TextPart('{"a":1}')


def test_without_a_workspace_bytes_are_said_and_not_kept():
    (part,) = to_result(PNG, None).parts
    assert isinstance(part, TextPart)
    assert "image/png, 28 bytes" in part.text


def test_a_result_passes_as_it_is():
    given = ToolResult((TextPart("no"),), is_error=True)
    assert to_result(given, None) is given
