"""A report by chapters: Markdown, found and changed by the titles of its headings."""

from __future__ import annotations

import difflib
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devall.core.errors import ToolArguments, ToolFailed

from ._text import split_lines

_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Chapter:
    """A heading and all up to the next one of its level or above."""

    level: int
    title: str
    start: int
    """Index of the heading's line."""
    end: int
    """Index behind the last line."""
    above: tuple[str, ...]
    """Titles of the chapters that it lies in, outermost first."""

    @property
    def path(self) -> str:
        return "/".join(escaped(each) for each in (*self.above, self.title))


class Report:
    """The lines of a report, to be changed chapter by chapter."""

    def __init__(self, text: str) -> None:
        self.lines = [body for body, _ in split_lines(text)]

    @property
    def text(self) -> str:
        lines = "\n".join(self.lines).strip("\n")
        return lines + "\n" if lines else ""

    def chapters(self) -> list[Chapter]:
        """All chapters, in their order."""
        headings = list(_headings(self.lines))
        found: list[Chapter] = []
        open_: list[tuple[int, str]] = []
        for number, (start, level, title) in enumerate(headings):
            open_ = [each for each in open_ if each[0] < level]
            end = next((s for s, lv, _ in headings[number + 1 :] if lv <= level), len(self.lines))
            found.append(Chapter(level, title, start, end, tuple(name for _, name in open_)))
            open_.append((level, title))
        return found

    def find(self, path: str) -> Chapter:
        """The chapter of a title, or of titles from the outside in: `Intro/Background`.

        Raises:
            ToolFailed: there is none, or more than one.
        """
        chapters = self.chapters()
        titles = split_title(path, "/")
        found = [c for c in chapters if c.title == titles[-1] and _is_below(titles[:-1], c.above)]
        # Who forgets the backslashes is understood as well where nothing else is meant.
        found = found or [c for c in chapters if c.title == path.strip()]
        if len(found) == 1:
            return found[0]
        if found:
            ways = ", ".join(f"{c.path!r}" for c in found)
            raise ToolFailed(f"{len(found)} chapters are called {path!r}", hint=f"name one: {ways}")
        known = [c.path for c in chapters]
        near = difflib.get_close_matches(path, known, n=3, cutoff=0.4) or known[:20]
        hint = "chapters are: " + ", ".join(map(repr, near)) if near else "the report is empty"
        raise ToolFailed(f"there is no chapter {path!r}", hint=hint)

    def create(self, path: str, level: int, content: str) -> str:
        """Put in a new chapter; its path.

        Args:
            path: Its title; `Parent/New` within another, `Previous|New` right behind another,
                `|New` before all others.
            level: Of its heading, 1 to 6.
            content: Its text, without the heading.

        Raises:
            ToolFailed: what it refers to is not there, or it is there already.
            ToolArguments: the level does not fit.
        """
        *parents, last = split_title(path, "/", keep="|")
        previous, bar, title = _partition(last)
        if not title:
            raise ToolArguments(f"{path!r} names no new chapter")
        parent = self.find("/".join(map(escaped, parents))) if parents else None
        if parent is not None and level <= parent.level:
            raise ToolArguments(
                f"a chapter in {parent.path!r} has at least level {parent.level + 1}, not {level}"
            )
        above = (*parent.above, parent.title) if parent else ()
        # A title need be unique only among its siblings.
        if any(c.title == title and c.above == above for c in self.chapters()):
            raise ToolFailed(
                f"there is a chapter {title!r} already",
                hint="use report_rewrite_chapter or report_continue_chapter, or another title",
            )
        if previous:
            at = self.find("/".join(map(escaped, (*parents, previous)))).end
        elif bar:
            within = [
                c.start for c in self.chapters() if parent is None or c.above[: len(above)] == above
            ]
            at = within[0] if within else (parent.end if parent else 0)
        else:
            at = parent.end if parent else len(self.lines)
        self._put(at, at, [f"{'#' * level} {title}", "", *body_of(content, title)])
        return "/".join(map(escaped, (*above, title)))

    def rewrite(self, path: str, content: str) -> None:
        """Give a chapter another text; its heading stays, chapters in it go."""
        chapter = self.find(path)
        heading = self.lines[chapter.start]
        self._put(chapter.start, chapter.end, [heading, "", *body_of(content, chapter.title)])

    def extend(self, path: str, content: str) -> None:
        """Put more text at the end of a chapter, behind the chapters in it."""
        chapter = self.find(path)
        self._put(chapter.end, chapter.end, body_of(content, chapter.title))

    def delete(self, path: str) -> None:
        """Take a chapter out, with those in it."""
        chapter = self.find(path)
        self._put(chapter.start, chapter.end, [])

    def reorder(self, paths: Sequence[str]) -> None:
        """Have chapters change places, so that they come in this order; all else stays.

        Raises:
            ToolFailed: one is not there, is named twice, or lies in another.
        """
        chosen = [self.find(path) for path in paths]
        places = sorted(chosen, key=lambda chapter: chapter.start)
        for one, other in itertools.pairwise(places):
            if other.start < one.end:
                same = "named twice" if one == other else f"a part of {one.path!r}"
                raise ToolFailed(f"{other.path!r} is {same}: such chapters have no order")
        lines: list[str] = []
        at = 0
        for place, chapter in zip(places, chosen, strict=True):
            lines += self.lines[at : place.start]
            lines += [*_stripped(self.lines[chapter.start : chapter.end]), ""]
            at = place.end
        self.lines = lines + self.lines[at:]

    def _put(self, start: int, end: int, lines: Sequence[str]) -> None:
        """Replace lines, with one empty line before and behind."""
        before, after = _stripped(self.lines[:start]), _stripped(self.lines[end:])
        parts = [part for part in (before, _stripped(lines), after) if part]
        self.lines = [line for part in parts for line in ([*part, ""])]


