"""The journal that ships: one SQLite file for all runs of a folder, shared by processes.

The file is in WAL mode, with one writer thread per process and group commit. With
`synchronous = NORMAL` a kill of the process loses nothing; with FULL a power cut does not
either. Each process that takes a run up raises the run's epoch, and a write with an older
epoch is refused, so that two processes never both write a run.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, cast

from devall.core.errors import RunError, RunTakenOver, UsageError
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.core.ports import StepKind
from devall.journal.base import Step, StepRecord
from devall.journal.owner import LEASE, this_process
from devall.journal.payloads import pack, unpack
from devall.journal.pieces import Pieces
from devall.journal.reader import FILE_NAME
from devall.journal.rows import (
    StepRow,
    begin_epoch,
    cuts_of,
    digests_of,
    runs_of,
    steps_of,
)
from devall.journal.schema import BUSY_SECONDS
from devall.journal.writer import Writer
from devall.workspace import private_folder

Durability = Literal["normal", "full"]
Redact = Callable[[JsonValue], JsonValue]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """What is kept of a run when it begins."""

    id: str
    workflow: str
    """Path of the file."""
    task: JsonValue
    """The first message."""
    settings: Mapping[str, JsonValue]
    """What it was started with."""
    sources: Mapping[str, str]
    """Texts of the files it was loaded from, by path."""
    nodes: Mapping[str, str]
    """A digest of each node, by name."""


@dataclass(slots=True, eq=False)
class SqliteStore:
    """All runs of one folder."""

    file: Path
    busy_seconds: float = BUSY_SECONDS
    """How long another process's commit is waited for."""
    _writer: Writer = field(init=False)
    _held: dict[int, int] = field(default_factory=dict[int, int])
    """Epochs by run, of the runs that this process writes."""

    def __post_init__(self) -> None:
        self._writer = Writer(self.file, self._renew, self.busy_seconds)

    @property
    def folder(self) -> Path:
        """The folder of all runs."""
        return self.file.parent

    def open(self) -> None:
        """Open or make the file.

        Raises:
            SetupError: it cannot be opened, or is no journal of this version.
        """
        self._writer.open()

    async def aclose(self) -> None:
        """Write what waits, and close the file."""
        await self._writer.aclose()

    async def begin(
        self, new: NewRun, redact: Redact, durability: Durability = "normal"
    ) -> SqliteJournal:
        """The journal of a new run.

        Raises:
            UsageError: there is a run of that name.
            JournalError: it cannot be kept.
        """

        def job(database: sqlite3.Connection) -> int:
            taken = database.execute("SELECT 1 FROM runs WHERE id = ?", (new.id,)).fetchone()
            if taken:
                raise UsageError(
                    f"there is a run {new.id} in {self.file} already", hint="choose another run id"
                )
            now = time.time()
            cursor = database.execute(
                "INSERT INTO runs(id, epoch, status, workflow, task, began, owner, lease, settings,"
                " sources) VALUES(?, 1, 'running', ?, ?, ?, ?, ?, ?, ?)",
                (
                    new.id,
                    new.workflow,
                    json.dumps(redact(new.task)),
                    now,
                    this_process().to_text(),
                    now + LEASE,
                    json.dumps(redact(dict(new.settings))),
                    json.dumps(redact(dict(new.sources))),
                ),
            )
            run = cast("int", cursor.lastrowid)
            begin_epoch(database, run, 1, new.nodes, {})
            return run

        run = await self._writer.do(job, is_full=durability == "full")
        self._held[run] = 1
        return SqliteJournal(self, new.id, run, 1, redact, durability)

    async def take_over(
        self,
        run_id: str,
        *,
        nodes: Mapping[str, str],
        again: Iterable[str] = (),
        settings: Mapping[str, JsonValue] | None = None,
        sources: Mapping[str, str] | None = None,
        redact: Redact,
        durability: Durability = "normal",
    ) -> SqliteJournal:
        """The journal of a run that no living process writes, from now on this one's.

        Args:
            run_id: The run.
            nodes: A digest of each node, by name.
            again: Nodes whose steps up to now no longer count, beside those whose digest is
                another than before.
            settings: What the run is gone on with; None = as before.
            sources: Texts of the files as they are now; None = as before.
            redact: Takes secrets out of what is written.
            durability: As for `begin`.

        Raises:
            UsageError: there is no such run, or it is alive.
            JournalError: it cannot be kept.
        """

        def job(database: sqlite3.Connection) -> SqliteJournal:
            found = runs_of(database, run_id)
            if not found:
                raise UsageError(f"there is no run {run_id} in {self.file}")
            known = found[0]
            known.must_rest()
            run, epoch = known.run, known.epoch + 1
            now = time.time()
            database.execute(
                "UPDATE runs SET epoch = ?, status = 'running', owner = ?, lease = ?, ended = NULL"
                " WHERE run = ?",
                (epoch, this_process().to_text(), now + LEASE, run),
            )
            for column, value in (("settings", settings), ("sources", sources)):
                if value is not None:
                    database.execute(
                        f"UPDATE runs SET {column} = ? WHERE run = ?",  # noqa: S608 - ours
                        (json.dumps(redact(dict(value))), run),
                    )
            before = digests_of(database, run)
            changed = [name for name, digest in nodes.items() if before.get(name) != digest]
            cuts = cuts_of(database, run) | dict.fromkeys((*changed, *again), epoch)
            begin_epoch(database, run, epoch, nodes, cuts)
            return SqliteJournal(
                self, run_id, run, epoch, redact, durability, steps_of(database, run), cuts
            )

        journal = await self._writer.do(job, is_full=durability == "full")
        self._held[journal.run] = journal.epoch
        return journal

    async def write(
        self, journal: SqliteJournal, job: Callable[[sqlite3.Connection], None]
    ) -> None:
        """Do a job if the run is still this process's.

        Raises:
            RunTakenOver: it is not.
            JournalError: it cannot be written.
        """

        def fenced(database: sqlite3.Connection) -> None:
            (epoch,) = database.execute(
                "SELECT epoch FROM runs WHERE run = ?", (journal.run,)
            ).fetchone() or (0,)
            if epoch != journal.epoch:
                raise RunTakenOver(journal.run_id, str(self.file))
            job(database)

        await self._writer.do(fenced, is_full=journal.durability == "full")

    def let_go(self, journal: SqliteJournal) -> None:
        """Renew the run's lease no longer."""
        self._held.pop(journal.run, None)

    def _renew(self, database: sqlite3.Connection) -> None:
        until = time.time() + LEASE
        database.executemany(
            "UPDATE runs SET lease = ? WHERE run = ? AND epoch = ?",
            [(until, run, epoch) for run, epoch in list(self._held.items())],
        )


