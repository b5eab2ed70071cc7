"""The arguments of a tool call, read from the text that a model wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping

from devall.core.errors import ToolArguments
from devall.core.messages import JsonValue
from devall.tools.base import ToolSpec

SHOWN = 800
"""Characters of the raw text that an error gives back to the model."""


def parsed_arguments(text: str, tool: ToolSpec) -> Mapping[str, JsonValue]:
    """The JSON object that the text holds.

    No text at all is an empty object for a tool without required parameters.

    Raises:
        ToolArguments: it is no JSON object, names a key twice, or holds NaN or Infinity.
    """
    if not text.strip():
        required = tool.parameters.get("required")
        if not required:
            return {}
        names = ", ".join(map(str, required))
        raise ToolArguments(f"the arguments of {tool.name} are empty; required: {names}")
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_no_constant)
    except RecursionError:
        raise ToolArguments(f"the arguments of {tool.name} are nested too deeply") from None
    except ValueError as error:
        raise ToolArguments(
            f"the arguments of {tool.name} are no valid JSON: {error}. They were: {_shown(text)}"
        ) from error
    if not isinstance(value, dict):
        raise ToolArguments(
            f"the arguments of {tool.name} must be a JSON object, not"
            f" {_KINDS.get(type(value), 'a number')}. They were: {_shown(text)}"
        )
    return value


_KINDS = {list: "an array", str: "a text", bool: "a boolean", type(None): "null"}


def _shown(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} ... ({len(text)} characters in all)"


def _unique(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice")
    return found


def _no_constant(name: str) -> JsonValue:
    raise ValueError(f"{name} is no JSON value")
