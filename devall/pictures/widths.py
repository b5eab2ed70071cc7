"""How wide a text is drawn, and how it is broken into lines that fit.

A picture is drawn with whatever sans serif font its viewer has. What is reckoned with here is a
wide one (DejaVu Sans, Verdana), so that a text stays within its box with the others as well.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache

_EMS = {
    0.3: "'IJijl",
    0.35: " ,./:;\\f|",
    0.4: "!()-[]t",
    0.45: "r",
    0.5: '"*_`',
    0.55: "?csz",
    0.6: "FLPkvxy",
    0.65: "$0123456789ESTYabdeghnopqu{}",
    0.7: "ABCKRVXZ",
    0.75: "HNU",
    0.8: "&DGOQ",
    0.85: "#+<=>^w~",
    0.9: "M",
    0.95: "%",
    1.0: "@Wm…",
}
_WIDTHS = {char: width for width, chars in _EMS.items() for char in chars}
_OTHER = 0.9
"""Of letters of other alphabets: the widest of Greek, Cyrillic, Hebrew and Arabic need less."""
_WIDE = 1.2
"""Of Chinese, Japanese, Korean and emoji: an em, and the glyph for what no font has is wider."""
BOLD = 1.16
"""How much wider bold letters are."""

Measure = Callable[[str], float]


def em_width(text: str) -> float:
    """The width of a text in ems."""
    return sum(map(_char, text))


def measure(size: float, *, bold: bool = False) -> Measure:
    """What tells the width of texts in a size of type."""
    factor = size * (BOLD if bold else 1)
    return lambda text: em_width(text) * factor


def columns(text: str) -> int:
    """The width of a text on a terminal."""
    return sum(map(_columns, text))


def wrapped(text: str, room: float, most: int, width: Measure) -> list[str]:
    """The text in lines that fit; what is too long for so many lines ends with `…`.

    Args:
        text: One line of words.
        room: How wide a line may be.
        most: How many lines there may be.
        width: Tells how wide a text is.
    """
    lines: list[str] = []
    rest = text.strip()
    while rest:
        if width(rest) <= room:
            return [*lines, rest]
        if len(lines) == most - 1:
            return [*lines, cut(rest, room, width)]
        head = _head(rest, room, width)
        lines.append(head.rstrip())
        rest = rest[len(head) :].lstrip()
    return lines or [""]


def cut(text: str, room: float, width: Measure) -> str:
    """The text, its end cut off with `…` where it does not fit."""
    if width(text) <= room:
        return text
    left = room - width("…")
    end = 0
    for end in _ends(text):
        if width(text[:end]) > left:
            break
    while end > 0 and width(text[:end]) > left:
        end = _before(text, end)
    return text[:end].rstrip() + "…"


def _head(text: str, room: float, width: Measure) -> str:
    """As much of the text as fits on a line, at least one character, broken where one would."""
    last = good = 0
    for end in _ends(text):
        if last and width(text[:end].rstrip()) > room:
            break
        last = end
        if end < len(text) and _may_break(text[end - 1], text[end]):
            good = end
    return text[: good if good and width(text[:good]) > room / 3 else last]


def _may_break(before: str, after: str) -> bool:
    return before in " _-./:;,|" or after == " " or _columns(before) == 2 or _columns(after) == 2


def _ends(text: str) -> Iterator[int]:
    """Where a text may be cut without tearing an accent off its letter."""
    for end in range(1, len(text) + 1):
        if end == len(text) or not _joins(text[end]):
            yield end


def _before(text: str, end: int) -> int:
    end -= 1
    while end > 0 and _joins(text[end]):
        end -= 1
    return end


def _joins(char: str) -> bool:
    """Whether a character belongs to the one before it."""
    return not char.isascii() and (unicodedata.combining(char) > 0 or char in "\u200d\ufe0f\ufe0e")


@lru_cache(maxsize=4096)
def _char(char: str) -> float:
    known = _WIDTHS.get(char)
    if known is not None:
        return known
    columns = _columns(char)
    return (0.0, _OTHER, _WIDE)[columns]


@lru_cache(maxsize=4096)
def _columns(char: str) -> int:
    if char.isascii():
        return 1
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in {"W", "F"} else 1