def body_of(content: str, title: str) -> list[str]:
    """The lines of a chapter's text; a heading of its own title at the top is left out."""
    lines = _stripped([body for body, _ in split_lines(content)])
    if lines and (heading := _HEADING.fullmatch(lines[0])) and heading[2] == title:
        lines = _stripped(lines[1:])
    return lines


def split_title(path: str, separator: str, keep: str = "") -> list[str]:
    r"""The titles of a path; `\/` is a slash within a title, and likewise `\|` and `\\`.

    Args:
        path: As it was given.
        separator: What stands between titles.
        keep: Marks whose backslash stays, for a later look.
    """
    titles = [""]
    at = 0
    while at < len(path):
        if path[at] == "\\" and path[at + 1 : at + 2] in {"/", "|", "\\"}:
            mark = path[at + 1]
            titles[-1] += ("\\" if mark in {*keep, *(keep and "\\")} else "") + mark
            at += 2
        elif path[at] == separator:
            titles.append("")
            at += 1
        else:
            titles[-1] += path[at]
            at += 1
    return [each.strip() for each in titles]


def escaped(title: str) -> str:
    """A title as a part of a path."""
    return re.sub(r"([/|\\])", r"\\\1", title)


def _partition(last: str) -> tuple[str, str, str]:
    parts = split_title(last, "|")
    if len(parts) == 1:
        return "", "", parts[0]
    return parts[0], "|", "|".join(parts[1:])


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Line, level and title of every heading that stands in no block of code."""
    fence = ""
    for number, line in enumerate(lines):
        marks = _FENCE.match(line)
        if fence:
            if marks and marks[1].startswith(fence) and not line.strip(" `~"):
                fence = ""
        elif marks:
            fence = marks[1]
        elif heading := _HEADING.fullmatch(line):
            yield number, len(heading[1]), heading[2]


def _is_below(titles: Sequence[str], above: Sequence[str]) -> bool:
    """Whether these titles occur in a chapter's, in this order."""
    rest = iter(above)
    return all(title in rest for title in titles)


def _stripped(lines: Sequence[str]) -> list[str]:
    """The lines without empty ones at both ends."""
    filled = [number for number, line in enumerate(lines) if line.strip()]
    return list(lines[filled[0] : filled[-1] + 1]) if filled else []
