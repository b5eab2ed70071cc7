"""Rows of the journal's file as values, and the statements that read them."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from devall.core.errors import UsageError
from devall.core.messages import JsonValue
from devall.core.ports import StepKind
from devall.journal.base import StepState
from devall.journal.owner import Owner, owner_of


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run, as it was last written."""

    run: int
    id: str
    epoch: int
    """How many processes have been at it."""
    status: str
    """`running`, or how it ended."""
    workflow: str
    """Path of the file."""
    task: JsonValue
    """The first message."""
    began: float
    ended: float | None
    owner: Owner
    lease: float
    settings: Mapping[str, JsonValue]
    """What it was started with."""
    sources: Mapping[str, str]
    """Texts of the files it was loaded from, by path."""
    result: Mapping[str, JsonValue] | None
    """The object of `devall run --json`; None until it has ended once."""

    @property
    def is_alive(self) -> bool:
        """Whether a process is at work on it."""
        return self.status == "running" and self.lease > time.time() and not self.owner.is_gone()

    def must_rest(self) -> None:
        """Make sure that no process is at work on it.

        Raises:
            UsageError: one is.
        """
        if self.is_alive:
            raise UsageError(
                f"run {self.id} is alive in process {self.owner.pid} of {self.owner.host}",
                hint=f"wait for it, or end it: devall runs cancel {self.id}",
            )

    @property
    def state(self) -> str:
        """Its status; `interrupted` where the process that ran it is gone."""
        return "interrupted" if self.status == "running" and not self.is_alive else self.status


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step as it stands in the file, its value not yet read."""

    seq: int
    epoch: int
    key: str
    kind: StepKind
    state: StepState
    fingerprint: str
    request: str
    value: str
    at: float
    seconds: float


def runs_of(database: sqlite3.Connection, run_id: str | None = None) -> list[RunRow]:
    """All runs, the newest first; or the one of that name."""
    rows = database.execute(
        "SELECT run, id, epoch, status, workflow, task, began, ended, owner, lease, settings,"
        " sources, result FROM runs WHERE :id IS NULL OR id = :id ORDER BY began DESC, run DESC",
        {"id": run_id},
    )
    return [
        RunRow(
            run,
            name,
            epoch,
            status,
            workflow,
            json.loads(task),
            began,
            ended,
            owner_of(owner),
            lease,
            json.loads(settings),
            json.loads(sources),
            None if result is None else json.loads(result),
        )
        for (
            run,
            name,
            epoch,
            status,
            workflow,
            task,
            began,
            ended,
            owner,
            lease,
            settings,
            sources,
            result,
        ) in rows
    ]


def steps_of(database: sqlite3.Connection, run: int) -> list[StepRow]:
    """The steps of a run in the order in which they were written."""
    rows = database.execute(
        "SELECT seq, epoch, key, kind, state, fingerprint, request, value, at, seconds FROM steps"
        " WHERE run = ? ORDER BY seq",
        (run,),
    )
    return [StepRow(*row) for row in rows]


def digests_of(database: sqlite3.Connection, run: int) -> dict[str, str]:
    """The digest of each node, as the last process at the run had it."""
    row = _last_epoch(database, run)
    return {} if row is None else cast("dict[str, str]", json.loads(row[0]))


def cuts_of(database: sqlite3.Connection, run: int) -> dict[str, int]:
    """Nodes whose steps count from an epoch on only."""
    row = _last_epoch(database, run)
    return {} if row is None else cast("dict[str, int]", json.loads(row[1]))


def begin_epoch(
    database: sqlite3.Connection,
    run: int,
    epoch: int,
    nodes: Mapping[str, str],
    cuts: Mapping[str, int],
) -> None:
    """Write that a process begins its turn at a run."""
    database.execute(
        "INSERT INTO epochs(run, epoch, at, nodes, cuts) VALUES(?, ?, ?, ?, ?)",
        (run, epoch, time.time(), json.dumps(dict(nodes)), json.dumps(dict(cuts))),
    )


def _last_epoch(database: sqlite3.Connection, run: int) -> tuple[str, str] | None:
    return database.execute(
        "SELECT nodes, cuts FROM epochs WHERE run = ? ORDER BY epoch DESC LIMIT 1", (run,)
    ).fetchone()
