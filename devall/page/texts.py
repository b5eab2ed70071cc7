"""Texts of a run as a page may show them: without secrets and control characters, and bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from devall.core.messages import JsonValue

MOST = 4_000_000
"""Bytes of HTML that all texts of a page take together."""
LONGEST = 60_000
"""Characters of one of them."""
SHORTEST = 200
"""Characters that stay of each, however many there are."""
FOLDED = 700
"""Characters beyond which a text is folded away behind its beginning."""
FOLDED_LINES = 14
HUGE = 6000
HUGE_LINES = 100
ONE_LINE = 80
"""Characters of a JSON value up to which it stands on one line."""

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_DIRECTION = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Characters that make text stand in another order than it is written."""


def clean(text: str) -> str:
    """The text with control characters made visible (`␛`); line breaks and tabs stay."""
    text = text.replace("\r\n", "\n")
    return _DIRECTION.sub("\ufffd", _CONTROL.sub(_visible, text))


def _visible(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else "\ufffd"


def pretty(value: JsonValue) -> str:
    """A JSON value as people read it: on one line, if it is short."""
    line = json.dumps(value, ensure_ascii=False, default=str)
    if len(line) <= ONE_LINE:
        return line
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


@dataclass(slots=True)
class Text:
    """One text of the page."""

    whole: str
    """Clean and without secrets."""
    bound: Bound

    def __bool__(self) -> bool:
        return bool(self.whole)

    @property
    def shown(self) -> str:
        """What the page has of it."""
        return self.whole[: self.bound.longest]

    @property
    def left_out(self) -> int:
        """Characters that the page does not have."""
        return max(0, len(self.whole) - self.bound.longest)

    @property
    def is_folded(self) -> bool:
        """Whether it is long: its beginning is shown, and the rest when asked for."""
        return len(self.whole) > FOLDED or self.whole.count("\n") > FOLDED_LINES

    @property
    def is_huge(self) -> bool:
        """Whether it stays folded also where a reader has asked for what it is part of."""
        return len(self.whole) > HUGE or self.whole.count("\n") > HUGE_LINES

    @property
    def beginning(self) -> str:
        """Its first words, on one line."""
        return shortened(self.whole, 160)


@dataclass(slots=True)
class Bound:
    """How long a text of the page may be; the same for all of them."""

    longest: int = LONGEST


@dataclass(slots=True)
class Texts:
    """All texts of a page."""

    redact: Callable[[str], str] = field(default=lambda text: text)
    _bound: Bound = field(default_factory=Bound)
    _every: list[Text] = field(default_factory=list[Text])

    def add(self, text: str) -> Text:
        """The text, for the page to show."""
        found = Text(clean(self.redact(text)), self._bound)
        self._every.append(found)
        return found

    def line(self, text: str, longest: int = 160) -> str:
        """The beginning of a text, on one line."""
        return shortened(clean(self.redact(text)), longest)

    @property
    def cut(self) -> int:
        """How many texts are cut."""
        return sum(each.left_out > 0 for each in self._every)

    def settle(self, most: int = MOST) -> int:
        """Bound all texts so that they take no more than so many bytes; characters of one.

        Each may be as long as it can be while the page stays within its bound: what is cut
        are the longest ones.
        """
        sizes = sorted((len(each.whole), _bytes(each.whole)) for each in self._every)
        left, count = most, len(sizes)
        longest = LONGEST
        for at, (length, size) in enumerate(sizes):
            others = count - at
            weight = size / max(1, length)
            if size * others > left:
                longest = min(LONGEST, max(SHORTEST, int(left / others / max(1.0, weight))))
                break
            left -= size
        self._bound.longest = longest
        return longest


def _bytes(text: str) -> int:
    """How long a text is in HTML."""
    special = sum(text.count(each) for each in "&<>'\"")
    return len(text.encode("utf-8", "replace")) + 4 * special


def shortened(text: str, longest: int) -> str:
    """The text on one line, cut to so many characters."""
    joined = " ".join(text[: longest * 4].split())
    return joined if len(joined) <= longest else joined[: longest - 1] + "…"
