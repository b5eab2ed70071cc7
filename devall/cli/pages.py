"""A page of text about the past: tables, texts that are cut on a terminal, no secrets."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.streams import is_terminal, write_answer
from devall.cli.words import count
from devall.core.errors import DevallError, UsageError
from devall.telemetry.redaction import SHORTEST_IN_ANSWERS, Redactor, environment_secrets

if TYPE_CHECKING:
    from devall.history.past import Past
    from devall.history.story import Story
    from devall.loading.loader import LoadedWorkflow

MOST_LINES = 30
"""Lines of a text on a terminal."""
LONGEST_LINE = 1000
"""Characters of one of them."""


def redactor_of_today(also: Iterable[str] = ()) -> Redactor:
    """What takes out keys of the environment as it is now; those of then are out already.

    Args:
        also: Further secrets: those of a workflow that was read now.
    """
    secrets = environment_secrets(os.environ).union(also)
    return Redactor(secrets).at_least(SHORTEST_IN_ANSWERS)


@dataclass(slots=True)
class Page:
    """Lines that are printed together, on standard output."""

    full: bool = False
    """Whether long texts are shown whole on a terminal too."""
    redactor: Redactor = field(default_factory=redactor_of_today)
    lines: list[str] = field(default_factory=list[str])

    def add(self, *lines: str) -> None:
        """Add lines."""
        self.lines += lines

    def text(self, text: str, indent: str = "    ") -> None:
        """Add a text; on a terminal its beginning, and a note of how much more there is."""
        lines = text.splitlines() or ["(empty)"]
        if not self.full and is_terminal(sys.stdout):
            lines = _cut(lines)
        self.lines += [f"{indent}{line}" for line in lines]

    def write(self) -> bool:
        """Print it; False if whoever should read it has gone."""
        return write_answer(self.redactor.text("\n".join(self.lines)) + "\n")


def past_of(logs_dir: Path | None, run: str) -> Past:
    """The run that a command names.

    Raises:
        UsageError: there is none, or several begin like that.
    """
    from devall.cli.inputs import logs_folder
    from devall.history.past import find_past

    return find_past(logs_folder(logs_dir), run)


def workflow_of(past: Past, story: Story) -> tuple[LoadedWorkflow, str]:
    """The workflow that the run followed, and what is doubtful about it.

    Raises:
        UsageError: it cannot be read.
    """
    note = ""
    was_edited = story.resumed is not None and bool(story.resumed.changed)
    if not past.is_kept:
        note = f"run {past.id} is in no journal: its conditions are told by the file as it is today"
    elif was_edited:
        note = "the run was resumed with nodes changed: conditions are those of the file today"
    try:
        return (past.workflow_now() if was_edited else past.workflow_then()), note
    except DevallError as error:
        raise UsageError(
            f"the workflow of run {past.id} cannot be read: {error}",
            hint=f"what has fired is told by: devall runs tail {past.id}",
        ) from error


def columns(rows: Sequence[Sequence[str]], right: Collection[int] = ()) -> list[str]:
    """Rows as a table; the first is the head, and columns in `right` are flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if at in right else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def moment(at: float) -> str:
    """A time as clocks here show it: `2026-11-30 17:20:05`."""
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def size(number: int) -> str:
    """Bytes as people say them: `812 B`, `1.4 MB`."""
    amount = float(number)
    for unit in ("B", "kB", "MB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} GB"


def _cut(lines: Sequence[str]) -> list[str]:
    shown = [
        line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}… (--full shows all)"
        for line in lines[:MOST_LINES]
    ]
    if len(lines) > MOST_LINES:
        more = count(len(lines) - MOST_LINES, "more line")
        shown.append(f"… {more} (--full shows all)")
    return shown
