"""The part of JSONPath that the format knows: names, indices, and `[*]`."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

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
