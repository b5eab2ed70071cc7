"""`devall fmt`: workflow files in one form."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devall.cli.failures import Reporter, diagnostics_text, error_text, to_line
from devall.cli.streams import write_answer, write_note
from devall.core.diagnostics import Diagnostic
from devall.core.errors import UsageError
from devall.core.messages import JsonValue
from devall.core.outcome import ErrorReport

STDIN = Path("-")
"""In place of a file: standard input is read, the formatted text goes to standard output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatOptions:
    """The options of `devall fmt`, as they were written."""

    files: Sequence[Path]
    check: bool = False
    diff: bool = False
    as_json: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Formatted:
    """What became of one file."""

    file: Path
    old: str = ""
    new: str = ""
    diagnostics: tuple[Diagnostic, ...] = ()
    """Why it is no YAML."""
    error: ErrorReport | None = None
    """Why it could not be read or written."""

    @property
    def is_changed(self) -> bool:
        """Whether the formatted text is another one."""
        return self.old != self.new

    @property
    def diff(self) -> str:
        """What changes, as a unified diff."""
        name = self.file.as_posix()
        old, new = (text.splitlines(keepends=True) for text in (self.old, self.new))
        lines = difflib.unified_diff(old, new, f"{name} (now)", f"{name} (formatted)")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )


def execute(options: FormatOptions) -> int:
    """Format each file; the exit code is the gravest of all."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: FormatOptions) -> int:
    if STDIN in options.files and len(options.files) > 1:
        raise UsageError("`-` is standard input, and goes with no other file")
    found = [_format(file, options) for file in options.files]
    code = max((_code(each, options) for each in found), default=0)
    if options.as_json:
        write_answer(to_line({"exit_code": code, "files": [_object(f, options) for f in found]}))
    else:
        for each in found:
            _tell(each, options)
    return code


def _code(found: Formatted, options: FormatOptions) -> int:
    if found.error is not None:
        return 2
    if found.diagnostics:
        return 3
    return int(options.check and found.is_changed)


def _format(file: Path, options: FormatOptions) -> Formatted:
    from devall.loading.document import parse_document, read_document
    from devall.loading.formatting import format_yaml
    from devall.loading.reports import finished
    from devall.loading.writing import replace_text

    try:
        if file == STDIN:
            raw = sys.stdin.buffer.read()
            document = parse_document(raw.decode("utf-8-sig", "surrogateescape"), "<stdin>")
        else:
            document = read_document(file, str(file))
            raw = file.read_bytes() if document.is_readable else b""
    except UsageError as error:
        return Formatted(file=file, error=ErrorReport(error.code, str(error), hint=error.hint))
    if not document.is_readable:
        return Formatted(file=file, diagnostics=tuple(finished(document.problems, [document], ())))
    old, new = raw.decode("utf-8"), format_yaml(document)
    if old != new and file != STDIN and not (options.check or options.diff):
        try:
            replace_text(file, new)
        except OSError as error:
            text = f"{file} cannot be written: {error.strerror or error}"
            return Formatted(file=file, error=ErrorReport("usage", text))
    return Formatted(file=file, old=old, new=new)


def _tell(found: Formatted, options: FormatOptions) -> None:
    if found.error is not None:
        write_note(error_text(found.error))
    elif found.diagnostics:
        write_note(diagnostics_text(found.diagnostics))
    elif options.diff:
        write_answer(found.diff)
    elif found.file == STDIN and not options.check:
        write_answer(found.new)
    elif found.is_changed:
        write_note(f"{found.file}: {'would change' if options.check else 'formatted'}")


def _object(found: Formatted, options: FormatOptions) -> dict[str, JsonValue]:
    from devall.loading.reports import as_json

    return {
        "file": str(found.file),
        "changed": found.is_changed,
        "diff": found.diff if options.diff else None,
        "text": found.new if found.file == STDIN and not options.check else None,
        "diagnostics": [as_json(each) for each in found.diagnostics],
        "error": found.error
        and {
            "code": found.error.code,
            "message": found.error.message,
            "hint": found.error.hint or None,
        },
    }
