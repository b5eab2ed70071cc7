"""Runs taken out of a journal's file, and the room they took given back."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from devall.core.errors import JournalError
from devall.journal.reader import FILE_NAME, Reader
from devall.journal.rows import runs_of

_AT_ONCE = 500
"""Pages that are given back in one go, between which others may write."""
_INCREMENTAL = 2


@dataclass(slots=True)
class Pruning:
    """Deletes runs of a folder's journal: `with Pruning(folder) as journal`."""

    folder: Path
    """The folder of all runs; its journal is there, and of this version."""
    _database: sqlite3.Connection = field(init=False, repr=False)

    def __enter__(self) -> Self:
        """Open the journal.

        Raises:
            UsageError, SetupError: there is none, or it is of another version.
        """
        with Reader(self.folder):
            pass
        self._database = sqlite3.connect(
            self.folder / FILE_NAME, isolation_level=None, timeout=_PATIENCE
        )
        self._database.execute("PRAGMA foreign_keys = ON")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._database.close()

    def delete(self, run_id: str) -> bool:
        """Delete a run and all its steps, unless it is alive; False: it is, or is not there.

        Raises:
            JournalError: it cannot be written.
        """
        with self._writing():
            found = runs_of(self._database, run_id)
            if not found or found[0].is_alive:
                return False
            self._database.execute("DELETE FROM runs WHERE run = ?", (found[0].run,))
            return True

    def give_back(self) -> bool:
        """Make the file smaller by what is free in it; False: it waits until no run is alive.

        To rewrite the whole file keeps others from writing, and their runs would fail: that is
        done only where none is alive. The file is then such that later on it need not be.

        Raises:
            JournalError: it cannot be written.
        """
        database = self._database
        with _reported(self.folder):
            if database.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL:
                free, left = -1, self._free_pages()
                while left and left != free:
                    database.execute(f"PRAGMA incremental_vacuum({_AT_ONCE})").fetchall()
                    free, left = left, self._free_pages()
            elif any(run.is_alive for run in runs_of(database)):
                return False
            else:
                database.execute(f"PRAGMA auto_vacuum = {_INCREMENTAL}")
                database.execute("VACUUM")
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return True

    def _free_pages(self) -> int:
        return int(self._database.execute("PRAGMA freelist_count").fetchone()[0])

    @contextlib.contextmanager
    def _writing(self) -> Generator[None]:
        """A transaction."""
        with _reported(self.folder):
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")


_PATIENCE = 10
"""Seconds that others' writing is waited for."""


@contextlib.contextmanager
def _reported(folder: Path) -> Generator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise JournalError(str(folder / FILE_NAME), str(error)) from error
