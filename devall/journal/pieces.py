"""Large pieces of a run's requests and values: in the journal's file, or in files of their own."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devall.core.messages import JsonValue
from devall.journal.payloads import LARGE
from devall.workspace import private_folder, write_private

FOLDER = "pieces"
"""Within the run's folder."""


@dataclass(slots=True)
class Pieces:
    """The pieces of one run."""

    run: int
    """Number of the run in the file."""
    folder: Path
    """The run's folder."""
    _kept: set[str] = field(default_factory=set[str])

    def write(self, database: sqlite3.Connection, new: Mapping[str, str], *, sync: bool) -> None:
        """Write those that are not kept yet, large ones to a file before the row says so.

        Raises:
            OSError, sqlite3.Error: they cannot be written.
        """
        for name, text in new.items():
            if name in self._kept:
                continue
            body: str | None = text
            if len(text) > LARGE:
                self._write_file(name, text.encode(), sync=sync)
                body = None
            database.execute(
                "INSERT OR IGNORE INTO pieces(run, hash, body) VALUES(?, ?, ?)",
                (self.run, name, body),
            )

    def note(self, names: Iterable[str]) -> None:
        """Remember that these are committed."""
        self._kept.update(names)

    def bodies(self, database: sqlite3.Connection) -> dict[str, str]:
        """The texts of all pieces that have no file of their own, by name."""
        rows = database.execute(
            "SELECT hash, body FROM pieces WHERE run = ? AND body IS NOT NULL", (self.run,)
        )
        return dict(rows.fetchall())

    def read(self, database: sqlite3.Connection, name: str) -> JsonValue:
        """The value of a piece.

        Raises:
            LookupError: there is none of that name.
            OSError: its file is gone.
            ValueError: its file is another.
        """
        row = database.execute(
            "SELECT body FROM pieces WHERE run = ? AND hash = ?", (self.run, name)
        ).fetchone()
        if row is None:
            raise LookupError(f"piece {name} of run {self.run} is missing")
        if row[0] is not None:
            return json.loads(row[0])
        return json.loads((self.folder / FOLDER / name).read_bytes())

    def _write_file(self, name: str, data: bytes, *, sync: bool) -> None:
        place = private_folder(self.folder / FOLDER) / name
        if not place.exists():
            write_private(place, data, sync=sync)
            if sync:
                _sync_folder(place.parent)
                _sync_folder(self.folder)


def _sync_folder(place: Path) -> None:
    """Have the names in a folder outlive a power cut."""
    handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
