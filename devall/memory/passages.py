"""Texts in passages, cut where their structure has joints: headings, definitions, blank lines."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

PASSAGE = 1000
"""Characters of a passage at most."""
OVERLAP = 100
"""Characters that a passage shares with the one before it, where something longer is cut."""
SPLITTING = 1
"""Another number where texts are cut in another way than before."""

_MARKDOWN = frozenset({".md", ".markdown", ".mdx"})
_PYTHON = frozenset({".py", ".pyi"})
_CODE = frozenset(
    [
        ".c",
        ".cc",
        ".cpp",
        ".cs",
        ".css",
        ".go",
        ".h",
        ".hpp",
        ".java",
        ".js",
        ".jsx",
        ".kt",
        ".lua",
        ".m",
        ".php",
        ".pl",
        ".r",
        ".rb",
        ".rs",
        ".scala",
        ".sh",
        ".sql",
        ".swift",
        ".ts",
        ".tsx",
        ".vue",
        ".zig",
    ]
)
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a text."""

    text: str
    title: str = ""
    """What it stands under, the outermost first: `Guide > Installation`, `class Engine`."""
    line: int = 1
    """Where it begins."""

    @property
    def whole(self) -> str:
        """The text with its title."""
        return f"{self.title}\n{self.text}" if self.title else self.text


@dataclass(frozen=True, slots=True)
class _Block:
    """Lines that belong together."""

    text: str
    line: int
    title: str = ""
    own: str = ""
    """What it is called itself: goes into the title of all its pieces but the first."""
    is_alone: bool = False
    """Whether it is a passage of its own, however short."""


def passages(text: str, name: str = "") -> Iterator[Passage]:
    """The passages of a text, each of at most `PASSAGE` characters without its title.

    Args:
        text: The whole text.
        name: The file's name; its suffix says what the text is.
    """
    lines = text.splitlines()
    suffix = PurePath(name).suffix.lower()
    if suffix in _MARKDOWN:
        blocks: Iterable[_Block] = _sections(lines)
    elif suffix in _PYTHON:
        blocks = _definitions(text, lines)
    else:
        blocks = _paragraphs(lines, are_indented_apart=suffix not in _CODE)
    return _packed(blocks)


def _packed(blocks: Iterable[_Block]) -> Iterator[Passage]:
    """Short blocks together, long ones in pieces."""
    held: Passage | None = None
    for block in blocks:
        text = block.text.rstrip()
        if not text.strip():
            continue
        if held is not None and not block.is_alone and held.title == block.title:
            both = f"{held.text}\n\n{text}"
            if len(both) <= PASSAGE:
                held = Passage(both, held.title, held.line)
                continue
        if held is not None:
            yield held
            held = None
        if len(text) > PASSAGE:
            yield from _pieces(block)
        elif block.is_alone:
            yield Passage(text, block.title, block.line)
        else:
            held = Passage(text, block.title, block.line)
    if held is not None:
        yield held


def _pieces(block: _Block) -> Iterator[Passage]:
    """A long block in pieces that overlap, cut between paragraphs, lines or words if possible."""
    text = block.text
    later = " > ".join(filter(None, (block.title, block.own)))
    start = 0
    while start < len(text):
        end = len(text)
        if end - start > PASSAGE:
            end = start + PASSAGE
            middle = start + PASSAGE // 2
            joints = (text.rfind(joint, middle, end) for joint in ("\n\n", "\n", " "))
            end = next((joint for joint in joints if joint > 0), end)
        piece = text[start:end].strip("\n").rstrip()
        if piece.strip():
            line = block.line + text.count("\n", 0, start)
            yield Passage(piece, later if start else block.title, line)
        if end == len(text):
            return
        back = end - OVERLAP
        joints = (text.find(joint, back, end) + 1 for joint in ("\n", " "))
        start = next((joint for joint in joints if joint > 0), back)


