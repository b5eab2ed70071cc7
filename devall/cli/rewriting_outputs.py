"""What `--json` prints of files that are written anew."""

from __future__ import annotations

from typing import Literal

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


@closed
class ImportedOutput(TypedDict):
    """What becomes of one file of ChatDev."""

    file: str
    verdict: Literal["as it is", "changed", "left", "unreadable"]
    """`as it is` and `changed`: it runs; `left`: something is to be decided; no YAML."""
    changes: list[DiagnosticOutput]
    """What is changed in the copy, and why; lines are those of the file as it is."""
    left: list[DiagnosticOutput]
    """What a person has to decide."""
    notes: list[DiagnosticOutput]
    """What is read otherwise than by ChatDev and needs no change."""
    needs: list[str]
    """What has to be there when it runs, in words."""
    written: str | None
    """The copy."""


@closed
class ImportOutput(TypedDict):
    """Workflows of ChatDev."""

    exit_code: int
    files: list[ImportedOutput]
    others: list[str]
    """YAML files that are no workflows."""
