"""A YAML text with its lines indented in one way; nothing else of it changes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from devall.loading.document import Document, Piece, parse_document, scan

STEP = 2
"""Columns by which what belongs to a key or to a `-` is indented."""
_ROUNDS = 8
_HEADER = re.compile(r"[|>][-+]?([1-9])?[-+]?\s*(?:#.*)?$")
_UNPLACED = frozenset({"<stream start>", "<stream end>", "<block end>"})
_OPENS = frozenset({"[", "{"})
_CLOSES = frozenset({"]", "}"})


def format_yaml(document: Document) -> str:
    """The text of a document, formatted; formatting it once more changes nothing.

    Keys and what belongs to a `-` are indented by two columns, lists too; one space stands behind
    a colon and a dash; blanks at the ends of lines go, and all empty lines of a row but one.
    Comments, order, quotes and the texts themselves stay. What cannot be indented otherwise
    without changing a value stays as it is.
    """
    text = document.text
    for _ in range(_ROUNDS):
        new = _formatted(text, document)
        if new == text:
            return text
        text = new
    return document.text  # none is known; a formatter that never ends would be worse


def _formatted(text: str, document: Document) -> str:
    lines = _Lines(text)
    wanted = (document.root, len(document.problems))
    for found in (lines.indented(), lines.cleaned()):
        # A text behind `|` that is the end of a file may end without a line break.
        for candidate in (found, found.removesuffix("\n")):
            if _says(candidate) == wanted:
                return candidate
    return text


def _says(text: str) -> tuple[object, int]:
    found = parse_document(text, "")
    return (found.root if found.is_readable else Ellipsis, len(found.problems))


@dataclass(slots=True)
class _Block:
    """A mapping or list in block style that is being read."""

    is_list: bool
    old: int
    """Column of its keys or dashes."""
    new: int
    """The same in the formatted text."""
    is_loose: bool = False
    """A list whose dashes stand below its key: no end of it is told."""


@dataclass(slots=True)
class _Lines:
    """A text on its way."""

    text: str
    lines: list[str] = field(default_factory=list[str])
    heads: dict[int, int] = field(default_factory=dict[int, int])
    """Line to its new indentation, where a piece of the structure begins it."""
    shifts: dict[int, int] = field(default_factory=dict[int, int])
    """Line to the columns by which it moves along with the one that it belongs to."""
    kept: dict[int, str] = field(default_factory=dict[int, str])
    """Lines of texts that go over several lines, as they will be."""
    gaps: dict[int, list[tuple[int, int]]] = field(default_factory=dict[int, list[tuple[int, int]]])
    """Line to the blanks that become one space: from, to."""
    stacks: dict[int, tuple[_Block, ...]] = field(default_factory=dict[int, tuple[_Block, ...]])
    """Line to the blocks that are open behind it."""

    def __post_init__(self) -> None:
        self.lines = self.text.removesuffix("\n").split("\n")
        self._read()

    def indented(self) -> str:
        """The text in its one form."""
        count = len(self.lines)
        below = [-1] * count
        found = -1
        for number in reversed(range(count)):
            below[number] = found
            found = number if number in self.heads else found
        done: list[str] = []
        blocks: tuple[_Block, ...] = ()
        for number in range(count):
            done.append(self._line(number, below[number], blocks))
            blocks = self.stacks.get(number, blocks)
        return _joined(done, self.kept)

    def cleaned(self) -> str:
        """The text without blanks at the ends of lines, indented as it is."""
        kept = {number: self.lines[number] for number in self.kept}
        done = [kept.get(number, line.rstrip(" \t")) for number, line in enumerate(self.lines)]
        return _joined(done, kept)

    def _line(self, number: int, below: int, blocks: tuple[_Block, ...]) -> str:
        line = self.lines[number]
        if number in self.kept:
            return self.kept[number]
        if not line.strip():
            return ""
        old = _indent(line)
        for start, end in reversed(self.gaps.get(number, [])):
            line = f"{line[:start]} {line[end:]}"
        body = line.strip(" \t")
        if number in self.heads:
            new = self.heads[number]
        elif number in self.shifts:
            new = max(0, old + self.shifts[number])
        elif body.startswith("#"):
            new = self._comment(old, below, blocks)
        else:
            new = old
        return " " * new + body

    def _comment(self, old: int, below: int, blocks: tuple[_Block, ...]) -> int:
        """Where a line begins that is a comment: where what stood in its column does."""
        if below >= 0 and _indent(self.lines[below]) == old:
            return self.heads[below]
        for block in reversed(blocks):
            if block.old == old:
                return block.new
        if old == 0:
            return 0
        return self.heads[below] if below >= 0 else max((b.new for b in blocks), default=0)

    def _read(self) -> None:
        """Find out what every line is."""
        stack: list[_Block] = []
        flows: list[Piece] = []
        last: Piece | None = None
        first = -1
        for piece in scan(self.text):
            if piece.id in _UNPLACED:
                self._close(piece, stack)
                continue
            if not flows:
                self._open(piece, stack)
                is_first = piece.line != first and self._begins(piece)
                if is_first and piece.line not in self.heads:
                    self.heads[piece.line] = self._indent_of(piece, stack)
                if last is not None and last.line == piece.line:
                    self._gap(last, piece)
            first = max(first, piece.line)
            if piece.id == "<scalar>":
                self._scalar(piece, stack, is_inside=bool(flows))
                first = max(first, piece.end_line if piece.style not in {"|", ">"} else piece.line)
            if piece.id in _OPENS:
                flows.append(piece)
            elif piece.id in _CLOSES and flows:
                opened = flows.pop()
                if not flows:
                    self._shift(opened.line, opened.line + 1, piece.line)
                    first = max(first, piece.line)
            self.stacks[piece.line] = tuple(stack)
            last = piece

    def _begins(self, piece: Piece) -> bool:
        return not self.lines[piece.line][: piece.column].strip()

    def _open(self, piece: Piece, stack: list[_Block]) -> None:
        """Take note of blocks that begin or end with a piece."""
        top = stack[-1] if stack else None
        if piece.id in {"<block mapping start>", "<block sequence start>"}:
            is_list = piece.id == "<block sequence start>"
            new = top.new + STEP if top is not None else 0
            stack.append(_Block(is_list, piece.column, new))
        elif piece.id == "-" and top is not None and not top.is_list:
            stack.append(_Block(True, piece.column, top.new + STEP, is_loose=True))
        elif piece.id in {"?", ":"} and top is not None and top.is_loose:
            stack.pop()

    def _close(self, piece: Piece, stack: list[_Block]) -> None:
        if piece.id == "<block end>" and stack:
            if stack[-1].is_loose:
                stack.pop()
            stack.pop()

    def _indent_of(self, piece: Piece, stack: list[_Block]) -> int:
        """Where a line begins that begins with this piece."""
        if not stack:
            return 0
        top = stack[-1]
        if piece.id in {"<block mapping start>", "<block sequence start>", "?", "-", ":"}:
            return top.new
        return top.new + (0 if piece.column == top.old and not top.is_list else STEP)

    def _gap(self, last: Piece, piece: Piece) -> None:
        """Let one space stand behind a colon or a dash."""
        if last.id not in {"-", ":"} or piece.column <= last.end_column:
            return
        gaps = self.gaps.setdefault(piece.line, [])
        gap = (last.end_column, piece.column)
        if gap not in gaps:
            gaps.append(gap)

    def _scalar(self, piece: Piece, stack: list[_Block], *, is_inside: bool) -> None:
        if piece.style in {"|", ">"}:
            self._block_scalar(piece, stack)
        elif piece.end_line > piece.line:
            new = stack[-1].new + STEP if stack else 0
            for number in range(piece.line + 1, piece.end_line + 1):
                body = self.lines[number].strip(" \t")
                if is_inside:
                    self.kept[number] = self.lines[number]
                elif number == piece.end_line:
                    self.heads[number] = new
                else:
                    self.kept[number] = " " * new + body if body else ""

    def _block_scalar(self, piece: Piece, stack: list[_Block]) -> None:
        """A text behind `|` or `>`: its lines move together."""
        header = _HEADER.search(self.lines[piece.line], piece.column)
        parent = stack[-1] if stack else _Block(False, -STEP, -STEP)
        end = piece.line + 1
        lines = self.lines
        old = parent.old + int(header[1]) if header is not None and header[1] else 0
        while end < len(lines):
            line = lines[end]
            if line.strip(" "):
                old = old or _indent(line)
                if _indent(line) < old or old <= parent.old:
                    break
            end += 1
        new = parent.new + STEP
        while end > piece.line + 1 and not lines[end - 1].strip(" "):
            if piece.end_line >= end and "+" in lines[piece.line][piece.column :]:
                break  # `+` keeps the empty lines at the end
            end -= 1
        for number in range(piece.line + 1, end):
            line = lines[number]
            self.kept[number] = " " * new + line[old:] if len(line) > old else ""
        if header is not None and header[1] and header[1] != str(STEP):
            at = header.start(1)
            self.lines[piece.line] = f"{lines[piece.line][:at]}{STEP}{lines[piece.line][at + 1 :]}"

    def _shift(self, line: int, start: int, end: int) -> None:
        """Move the lines of a bracket as the line moves that it opens on."""
        moved = self.heads.get(line, _indent(self.lines[line])) - _indent(self.lines[line])
        for number in range(start, end + 1):
            self.kept.pop(number, None)
            self.shifts[number] = moved


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _joined(lines: list[str], kept: dict[int, str]) -> str:
    """The lines, of empty ones in a row but one, none at either end."""
    done: list[str] = []
    is_open = False
    for number, line in enumerate(lines):
        if line or number in kept:
            done.append(line)
            is_open = True
        elif is_open:
            done.append(line)
            is_open = False
    if done and not is_open:
        done.pop()
    return "\n".join(done) + "\n" if done else ""
