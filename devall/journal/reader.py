"""Reads a journal's file beside whoever writes it."""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass, field
from json import loads
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from devall.core.errors import SetupError, UsageError
from devall.core.messages import JsonValue
from devall.journal.base import StepRecord
from devall.journal.payloads import unpack
from devall.journal.pieces import Pieces
from devall.journal.rows import RunRow, StepRow, digests_of, runs_of, steps_of
from devall.journal.schema import BUSY_SECONDS, VERSION, migrate

FILE_NAME = "devall.db"
"""Of the journal, in the folder of all runs."""


@dataclass(slots=True)
class Reader(AbstractContextManager["Reader"]):
    """The runs of a folder, to be read only: `with Reader(folder) as journal`."""

    folder: Path
    _database: sqlite3.Connection = field(init=False, repr=False)

    def __post_init__(self) -> None:
        file = self.folder / FILE_NAME
        if not file.is_file():
            raise UsageError(
                f"there is no journal {file}",
                hint="name the folder of the runs with --logs-dir, or set DEVALL_LOGS_DIR",
            )
        place = f"file:{quote(str(file))}?mode=ro"
        try:
            with ExitStack() as stack:
                self._database = stack.enter_context(
                    closing(
                        sqlite3.connect(place, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
                    )
                )
                if self._database.execute("PRAGMA user_version").fetchone()[0] != VERSION:
                    _bring_up_to_date(file)
                stack.pop_all()
        except sqlite3.Error as error:
            raise SetupError(
                f"the journal {file} cannot be read: {error}",
                hint="name another folder of runs with --logs-dir, or set DEVALL_LOGS_DIR",
            ) from error

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def runs(self) -> list[RunRow]:
        """All runs, the newest first."""
        return runs_of(self._database)

    def run(self, run_id: str) -> RunRow:
        """The run of that name; `last` is the newest, and a beginning will do that fits one only.

        Raises:
            UsageError: there is none, or several begin like that.
        """
        if found := runs_of(self._database, run_id):
            return found[0]
        known = self.runs()
        if run_id == "last" and known:
            return known[0]
        like = [each for each in known if run_id and each.id.startswith(run_id)]
        if len(like) == 1:
            return like[0]
        names = [each.id for each in like or known]
        near = difflib.get_close_matches(run_id, names, 3) or names[:3]
        many = f": {len(like)} runs begin like that" if like else ""
        raise UsageError(
            f"there is no run {run_id} in {self.folder}{many}",
            hint=f"there is {', '.join(near)}" if near else "nothing has run there yet",
        )

    def digests(self, run: RunRow) -> dict[str, str]:
        """The digest of each node, as the last process at the run had it."""
        return digests_of(self._database, run.run)

    def rows(self, run: RunRow) -> list[StepRow]:
        """The steps of a run in the order in which they were written, their values unread."""
        return steps_of(self._database, run.run)

    def steps(self, run: RunRow) -> Iterator[StepRecord]:
        """The steps of a run that count, whole, in the order in which they were last written."""
        newest = {row.key: row for row in self.rows(run)}
        read = self._pieces(run, Pieces(run.run, self.folder / run.id).bodies(self._database))
        for row in sorted(newest.values(), key=lambda each: each.seq):
            if row.state != "void":
                yield _record(row, read)

    def record(self, run: RunRow, row: StepRow) -> StepRecord:
        """A step with its request and value."""
        return _record(row, self._pieces(run, {}))

    def _pieces(self, run: RunRow, bodies: Mapping[str, str]) -> Callable[[str], JsonValue]:
        """Reads the pieces of a run, each of them once: requests share most of theirs.

        Args:
            run: The run.
            bodies: Texts of pieces, as far as they are read already.
        """
        pieces = Pieces(run.run, self.folder / run.id)
        known: dict[str, JsonValue] = {}

        def read(name: str) -> JsonValue:
            if name not in known:
                body = bodies.get(name)
                known[name] = pieces.read(self._database, name) if body is None else loads(body)
            return known[name]

        return read


def _record(row: StepRow, read: Callable[[str], JsonValue]) -> StepRecord:
    return StepRecord(
        row.key,
        row.kind,
        row.fingerprint,
        unpack(row.value, read) if row.state in {"done", "failed"} else None,
        row.state,
        unpack(row.request, read),
        row.seconds,
        row.at,
        row.epoch,
    )


def _bring_up_to_date(file: Path) -> None:
    """Migrate a file that an older devall wrote.

    Raises:
        SetupError: a newer one wrote it.
        sqlite3.Error: it cannot be written, or is no database.
    """
    with closing(sqlite3.connect(file, isolation_level=None, timeout=BUSY_SECONDS)) as database:
        migrate(database, str(file))
