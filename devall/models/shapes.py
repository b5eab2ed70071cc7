"""Reading JSON of which nobody promises the shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from devall.core.messages import JsonValue


def as_object(value: JsonValue) -> dict[str, JsonValue]:
    """The value if it is an object, else an empty one."""
    return dict(cast(Mapping[str, JsonValue], value)) if isinstance(value, Mapping) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """The value if it is a list, else an empty one."""
    return cast(list[JsonValue], value) if isinstance(value, list) else []


def as_text(value: JsonValue) -> str:
    """The value if it is text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: JsonValue) -> int:
    """The value if it is a number that counts something, else 0."""
    return int(value) if isinstance(value, int | float) and value > 0 else 0
