"""What a docstring says of a function and of its arguments."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

_ARGUMENTS = ("args", "arguments", "parameters", "keyword args", "keyword arguments")
_HEADING = re.compile(
    r"(Args|Arguments|Parameters|Keyword Args|Keyword Arguments|Returns?|Yields?|Raises):[ ]*",
    re.IGNORECASE,
)
_GOOGLE_ITEM = re.compile(r"\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)")
_REST_FIELD = re.compile(r":(\w+)(?:\s+([^:]+))?:\s*(.*)")
_REST_ARGUMENTS = ("param", "parameter", "arg", "argument", "key", "keyword")


def read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """A docstring's prose, and what it says of each argument (Google or reST style).

    What the function returns and raises is left out.
    """
    prose: list[str] = []
    arguments: dict[str, str] = {}
    for section, lines in _sections(text):
        if not section:
            prose.extend(lines)
        elif section == "rest":
            arguments.update(_rest_arguments(lines))
        elif section in _ARGUMENTS:
            arguments.update(_google_arguments(lines))
    return textwrap.dedent("\n".join(prose)).strip(), arguments


def _sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """The parts of a docstring: Google's by heading, reST fields as `rest`, prose as ``."""
    section = ""
    lines: list[str] = []
    for line in text.expandtabs().splitlines():
        heading = _HEADING.fullmatch(line)
        if heading:
            following = heading[1].lower()
        elif _REST_FIELD.match(line):
            following = "rest"
        elif section == "rest" and not line.strip():
            following = ""
        else:
            following = "" if line.strip() and not line.startswith(" ") else section
        if following != section:
            yield section, lines
            section, lines = following, []
        if not heading:
            lines.append(line)
    yield section, lines


def _google_arguments(lines: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    depth = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    for line in lines:
        item = _GOOGLE_ITEM.fullmatch(line[depth:].rstrip())
        if item:
            name = item[1]
            found[name] = item[2]
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found


def _rest_arguments(lines: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    name = ""
    for line in lines:
        field = _REST_FIELD.match(line)
        if field:
            name = ""
            if field[1] in _REST_ARGUMENTS and field[2]:
                name = field[2].split()[-1].lstrip("*")
                found[name] = field[3].strip()
        elif name:
            found[name] = f"{found[name]} {line.strip()}".strip()
    return found