def _paragraphs(
    lines: Sequence[str], *, first: int = 0, are_indented_apart: bool = True
) -> Iterator[_Block]:
    """Blocks between blank lines.

    Args:
        lines: What is cut.
        first: Number of the first line, from 0.
        are_indented_apart: False: an indented line belongs to what stands above it, blank
            lines or not, as in a definition of most programming languages.
    """
    begin: int | None = None
    was_blank = False
    for number, line in enumerate(lines):
        if not line.strip():
            was_blank = True
            continue
        is_apart = are_indented_apart or not (line[0].isspace() or line[0] in ")}]")
        if begin is None:
            begin = number
        elif was_blank and is_apart:
            yield _block(lines, begin, number, first)
            begin = number
        was_blank = False
    if begin is not None:
        yield _block(lines, begin, len(lines), first)


def _block(
    lines: Sequence[str],
    begin: int,
    end: int,
    first: int = 0,
    *,
    title: str = "",
    own: str = "",
    is_alone: bool = False,
) -> _Block:
    text = "\n".join(lines[begin:end])
    return _Block(text, first + begin + 1, title, own, is_alone)


def _sections(lines: Sequence[str]) -> Iterator[_Block]:
    """A Markdown text by its headings; a heading without text of its own goes to the next one."""
    headings = list(_headings(lines))
    first = headings[0][0] if headings else len(lines)
    yield from _paragraphs(lines[:first])
    path: list[tuple[int, str]] = []
    for place, (begin, depth, own) in enumerate(headings):
        end, deeper = len(lines), 0
        if place + 1 < len(headings):
            end, deeper, _ = headings[place + 1]
        path = [each for each in path if each[0] < depth]
        title = " > ".join(name for _, name in path)
        path.append((depth, own))
        if deeper <= depth or any(line.strip() for line in lines[begin + 1 : end]):
            yield _block(lines, begin, end, title=title, own=own, is_alone=True)


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, int, str]]:
    """Line, depth and text of each heading outside of code."""
    fence = ""
    for number, line in enumerate(lines):
        if mark := _FENCE.match(line):
            found = mark[1]
            if not fence:
                fence = found
            elif found.startswith(fence):
                fence = ""
        elif not fence and (heading := _HEADING.match(line)):
            yield number, len(heading[1]), heading[2]


def _definitions(text: str, lines: Sequence[str]) -> Iterator[_Block]:
    """A Python text by its top-level definitions; long classes by their methods."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _paragraphs(lines, are_indented_apart=False)
    # A form feed is a line's end for `splitlines`, and none for Python.
    return _statements(tree.body, text.split("\n"), 0, None, "")


def _statements(
    body: Sequence[ast.stmt], lines: Sequence[str], begin: int, end: int | None, title: str
) -> Iterator[_Block]:
    """The definitions among statements, and what stands between them.

    Args:
        body: The statements.
        lines: Of the whole text.
        begin: Where the first line of all that is, from 0.
        end: Where it ends; None = with the text.
        title: What the statements stand in.
    """
    last = len(lines) if end is None else end
    for statement in body:
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        start = min([statement.lineno, *(d.lineno for d in statement.decorator_list)]) - 1
        while start > begin and lines[start - 1].lstrip().startswith("#"):
            start -= 1
        yield from _between(lines, begin, start, title)
        begin = statement.end_lineno or start + 1
        kind = "class" if isinstance(statement, ast.ClassDef) else "def"
        own = f"{kind} {statement.name}"
        block = _block(lines, start, begin, title=title, own=own, is_alone=True)
        if isinstance(statement, ast.ClassDef) and len(block.text) > PASSAGE:
            inside = " > ".join(filter(None, (title, own)))
            yield from _statements(statement.body, lines, start, begin, inside)
        else:
            yield block
    yield from _between(lines, begin, last, title)


def _between(lines: Sequence[str], begin: int, end: int, title: str) -> Iterator[_Block]:
    for block in _paragraphs(lines[begin:end], first=begin):
        yield _Block(block.text, block.line, title)
