"""How a dynamic edge makes units of the messages that came over it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any, assert_never, cast

from devall.config.edges import JsonPathSplit, MessageSplit, RegexSplit, Split
from devall.config.json_path import values_at
from devall.core.messages import JsonValue, Message


def split_messages(split: Split, messages: Sequence[Message]) -> tuple[Message, ...]:
    """The units, in the order of the messages and of what is found in each."""
    return tuple(unit for message in messages for unit in _units(split, message))


def _units(split: Split, message: Message) -> Iterator[Message]:
    match split:
        case MessageSplit():
            yield message
        case RegexSplit():
            found = _matches(split, message.text)
            if found:
                yield from map(message.with_text, found)
            elif split.on_no_match == "pass":
                yield message
        case JsonPathSplit():
            try:
                data = json.loads(message.text)
            except ValueError:
                yield message
                return
            yield from (message.with_text(_as_text(each)) for each in _elements(split, data))
        case _:
            assert_never(split)


def _matches(split: RegexSplit, text: str) -> list[str]:
    flags = (
        (0 if split.case_sensitive else re.IGNORECASE)
        | (re.MULTILINE if split.multiline else 0)
        | (re.DOTALL if split.dotall else 0)
    )
    group = 0 if split.group is None else split.group
    return [match.group(group) or "" for match in re.finditer(split.pattern, text, flags)]


def _elements(split: JsonPathSplit, data: JsonValue) -> Sequence[JsonValue]:
    """What the path leads to; one array there counts as its elements."""
    found = values_at(split.json_path, data)
    if len(found) == 1 and isinstance(found[0], list):
        return cast("list[Any]", found[0])
    return found


def _as_text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
