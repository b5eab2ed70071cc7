"""A journal's file, and runs in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from devall.journal.base import Step, StepRecord, fingerprint
from devall.journal.reader import FILE_NAME
from devall.journal.sqlite import Durability, NewRun, SqliteJournal, SqliteStore

Begin = Callable[..., Awaitable[SqliteJournal]]


def plain(value: Any) -> Any:
    return value


def new_run(name: str, **more: Any) -> NewRun:
    given: dict[str, Any] = {"workflow": "w.yaml", "task": "x", "settings": {}, "sources": {}}
    return NewRun(**(given | {"id": name, "nodes": {"A": "1", "B": "1"}} | more))


def wanted(key: str, request: Any = None, kind: Any = "model", since: int = 0) -> Step:
    return Step(key, kind, request, fingerprint(request), since)


def record(key: str, value: Any, request: Any = None, kind: Any = "model") -> StepRecord:
    return StepRecord(key, kind, fingerprint(request), value, "done", request)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """An open file, which waits for no other process for long."""
    opened = SqliteStore(tmp_path / FILE_NAME, 0.3)
    opened.open()
    yield opened
    await opened.aclose()


@pytest.fixture
def begin(store: SqliteStore) -> Begin:
    """Begins a run of that name."""

    async def begin_run(name: str = "r", durability: Durability = "normal") -> SqliteJournal:
        return await store.begin(new_run(name), plain, durability)

    return begin_run


@pytest.fixture
def take_over(store: SqliteStore) -> Begin:
    """Takes a run over, as a later process does; a lease that still holds runs out first."""

    async def take(name: str = "r", again: Any = (), **nodes: str) -> SqliteJournal:
        await store._writer.do(lambda database: database.execute("UPDATE runs SET lease = 0"))
        found = {"A": "1", "B": "1"} | nodes
        return await store.take_over(name, nodes=found, again=again, redact=plain)

    return take
