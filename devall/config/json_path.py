"""The part of JSONPath that the format knows: names, indices, and `[*]`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, TypeAlias, cast

from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

Step: TypeAlias = str | int | None
"""A key, an index, or None = every element."""

_STEP = re.compile(
    r"""
      \.? \[ \s* (?: (?P<index>-?\d+) | (?P<every>\*) | '(?P<single>[^']*)' | "(?P<double>[^"]*)" )
      \s* \]
    | \. (?P<star>\*)
    | \.? (?P<name>[^.\[\]*$'"\s][^.\[\]]*)
    """,
    re.VERBOSE,
)


def parse_json_path(text: str) -> tuple[Step, ...]:
    """The steps of a path: `$.data.items[*]`, or dotted without the root: `data.items`.

    Raises:
        ValueError: the text is no such path; the message says from where on.
    """
    at = 1 if text.startswith("$") else 0
    steps: list[Step] = []
    while at < len(text):
        found = _STEP.match(text, at)
        if found is None or (steps and found.lastgroup == "name" and text[at] != "."):
            raise ValueError(f"`{text[at:]}` cannot be read")
        group, value = found.lastgroup, found[found.lastgroup or 0]
        if group == "index" or (group == "name" and value.isdecimal()):
            steps.append(int(value))
        else:
            steps.append(None if group in {"every", "star"} else value)
        at = found.end()
    return tuple(steps)


def values_at(path: str, data: Any) -> list[Any]:
    """What a path leads to in a JSON value: nothing, one value, or several."""
    found = [data]
    for step in parse_json_path(path):
        found = [each for value in found for each in _children(value, step)]
    return found


def _children(value: Any, step: Step) -> Sequence[Any]:
    """What one step of a path leads to: nothing, one value, or every element."""
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        if step is None:
            return list(mapping.values())
        return [mapping[str(step)]] if str(step) in mapping else ()
    if isinstance(value, list):
        items = cast("list[Any]", value)
        if step is None:
            return items
        if isinstance(step, int) and -len(items) <= step < len(items):
            return [items[step]]
    return ()


def _as_path(text: str) -> str:
    try:
        parse_json_path(text)
    except ValueError as error:
        reason = str(error)
        raise PydanticCustomError(
            "bad_json_path", "no path: {reason}", {"reason": reason}
        ) from error
    return text


JsonPath: TypeAlias = Annotated[str, AfterValidator(_as_path)]
"""A path into JSON."""
