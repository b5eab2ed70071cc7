"""A file's text to plain values, with the place of every key and value."""

# Ruamel's scanner says nothing about the types of what it holds.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportIncompatibleMethodOverride=false, reportIncompatibleVariableOverride=false
# pyright: reportMissingParameterType=false

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.scanner import Scanner, SimpleKey
from ruamel.yaml.tokens import BlockMappingStartToken, KeyToken, ScalarToken, ValueToken

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import UsageError
from devall.core.messages import JsonValue
from devall.loading.places import Place
from devall.loading.tree import Refusal, Tree
from devall.loading.wording import explain_syntax

MAX_BYTES = 8 * 1024 * 1024
"""Largest file that is read: some 30,000 nodes."""

_NO_TEXT = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff\ufffe\uffff]")


@dataclass(frozen=True, slots=True)
class Document:
    """A file's values and where they stand."""

    name: str
    """The file as messages name it."""
    text: str = field(repr=False)
    root: JsonValue = field(default=None, repr=False)
    """What the file says; None where it cannot be read."""
    place: Place = field(default_factory=lambda: Place(1, 1), repr=False)
    problems: tuple[Diagnostic, ...] = ()
    """What is wrong with the file as YAML."""
    is_readable: bool = True
    """Whether `root` is what the file says, duplicate keys aside."""
    _lines: list[str] = field(default_factory=list[str], repr=False)

    def line(self, number: int) -> str:
        """A line of the text, as it stands; empty where there is none."""
        if not self._lines and self.text:
            self._lines.extend(self.text.split("\n"))
        return self._lines[number - 1] if 0 < number <= len(self._lines) else ""


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of YAML as its scanner sees it; lines and columns count from 0."""

    id: str
    """What it is: `-`, `:`, `?` (a key, written so or not), `<scalar>`, `<block end>`, ..."""
    line: int
    column: int
    end_line: int
    end_column: int
    style: str
    """Of a scalar: its quote, `|`, `>`, or nothing."""


def read_document(path: Path, name: str) -> Document:
    """The document in a file.

    Raises:
        UsageError: there is no such file, or it cannot be opened.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_BYTES + 1)
            size = path.stat().st_size
    except IsADirectoryError as error:
        raise UsageError(f"{name} is a directory", hint="name a workflow file") from error
    except FileNotFoundError as error:
        raise UsageError(f"there is no file {name}") from error
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{name} cannot be read: {reason}") from error
    is_utf16 = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    if is_utf16:
        return _refused(name, "not-text", "the text is UTF-16, not UTF-8", "save it as UTF-8")
    if b"\0" in data[:8192]:
        return _refused(name, "not-text", "a binary file, no YAML text", "name a workflow file")
    if len(data) > MAX_BYTES:
        return _refused(
            name,
            "too-large",
            f"the file has {max(size, len(data)):,} bytes; a workflow has at most {MAX_BYTES:,}",
            "put large texts into files of their own",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return _undecodable(name, data, error)
    return parse_document(text, name)


def parse_document(text: str, name: str) -> Document:
    """The document in a text; line breaks of all systems are fine."""
    text = text.removeprefix("\ufeff")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if bad := _NO_TEXT.search(text):
        line = text.count("\n", 0, bad.start()) + 1
        column = bad.start() - text.rfind("\n", 0, bad.start())
        message = f"the character U+{ord(bad[0]):04X} cannot stand in YAML"
        found = Diagnostic(
            "not-text", message, Position(name, line, column), 'write it as "\\u...", or not at all'
        )
        return Document(name, text, problems=(found,), is_readable=False)
    tree = Tree(_Scanner(text), name)
    try:
        root, place = tree.build()
    except Refusal as refusal:
        found = refusal.diagnostic
    except MarkedYAMLError as error:
        context, problem = str(error.context or ""), str(error.problem or "")
        marks: Any = error
        found = explain_syntax(
            name, problem, context, _spot(marks.problem_mark), _spot(marks.context_mark)
        )
    else:
        return Document(name, text, root, place, tuple(tree.problems))
    document = Document(name, text, problems=(*tree.problems, found), is_readable=False)
    return replace(document, problems=(*tree.problems, _seen(found, document)))


def _seen(found: Diagnostic, document: Document) -> Diagnostic:
    """The finding, or a better one where the text before its place tells more."""
    at = found.position
    line = document.line(at.line)
    before = line[: at.column - 1]
    if found.code != "syntax":
        return found
    if before.endswith("$") and line[at.column - 1 :].startswith("{"):
        message = "a variable between brackets must be quoted: YAML takes its brace for its own"
        return replace(
            found,
            message=message,
            hint='write "${NAME}"',
            position=Position(at.file, at.line, at.column - 1),
        )
    if before.rstrip().endswith(("'", '"')) and "opens here" not in found.message:
        hint = "within single quotes a quote is written twice: 'it''s'; a text may also do without"
        return replace(found, message="text goes on behind the quote that ends it", hint=hint)
    return found


def scan(text: str) -> Iterator[Piece]:
    """The pieces of a text that `parse_document` has read: its line breaks are those of Unix."""
    tokens = _Scanner(text)
    while True:
        token = tokens.get_token()
        start, end = token.start_mark, token.end_mark
        style = getattr(token, "style", None) or ""
        yield Piece(token.id, start.line, start.column, end.line, end.column, style)
        if token.id == "<stream end>":
            return


def parse_value(text: str) -> JsonValue:
    """The value of a short YAML text, such as a variable's.

    Raises:
        ValueError: the text is no YAML; the message says why.
    """
    found = parse_document(text, "")
    if found.problems:
        raise ValueError(found.problems[0].message)
    return found.root


def _refused(name: str, code: str, message: str, hint: str) -> Document:
    found = Diagnostic(code, message, Position(name), hint)
    return Document(name, "", problems=(found,), is_readable=False)


def _undecodable(name: str, data: bytes, error: UnicodeDecodeError) -> Document:
    before = data[: error.start]
    line = before.count(b"\n") + 1
    column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
    found = Diagnostic(
        "not-text",
        f"the byte 0x{data[error.start]:02x} is no UTF-8",
        Position(name, line, column),
        "save the file as UTF-8",
    )
    text = data.decode("utf-8", "replace")
    return Document(name, text, problems=(found,), is_readable=False)


def _spot(mark: Any) -> tuple[int, int] | None:
    return (mark.line + 1, mark.column + 1) if mark is not None else None


class _Mark:
    """A place in the text, as the scanner counts: from 0."""

    __slots__ = ("column", "index", "line")

    def __init__(self, index: int, line: int, column: int) -> None:
        self.index = index
        self.line = line
        self.column = column


class _Source:
    """A text in memory, in the form in which ruamel's scanner reads."""

    encoding = None

    def __init__(self, text: str) -> None:
        self.buffer = text + "\0" * 16  # the scanner looks a few characters ahead
        self.index = 0
        self.line = 0
        self.column = 0

    def peek(self, ahead: int = 0) -> str:
        return self.buffer[self.index + ahead]

    def prefix(self, length: int = 1) -> str:
        return self.buffer[self.index : self.index + length]

    def forward(self, length: int = 1) -> None:
        self.move_to(self.index + length)

    def move_to(self, end: int) -> None:
        breaks = self.buffer.count("\n", self.index, end)
        if breaks:
            self.line += breaks
            self.column = end - self.buffer.rfind("\n", self.index, end) - 1
        else:
            self.column += end - self.index
        self.index = end

    def get_mark(self) -> _Mark:
        return _Mark(self.index, self.line, self.column)


_BLANK = re.compile(r"(?: *(?:#[^\n\0]*)?\n)* *(?:#[^\n\0]*)?")
_FLOW_BLANK = re.compile(r"(?:[ \t]*(?:#[^\n\0]*)?\n)*[ \t]*(?:#[^\n\0]*)?")
_END = r" \t\n\0\x85\u2028\u2029"
_WORD = rf"(?:[^:{_END}]|:(?![{_END}]))+"
_FLOW_WORD = rf"(?:[^:,\[\]{{}}{_END}]|:(?![{_END}]))+"
_PLAIN = re.compile(rf"{_WORD}(?: +(?!#){_WORD})*")
_FLOW_PLAIN = re.compile(rf"{_FLOW_WORD}(?: +(?!#){_FLOW_WORD})*")
_BREAKS = re.compile(r"\n(?: *\n)*( *)")
_QUOTED = {
    '"': re.compile(r'"([^"\\\n\0\x85\u2028\u2029]*)"'),
    "'": re.compile(r"'([^'\n\0\x85\u2028\u2029]*)'(?!')"),
}


class _Scanner(Scanner):
    """Ruamel's scanner of YAML 1.2 with its inner loops done by regular expressions.

    Its tokens and its errors are the same.
    """

    scanner_processing_version: Any = (1, 2)
    reader: Any = None

    def __init__(self, text: str) -> None:
        self.reader = _Source(text)
        super().__init__()
        # A %YAML directive is noted down here; it changes nothing.
        self.loader = SimpleNamespace(doc_infos=[SimpleNamespace()])

    def peek_token(self) -> Any:
        tokens = self.tokens
        while not tokens or (self.possible_simple_keys and self.need_more_tokens()):
            self.fetch_more_tokens()
        return tokens[0]

    def get_token(self) -> Any:
        self.peek_token()
        self.tokens_taken += 1
        return self.tokens.pop(0)

    def stale_possible_simple_keys(self) -> None:
        reader = self.reader
        for key in self.possible_simple_keys.values():
            if key.line != reader.line or reader.index - key.index > 1024:
                super().stale_possible_simple_keys()
                return

    def save_possible_simple_key(self) -> None:
        if not self.allow_simple_key:
            return
        reader = self.reader
        level = len(self.flow_context)
        if level in self.possible_simple_keys:
            self.remove_possible_simple_key()
        self.possible_simple_keys[level] = SimpleKey(
            self.tokens_taken + len(self.tokens),
            not level and self.indent == reader.column,
            reader.index,
            reader.line,
            reader.column,
            reader.get_mark(),
        )

    def fetch_more_tokens(self) -> Any:
        reader = self.reader
        self.scan_to_next_token()
        char = reader.buffer[reader.index]
        is_colon = char == ":" and reader.buffer[reader.index + 1] in " \n"
        if not is_colon and not char.isalpha():
            return super().fetch_more_tokens()
        if self.possible_simple_keys:
            self.stale_possible_simple_keys()
        self.unwind_indent(reader.column)
        # A letter begins a scalar without quotes, whatever comes.
        return self.fetch_value() if is_colon else self.fetch_plain()

    def fetch_value(self) -> None:
        level = len(self.flow_context)
        key = self.possible_simple_keys.pop(level, None)
        if key is None:
            super().fetch_value()
            return
        at = key.token_number - self.tokens_taken
        self.tokens.insert(at, KeyToken(key.mark, key.mark))
        if not level and self.add_indent(key.column):
            self.tokens.insert(at, BlockMappingStartToken(key.mark, key.mark))
        self.allow_simple_key = False
        reader = self.reader
        start = reader.get_mark()
        reader.column += 1
        reader.index += 1
        self.tokens.append(ValueToken(start, reader.get_mark()))

    def scan_to_next_token(self) -> Any:
        reader = self.reader
        in_flow = bool(self.flow_context)
        found = (_FLOW_BLANK if in_flow else _BLANK).match(reader.buffer, reader.index)
        assert found is not None  # it matches nothing at all as well
        if found.end() != reader.index:
            line = reader.line
            reader.move_to(found.end())
            if not in_flow and reader.line != line:
                self.allow_simple_key = True

    def scan_plain(self) -> Any:
        reader = self.reader
        in_flow = bool(self.flow_context)
        pattern = _FLOW_PLAIN if in_flow else _PLAIN
        start = end = reader.get_mark()
        indent = self.indent + 1
        chunks: list[str] = []
        spaces: list[str] = []
        while found := pattern.match(reader.buffer, reader.index):
            self.allow_simple_key = False
            chunks.extend(spaces)
            chunks.append(found[0])
            reader.column += found.end() - reader.index
            reader.index = found.end()
            end = reader.get_mark()
            if self._ends_here(0 if in_flow else indent):
                break
            spaces = self.scan_plain_spaces(indent, start) or []
            if (
                not spaces
                or reader.buffer[reader.index] == "#"
                or (not in_flow and reader.column < indent)
            ):
                break
        return ScalarToken("".join(chunks), True, start, end)

    def _ends_here(self, indent: int) -> bool:
        """Whether a scalar without quotes ends here for sure; moves to what follows it."""
        reader = self.reader
        char = reader.buffer[reader.index]
        if char == ":":
            return True
        if char == "\n" and indent:
            found = _BREAKS.match(reader.buffer, reader.index)
            assert found is not None  # it begins with a break
            if found.end() - found.start(1) < indent:
                self.allow_simple_key = True
                reader.move_to(found.end())
                return True
        return False

    def scan_flow_scalar(self, style: Any) -> Any:
        reader = self.reader
        found = _QUOTED[style].match(reader.buffer, reader.index)
        if found is None:
            return super().scan_flow_scalar(style)
        start = reader.get_mark()
        reader.column += found.end() - reader.index
        reader.index = found.end()
        return ScalarToken(found[1], False, start, reader.get_mark(), style)
