"""Text files: which encoding they are in, their lines, and edits of these."""

from __future__ import annotations

import codecs
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, BinaryIO, Literal

from pydantic import BaseModel, ConfigDict, Field

from devall.core.errors import ToolFailed

from ._search import is_chinese

HEAD = 1 << 20
"""Bytes that a guess of the encoding looks at."""
_CHUNK = 1 << 20
_LINE = re.compile(r"([^\r\n]*)(\r\n|\r|\n)|([^\r\n]+)")
_BOMS = (  # that of UTF-32 begins like that of UTF-16
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_NEWLINES = {"lf": "\n", "crlf": "\r\n", "cr": "\r"}

Newline = Literal["preserve", "lf", "crlf", "cr"]


@dataclass(frozen=True, slots=True)
class Encoding:
    """How a file writes its characters."""

    codec: str
    bom: bytes = b""
    """The mark that the file begins with, which belongs to no line."""

    @property
    def name(self) -> str:
        """For people: `utf-8`, `utf-16-le with BOM`."""
        return f"{self.codec} with BOM" if self.bom else self.codec

    def decode(self, data: bytes, path: str) -> str:
        """All of a file as text.

        Raises:
            ToolFailed: the bytes are no text in this encoding.
        """
        try:
            return data[len(self.bom) :].decode(self.codec)
        except UnicodeDecodeError as error:
            place = error.start + len(self.bom)
            raise ToolFailed(
                f"{path!r} is no text in {self.codec}: {error.reason} at byte {place}",
                hint="leave `encoding` at auto, or name the one it was written in",
            ) from error

    def encode(self, text: str) -> bytes:
        """The bytes of a whole file.

        Raises:
            ToolFailed: the encoding has no such character.
        """
        try:
            return self.bom + text.encode(self.codec)
        except UnicodeEncodeError as error:
            raise ToolFailed(
                f"{self.codec} cannot write {text[error.start]!r} (character {error.start})",
                hint="leave the character out, or write the file in utf-8",
            ) from error


def encoding_of(head: bytes, path: str, wanted: str = "auto") -> Encoding:
    """The encoding of a file that begins with `head`.

    `auto` knows byte order marks, UTF-8 and GB 18030, and else takes Windows-1252 or Latin-1,
    in which every file is a text.

    Raises:
        ToolFailed: there is no such encoding, or the file is no text.
    """
    marked = next(((bom, codec) for bom, codec in _BOMS if head.startswith(bom)), None)
    if wanted.lower() != "auto":
        codec = codec_named(wanted)
        if marked is not None and marked[1].startswith(codec.removesuffix("-sig")):
            return Encoding(marked[1], marked[0])
        return Encoding("utf-8" if codec == "utf-8-sig" else codec)
    if marked is not None:
        return Encoding(marked[1], marked[0])
    if b"\0" in head:
        raise ToolFailed(
            f"{path!r} is a binary file and no text",
            hint="show an image or a PDF with load_file; read anything else by code",
        )
    with suppress(UnicodeDecodeError):
        codecs.getincrementaldecoder("utf-8")().decode(head, final=len(head) < HEAD)
        return Encoding("utf-8")
    if is_chinese(head):
        return Encoding("gb18030")
    undefined = set(b"\x81\x8d\x8f\x90\x9d")
    return Encoding("latin-1" if undefined & set(head) else "cp1252")


def codec_named(name: str) -> str:
    """Python's name of a text encoding.

    Raises:
        ToolFailed: there is none of that name.
    """
    try:
        codec = codecs.lookup(name)
        "".encode(codec.name)  # `hex` and its like are no text encodings
    except (LookupError, ValueError) as error:
        raise ToolFailed(
            f"there is no text encoding {name!r}",
            hint="names are utf-8, utf-16, gb18030, latin-1, cp1252, shift_jis and so on",
        ) from error
    return codec.name


def characters(file: BinaryIO, encoding: Encoding) -> Iterator[str]:
    """The text of a file of any size, piece by piece; what cannot be read becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding.codec)("replace")
    file.seek(len(encoding.bom))
    while data := file.read(_CHUNK):
        yield decoder.decode(data)
    yield decoder.decode(b"", final=True)


def split_lines(text: str) -> list[tuple[str, str]]:
    """The lines of a text as editors count them, each with its own line end (the last: maybe '').

    `str.splitlines` would count form feeds and other characters as well.
    """
    return [(m[1], m[2]) if m[2] else (m[3], "") for m in _LINE.finditer(text)]


def newline_of(lines: Sequence[tuple[str, str]]) -> str:
    """The line end that most lines have."""
    ends = Counter(end for _, end in lines if end)
    return ends.most_common(1)[0][0] if ends else "\n"


def newline_name(lines: Sequence[tuple[str, str]]) -> str:
    """lf, crlf, cr, mixed or none."""
    ends = {end for _, end in lines if end}
    names = {end: name for name, end in _NEWLINES.items()}
    return "mixed" if len(ends) > 1 else names[ends.pop()] if ends else "none"


class TextEdit(BaseModel):
    """One range of lines and what is to stand there."""

    model_config = ConfigDict(extra="forbid")

    start_line: Annotated[int, Field(ge=1, description="First line to replace, from 1.")]
    end_line: Annotated[
        int | None,
        Field(
            description="Last line to replace, default start_line; start_line - 1 inserts before"
            " start_line and replaces nothing."
        ),
    ] = None
    replacement: Annotated[
        str, Field(description="What is to stand there; empty deletes the lines.")
    ] = ""
    expected: Annotated[
        str | None,
        Field(description="What these lines hold now; if they do not, nothing is changed."),
    ] = None

    @property
    def last(self) -> int:
        """Number of the last line that is replaced."""
        return self.start_line if self.end_line is None else self.end_line

    @property
    def where(self) -> str:
        """For people: `line 3`, `lines 3-5`, `before line 3`."""
        if self.last < self.start_line:
            return f"before line {self.start_line}"
        if self.last == self.start_line:
            return f"line {self.start_line}"
        return f"lines {self.start_line}-{self.last}"


def edited(
    text: str, edits: Sequence[TextEdit], newline: Newline, trailing: bool | None
) -> tuple[str, list[tuple[str, str]]]:
    """The text with all edits, and its lines; untouched lines keep their line ends.

    Args:
        text: What the edits' line numbers count in.
        edits: In any order; those that insert at one place keep theirs.
        newline: The line end of every line; `preserve` gives new lines the commonest one.
        trailing: Whether the last line ends with one; None = as before.

    Raises:
        ToolFailed: edits overlap, lie beyond the end, or do not find what they expect; the
            text names all of them.
    """
    lines = split_lines(text)
    ordered = sorted(edits, key=lambda edit: (edit.start_line, edit.last))
    _check(lines, ordered)
    style = newline_of(lines) if newline == "preserve" else _NEWLINES[newline]
    if trailing is None:
        trailing = bool(lines and lines[-1][1])
        if not lines:  # there is no style to keep
            trailing = any(edit.replacement.endswith(("\n", "\r")) for edit in ordered)
    for edit in reversed(ordered):
        new = [(body, style) for body, _ in split_lines(edit.replacement)]
        lines[edit.start_line - 1 : edit.last] = new
    if newline == "preserve":
        lines = [(body, end or style) for body, end in lines]
    else:
        lines = [(body, style) for body, _ in lines]
    if lines and not trailing:
        lines[-1] = (lines[-1][0], "")
    return "".join(body + end for body, end in lines), lines


def _check(lines: Sequence[tuple[str, str]], ordered: Sequence[TextEdit]) -> None:
    conflicts: list[str] = []
    count = len(lines)
    done = 0
    previous = ""
    for edit in ordered:
        if edit.last < edit.start_line - 1:
            conflicts.append(f"end_line {edit.last} lies before start_line {edit.start_line}")
        # A line right behind the last one replaces nothing: it is added.
        elif edit.last > count and (edit.start_line, edit.last) != (count + 1, count + 1):
            conflicts.append(
                f"{edit.where}: the file has {count} lines (start_line {count + 1} adds at the end)"
            )
        elif edit.start_line <= done:
            conflicts.append(f"{edit.where} overlaps {previous}")
        elif edit.expected is not None:
            there = [body for body, _ in lines[edit.start_line - 1 : edit.last]]
            if there != [body for body, _ in split_lines(edit.expected)]:
                now = "\n".join(there)
                shown = now if len(now) <= 1000 else now[:1000] + "..."
                conflicts.append(f"{edit.where}: not what was expected; now there: {shown!r}")
        if edit.last >= max(done, edit.start_line):
            done, previous = edit.last, edit.where
    if conflicts:
        raise ToolFailed(
            "nothing was changed: " + "; ".join(conflicts),
            hint="read the lines again with read_file_segment; all line numbers of one call count"
            " in the file as it is before the call",
        )
