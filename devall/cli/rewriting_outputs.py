"""What `--json` prints of files that are written anew."""

from __future__ import annotations

from typing_extensions import TypedDict

from devall.cli.outputs import DiagnosticOutput, ErrorOutput, closed


@closed
class FormattedOutput(TypedDict):
    """What became of one file."""

    file: str
    changed: bool
    """Whether it was not in the one form; with `--check` and `--diff` it still is not."""
    diff: str | None
    """With `--diff`: what changes, as a unified diff."""
    text: str | None
    """Of standard input: the formatted text."""
    diagnostics: list[DiagnosticOutput]
    """Why it is no YAML."""
    error: ErrorOutput | None
    """Why it could not be read or written."""


@closed
class FmtOutput(TypedDict):
    """Files that were formatted."""

    exit_code: int
    files: list[FormattedOutput]
