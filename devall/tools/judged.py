"""A toolset whose results are errors where the workflow says so."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from devall.config.json_path import values_at
from devall.config.tools import ErrorWhen
from devall.core.messages import DataPart, JsonValue, TextPart
from devall.core.ports import Scope
from devall.tools.base import ToolResult, Toolset
from devall.tools.wrapped import WrappedToolset


class JudgedToolset(WrappedToolset):
    """Marks results as errors that fit one of the conditions; what they say stays as it is."""

    def __init__(self, inner: Toolset, conditions: Sequence[ErrorWhen]) -> None:
        super().__init__(inner)
        self._conditions = conditions

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool, and judge what it says."""
        result = await self.inner.call(name, arguments, scope, call_id)
        if result.is_error or not any(_is_met(each, result) for each in self._conditions):
            return result
        return replace(result, is_error=True)


def _is_met(condition: ErrorWhen, result: ToolResult) -> bool:
    if condition.regex is not None and re.search(condition.regex, result.text):
        return True
    path = condition.json_path
    if path is None:
        return False
    found = [value for data in _values(result) for value in values_at(path, data)]
    if condition.equals is None:
        return any(found)
    return any(_is_same(value, condition.equals) for value in found)


def _values(result: ToolResult) -> list[JsonValue]:
    """The JSON values of a result: its data, its text as a whole, and each text by itself."""
    texts = [part.text for part in result.parts if isinstance(part, TextPart)]
    values: list[JsonValue] = [part.data for part in result.parts if isinstance(part, DataPart)]
    for text in dict.fromkeys((*texts, result.text)):
        try:
            values.append(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return values


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    """Equal, and of one kind: in JSON, 1 is not true."""
    return one == other and isinstance(one, bool) == isinstance(other, bool)
