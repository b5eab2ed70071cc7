"""Standard output and error as the command line uses them: pure text, and quiet when closed."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from typing import TextIO

_CONTROL = re.compile(
    r"(?P<line_break>\r\n?)"
    r"|\x1b\[[0-?]*[ -/]*[@-~]"  # colours, movements
    r"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_COMMAND = re.compile(r"^[^\S\n]*(?=::)|##(?=\[)", re.MULTILINE)
"""What GitHub knows a command by: `::` at the start of a line, `##[` anywhere in it."""


def clean(text: str) -> str:
    """The text without control characters; line breaks and tabs stay.

    What a model or tool says must not move the cursor, colour or rename the terminal.
    """
    return _CONTROL.sub(_line_break_or_nothing, text)


def spelled(text: str, encoding: str | None) -> str:
    """The text with our own signs written in ASCII where the encoding does not have them."""
    try:
        _SIGNS_TEXT.encode(encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return text.translate(_SIGNS)
    return text


_SIGNS_TEXT = "→…·"
_SIGNS = str.maketrans({"→": "->", "…": "...", "·": "-"})


def one_line(text: str, longest: int = 0) -> str:
    """The text on one line, cut to so many characters (0 = whole), without control characters."""
    if longest:
        text = text[: longest * 4]
    joined = " ".join(clean(text).split())
    return joined if not longest or len(joined) <= longest else joined[: longest - 1] + "…"


def write_answer(text: str) -> bool:
    """Write to standard output; False if whoever should read it has gone.

    On a terminal control characters are left out; into a file or pipe it goes as it is.

    Raises:
        OSError: it cannot be written (a full disk).
    """
    shown = clean(text) if is_terminal(sys.stdout) else text
    return write_bytes(shown.encode("utf-8", "replace"))


def write_bytes(data: bytes) -> bool:
    """Write to standard output, as it is; False if whoever should read it has gone.

    Raises:
        OSError: it cannot be written (a full disk).
    """
    out = sys.stdout
    if _is_missing(out):
        return False
    try:
        out.flush()
        rest = memoryview(data)
        while rest:  # unbuffered (`python -u`) a write may take only a part
            rest = rest[out.buffer.write(rest) :]
        out.buffer.flush()
    except BrokenPipeError:
        discard(out)
        return False
    return True


def write_note(text: str) -> None:
    """Write a line to standard error; if that is gone nobody is told, and the run goes on.

    What a model, tool or server says must not be a command to GitHub Actions, which reads along.
    """
    write_command(_COMMAND.sub(r"\g<0>\\", clean(text)) if is_on_github(os.environ) else text)


def is_on_github(environment: Mapping[str, str]) -> bool:
    """Whether GitHub Actions reads what is printed."""
    return environment.get("GITHUB_ACTIONS") == "true"


def write_command(text: str) -> None:
    """Write lines to standard error that may be commands to GitHub Actions."""
    err = sys.stderr
    if _is_missing(err):
        return
    try:
        err.write(spelled(clean(text), err.encoding) + "\n")
        err.flush()
    except OSError:
        discard(err)


def is_terminal(stream: TextIO | None) -> bool:
    """Whether a person sees, or types into, the stream."""
    try:
        return stream is not None and not stream.closed and stream.isatty()
    except (OSError, ValueError):
        return False


def discard(stream: TextIO) -> None:
    """Let everything that is written from now on vanish, also what Python flushes at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)
    except (OSError, ValueError):
        pass


def _is_missing(stream: TextIO | None) -> bool:
    """Whether there is no such stream: a process may be started with 1 or 2 closed."""
    return stream is None or stream.closed


def _line_break_or_nothing(found: re.Match[str]) -> str:
    return "\n" if found["line_break"] else ""
