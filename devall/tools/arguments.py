"""The arguments of a call, from the raw text that a model wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, cast

from devall.core.errors import ToolArguments
from devall.core.messages import JsonValue

SHOWN = 800
"""Characters of a model's raw text that an error shows at most."""


def parse_arguments(raw: str, schema: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The arguments as a mapping; nothing is guessed.

    Args:
        raw: What the model wrote. Empty text stands for no arguments where the schema
            requires none.
        schema: JSON Schema of the tool's arguments.

    Raises:
        ToolArguments: the text is no JSON object, holds NaN or Infinity, or a name twice.
    """
    if not raw.strip():
        required = cast("Sequence[str]", schema.get("required") or ())
        if required:
            raise ToolArguments(f"arguments are missing; required: {', '.join(required)}")
        return {}
    try:
        value: Any = json.loads(raw, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno} (character {error.pos})"
        raise ToolArguments(_complaint(f"{error.msg} at {place}", raw)) from error
    except UnicodeEncodeError as error:
        raise ToolArguments(_complaint("half of a surrogate pair in a text", raw)) from error
    except (ValueError, RecursionError) as error:
        raise ToolArguments(_complaint(str(error), raw)) from error
    if not isinstance(value, dict):
        raise ToolArguments(_complaint(f"a JSON object is wanted, not {_kind(value)}", raw))
    return cast("dict[str, JsonValue]", value)


def _complaint(reason: str, raw: str) -> str:
    shown = raw if len(raw) <= SHOWN else f"{raw[: SHOWN // 2]} ... {raw[-SHOWN // 2 + 5 :]}"
    return f"the arguments are no valid JSON object: {reason}; given: {shown}"


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _no_duplicates(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = sorted({name for name in names if names.count(name) > 1})
        raise ValueError(f"given twice: {', '.join(twice)}")
    return found


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case _:
            return "a list"