_open: dict[Path, tuple[SqliteStore, int]] = {}
"""The stores that this process has open, and how many use each: all runs share commits."""
_opening = threading.Lock()


@asynccontextmanager
async def shared_store(folder: Path) -> AsyncGenerator[SqliteStore]:
    """The store of a folder, closed by the last one who uses it.

    Raises:
        SetupError: it cannot be opened, or is no journal of this version.
    """
    place = private_folder(folder).resolve()
    with _opening:
        if place in _open:
            store, users = _open[place]
        else:
            store, users = SqliteStore(place / FILE_NAME), 0
            store.open()
        _open[place] = store, users + 1
    try:
        yield store
    finally:
        with _opening:
            users = _open[place][1] - 1
            if users:
                _open[place] = store, users
            else:
                del _open[place]
        if not users:
            await store.aclose()


class SqliteJournal:
    """The steps of one run that this process writes."""

    def __init__(
        self,
        store: SqliteStore,
        run_id: str,
        run: int,
        epoch: int,
        redact: Redact,
        durability: Durability,
        rows: Sequence[StepRow] = (),
        cuts: Mapping[str, int] | None = None,
    ) -> None:
        """Made by the store.

        Args:
            store: Where it writes.
            run_id: Name of the run.
            run: Its number in the file.
            epoch: Which turn at the run this is.
            redact: Takes secrets out of what is written.
            durability: Whether commits outlive a power cut.
            rows: What was kept in earlier turns.
            cuts: Nodes whose steps count from an epoch on only.
        """
        self.store = store
        self.run_id = run_id
        self.run = run
        self.epoch = epoch
        self.durability: Durability = durability
        self.cuts = cuts or {}
        self._redact = redact
        self._pieces = Pieces(run, store.folder / run_id)
        self._reading: sqlite3.Connection | None = None
        self._rows = {row.key: row for row in rows}

    async def find(self, step: Step, /) -> StepRecord | None:
        """What earlier turns kept for the step."""
        row = self._rows.get(step.key)
        if (
            row is None
            or row.fingerprint != step.fingerprint
            or row.epoch < step.since
            or row.state in {"void", "failed"}
        ):
            return None
        value = self._value(row) if row.state == "done" else None
        return StepRecord(
            row.key, row.kind, row.fingerprint, value, row.state, epoch=row.epoch, at=row.at
        )

    async def begin(self, step: Step, /) -> None:
        """Keep that an effect is about to be made."""
        await self._keep(
            StepRecord(
                step.key, step.kind, step.fingerprint, None, "begun", step.request, at=time.time()
            )
        )

    async def append(self, record: StepRecord, /) -> None:
        """Keep a step."""
        await self._keep(record)

    @property
    def changed(self) -> tuple[str, ...]:
        """Nodes whose steps do not count any more since this turn began."""
        return tuple(name for name, epoch in self.cuts.items() if epoch == self.epoch)

    @property
    def kept(self) -> int:
        """How many steps earlier turns have done."""
        return sum(row.state == "done" for row in self._rows.values())

    def done(self, kind: StepKind) -> list[str]:
        """Keys of the steps of a kind that earlier turns have done."""
        return [r.key for r in self._rows.values() if r.kind == kind and r.state == "done"]

    def open_questions(self) -> list[str]:
        """Keys of the steps in which a human was asked and has not answered."""
        return [r.key for r in self._rows.values() if r.kind == "human" and r.state == "begun"]

    async def answer(self, key: str, text: str) -> None:
        """Keep a human's answer to an open question.

        Raises:
            JournalError: it cannot be kept.
        """
        row = self._rows[key]
        await self.append(StepRecord(key, "human", row.fingerprint, text, at=time.time()))
        value = json.dumps(self._redact(text))
        self._rows[key] = replace(row, state="done", value=value, epoch=self.epoch)

    async def finish(self, status: str, result: JsonValue, /) -> None:
        """Keep how the run ended; the journal takes no more steps.

        Raises:
            JournalError: it cannot be kept.
        """

        def job(database: sqlite3.Connection) -> None:
            database.execute(
                "UPDATE runs SET status = ?, result = ?, ended = ?, lease = 0 WHERE run = ?",
                (status, json.dumps(self._redact(result)), time.time(), self.run),
            )

        await self.store.write(self, job)
        self.store.let_go(self)

    async def aclose(self) -> None:
        """Let go of the run; if it was not finished its lease runs out."""
        self.store.let_go(self)
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    async def _keep(self, record: StepRecord) -> None:
        new: dict[str, str] = {}

        def job(database: sqlite3.Connection) -> None:
            request = pack(self._redact(record.request), new.__setitem__)
            value = pack(self._redact(record.value), new.__setitem__)
            self._pieces.write(database, new, sync=self.durability == "full")
            database.execute(
                "INSERT INTO steps(run, epoch, key, kind, state, fingerprint, request, value, at,"
                " seconds) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self.run,
                    self.epoch,
                    record.key,
                    record.kind,
                    record.state,
                    record.fingerprint,
                    request,
                    value,
                    record.at,
                    record.seconds,
                ),
            )

        await self.store.write(self, job)
        self._pieces.note(new)

    def _value(self, row: StepRow) -> JsonValue:
        try:
            return unpack(row.value, self._read_piece)
        except (OSError, LookupError, ValueError, sqlite3.Error) as error:
            raise RunError(
                f"what {row.key} gave cannot be read back from {self.store.file}: {error}",
                hint=f"it is lost; `devall resume {self.run_id} --from {node_of(row.key)}` does it"
                " anew, and what follows",
            ) from error

    def _read_piece(self, name: str) -> JsonValue:
        if self._reading is None:
            self._reading = sqlite3.connect(self.store.file, isolation_level=None)
        return self._pieces.read(self._reading, name)
