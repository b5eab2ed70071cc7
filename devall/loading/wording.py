"""How YAML and its values are spoken of in messages."""

from __future__ import annotations

import re

from devall.core.diagnostics import Diagnostic, Position
from devall.core.messages import JsonValue


def in_words(value: JsonValue) -> str:
    """What kind of value it is, without the value itself: `text`, `a number`, ..."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case list() | tuple():
            return "a list"
        case _:
            return "a mapping"


def explain_syntax(
    name: str,
    problem: str,
    context: str,
    at: tuple[int, int] | None,
    since: tuple[int, int] | None,
) -> Diagnostic:
    """What is wrong with a text that is no YAML.

    Args:
        name: The file as messages name it.
        problem: The scanner's words for it.
        context: What was being read.
        at: Line and column where reading stopped.
        since: Line and column where that which was being read begins.
    """
    for pattern, text, hint, is_about_start in _SYNTAX:
        found = re.search(pattern, f"{context}|{problem}")
        if found:
            spot = (since or at) if is_about_start else (at or since)
            first = f"line {since[0]}" if since else "above"
            values = {"char": found.groupdict().get("char") or "", "first": first}
            return Diagnostic(
                "syntax",
                text.format(**values),
                Position(name, *(spot or (1, 1))),
                hint.format(**values),
            )
    spot = at or since or (1, 1)
    return Diagnostic("syntax", f"no YAML: {problem}", Position(name, *spot))


_SYNTAX: tuple[tuple[str, str, str, bool], ...] = (
    (
        r"\|found character '\\t'",
        "a tab stands where YAML wants spaces",
        "indent with spaces",
        False,
    ),
    (
        r"\|found character '(?P<char>[@`%|>])'",
        "`{char}` cannot begin a text",
        "quote the text",
        False,
    ),
    (
        r"mapping values are not allowed here",
        "a `:` stands where no key can be",
        "a text that holds `: ` must be quoted; or the line is indented too far",
        False,
    ),
    (
        r"could not find expected ':'",
        "this line is neither a `key: value` nor part of the text above",
        "write `key: value`; a text of several lines begins with `|` behind its key",
        True,
    ),
    (
        r"a quoted scalar\|found unexpected",
        "the quote that opens here is never closed",
        "close it; within single quotes a quote is written twice",
        True,
    ),
    (
        r"double-quoted scalar\|found unknown escape character '(?P<char>.*)'",
        "`\\{char}` means nothing between double quotes",
        "use single quotes, or write `\\\\{char}`",
        False,
    ),
    (
        r"an alias\|expected",
        "a text cannot begin with `*`: that repeats an anchor",
        "quote the text",
        True,
    ),
    (
        r"an anchor\|expected",
        "a text cannot begin with `&`: that names an anchor",
        "quote the text",
        True,
    ),
    (
        r"a flow (?:sequence|mapping)\|unexpected <(?:stream|document|block) ?(?:end|start)?",
        "the bracket that opens here is never closed",
        "close it; a text that begins with a bracket must be quoted",
        True,
    ),
    (
        r"\|unexpected <stream end>",
        "the file ends within brackets that are not closed",
        "close them; a text that begins with a bracket must be quoted",
        False,
    ),
    (
        r"a flow (?:sequence|mapping)\|unexpected",
        "between the brackets that open on {first} a comma is missing here, or a bracket",
        "a text with brackets, commas or colons in it must be quoted",
        False,
    ),
    (
        r"a block mapping\|unexpected -",
        "a list item stands among the keys of a mapping",
        "indent it below the key that it belongs to",
        False,
    ),
    (
        r"a block mapping\|unexpected <(?:block mapping start|scalar)>",
        "this line does not fit the mapping that begins on {first}",
        "keys of one mapping begin in the same column",
        False,
    ),
    (
        r"a block collection\|unexpected",
        "this line does not fit the list that begins on {first}",
        "items of one list begin with `- ` in the same column",
        False,
    ),
    (
        r"sequence entries are not allowed here",
        "a list cannot begin behind a key on the same line",
        "put `- ` on a line of its own below the key",
        False,
    ),
    (
        r"a (?:block mapping|document|value)\|unexpected",
        "this does not fit what stands above",
        "look at the indentation and the quotes here and on {first}",
        False,
    ),
    (
        r"block scalar\|expected (?:chomping|a comment)",
        "behind `|` or `>` the line must end",
        "begin the text on the next line; a text that begins with `|` or `>` must be quoted",
        False,
    ),
    (
        r"more indented follow up line",
        "the empty first line of this text is indented deeper than the text",
        "take the spaces out of the empty line",
        False,
    ),
)
