"""Old runs deleted: their rows, and their folders."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from devall.core.errors import UsageError
from devall.core.ids import is_run_id
from devall.history.past import Past
from devall.journal.pruning import Pruning
from devall.journal.reader import FILE_NAME
from devall.telemetry.run_log import FILE_NAME as EVENTS

DAY = 86400.0
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY, "w": 7 * DAY}


@dataclass(frozen=True, slots=True)
class Choice:
    """Which runs are deleted; those that are alive never are."""

    older_than: float | None = None
    """Seconds since they ended, or were last at work."""
    keep: int = 0
    """How many of the newest stay in any case."""
    status: str | None = None
    """Only those that ended so."""

    def of(self, runs: Sequence[Past], now: float | None = None) -> list[Past]:
        """Those of the runs that are to go, the oldest first.

        Args:
            runs: All runs, the newest first.
            now: The time; None = now.
        """
        at = time.time() if now is None else now
        return [
            past
            for past in reversed(runs[self.keep :])
            if not _may_be_alive(past, at)
            and (self.status is None or past.state == self.status)
            and (self.older_than is None or at - last_active(past) >= self.older_than)
        ]


@dataclass(frozen=True, slots=True)
class Pruned:
    """A run that was to be deleted."""

    past: Past
    size: int
    """Bytes of its folder."""
    problem: str = ""
    """Why it, or its folder, is still there."""


def parse_age(text: str) -> float:
    """The seconds of `30d`, `12h`, `2w`.

    Raises:
        UsageError: it is no such length of time.
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", text)
    if found is None:
        raise UsageError(
            f"--older-than {text!r} is no length of time", hint="write 30d, 12h, 2w or 90m"
        )
    return float(found[1]) * _UNITS[found[2]]


def last_active(past: Past) -> float:
    """When something of the run was last at work, as far as that is known."""
    row = past.row
    if row is not None and row.ended is not None:
        return row.ended
    return max(past.began, row.lease if row is not None else 0, _touched(past))


def prune(logs: Path, runs: Sequence[Past]) -> Iterator[Pruned]:
    """Delete runs one after the other, each row before its folder.

    Raises:
        JournalError: the journal cannot be written.
    """
    if any(past.is_kept for past in runs):
        with Pruning(logs) as journal:
            for past in runs:
                size = size_of(past.folder)
                if past.is_kept and not journal.delete(past.id):
                    yield Pruned(past, size, "it is alive")
                else:
                    yield Pruned(past, size, _delete_folder(past))
    else:
        for past in runs:
            yield Pruned(past, size_of(past.folder), _delete_folder(past))


def give_back(logs: Path) -> tuple[int, bool]:
    """Give the journal's free room back: bytes that it is smaller by, and whether that was done.

    Raises:
        JournalError: the journal cannot be written.
    """
    before = journal_size(logs)
    if not before:
        return 0, True
    with Pruning(logs) as journal:
        is_done = journal.give_back()
    return max(0, before - journal_size(logs)), is_done


def journal_size(logs: Path) -> int:
    """Bytes of the journal's files."""
    files = [logs / f"{FILE_NAME}{end}" for end in ("", "-wal")]
    return sum(file.stat().st_size for file in files if file.is_file())


def size_of(folder: Path) -> int:
    """Bytes of a folder's files; links are not followed."""
    total = 0
    for root, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):  # gone meanwhile
                total += (Path(root) / name).lstat().st_size
    return total


def _delete_folder(past: Past) -> str:
    """Delete a run's folder and nothing else; why it could not be, where it could not."""
    folder = past.folder
    if not is_run_id(past.id) or folder.is_symlink():
        return f"{folder} is no folder of a run, and was left"
    if not folder.exists():
        return ""
    if not folder.is_dir():
        return f"{folder} is no folder, and was left"
    try:
        shutil.rmtree(folder)  # does not follow links
    except OSError as error:
        return f"{folder}: {error.strerror or error}"
    return ""


def _may_be_alive(past: Past, now: float) -> bool:
    """Whether a process may be at work on the run.

    One in no journal that has not ended may be: nobody says who writes it. So it counts as
    dead only when nothing was written for a day.
    """
    if past.row is not None:
        return past.row.is_alive
    return past.last is None and now - _touched(past) < DAY


def _touched(past: Past) -> float:
    """When its events were last written."""
    try:
        return (past.folder / EVENTS).stat().st_mtime
    except OSError:
        return 0.0
