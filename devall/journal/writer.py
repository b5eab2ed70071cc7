"""The one thread that writes a journal's file: whatever waits shares the next commit."""

from __future__ import annotations

import asyncio
import queue
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

from devall.core.errors import DevallError, JournalError, SetupError
from devall.journal.owner import RENEWAL
from devall.journal.schema import BUSY_SECONDS, check, migrate

MOST_AT_ONCE = 1000
"""Jobs that share a commit."""

T = TypeVar("T")
Job = Callable[[sqlite3.Connection], T]
"""Reads and writes within a transaction; what it raises undoes nothing of its neighbours."""


@dataclass(slots=True)
class _Task:
    job: Job[Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    is_full: bool


class Writer:
    """Owns the connection to a file, from `open` to `aclose`."""

    def __init__(self, file: Path, renew: Job[None], busy_seconds: float = BUSY_SECONDS) -> None:
        """Nothing is opened yet.

        Args:
            file: The database.
            renew: Done every `RENEWAL` seconds, with or without other work.
            busy_seconds: How long another process's commit is waited for.
        """
        self._file = file
        self._busy_seconds = busy_seconds
        self._renew = renew
        self._tasks: queue.SimpleQueue[_Task | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="devall-journal", daemon=True)
        self._database: sqlite3.Connection | None = None
        self._synchronous = ""

    def open(self) -> None:
        """Open or make the file, and start the thread.

        Raises:
            SetupError: it cannot be opened, is no journal, or is one of a newer devall.
        """
        database: sqlite3.Connection | None = None
        try:
            self._file.touch(mode=0o600)
            database = sqlite3.connect(
                self._file,
                isolation_level=None,
                check_same_thread=False,
                timeout=self._busy_seconds,
            )
            check(database, str(self._file))
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA foreign_keys = ON")
            migrate(database, str(self._file))
        except (sqlite3.Error, OSError, DevallError) as error:
            if database is not None:
                database.close()
            if isinstance(error, DevallError):
                raise
            raise SetupError(
                f"the journal {self._file} cannot be opened: {error}",
                hint="choose another folder with --logs-dir, or run with `--journal memory`",
            ) from error
        self._database = database
        self._thread.start()

    async def do(self, job: Job[T], *, is_full: bool = False) -> T:
        """What a job gives, once it is committed.

        Args:
            job: The work.
            is_full: Whether the commit must outlive a power cut.

        Raises:
            JournalError: the file cannot be written; nothing of the job is.
            Exception: what the job raises.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._tasks.put(_Task(job, loop, future, is_full))
        return cast("T", await asyncio.shield(future))

    async def aclose(self) -> None:
        """Write what waits, and close the file."""
        self._tasks.put(None)
        await asyncio.to_thread(self._thread.join)

    def _work(self) -> None:
        renewed = time.monotonic()
        is_open = True
        while is_open:
            batch: list[_Task] = []
            try:
                wait = max(renewed + RENEWAL - time.monotonic(), 0)
                task = self._tasks.get(timeout=wait)
                while task is not None:
                    batch.append(task)
                    if len(batch) == MOST_AT_ONCE:
                        break
                    task = self._tasks.get_nowait()
                is_open = task is not None
            except queue.Empty:
                pass
            is_due = time.monotonic() - renewed >= RENEWAL
            if is_due:
                renewed = time.monotonic()
            if batch or is_due:
                self._commit(batch, renew=is_due)
        assert self._database is not None
        self._database.close()

    def _commit(self, batch: list[_Task], *, renew: bool) -> None:
        database = self._database
        assert database is not None
        results: list[tuple[_Task, Any, BaseException | None]] = []
        try:
            self._synchronize(full=any(task.is_full for task in batch))
            database.execute("BEGIN IMMEDIATE")
            for task in batch:
                try:
                    results.append((task, task.job(database), None))
                except DevallError as error:
                    results.append((task, None, error))
                except (OSError, TypeError, ValueError, LookupError) as error:
                    # A value that is no JSON, a file of its own that cannot be written.
                    results.append((task, None, self._failure(error)))
            if renew:
                self._renew(database)
            database.execute("COMMIT")
        except Exception as error:  # noqa: BLE001 - the thread must not end: each task is told
            if database.in_transaction:
                database.execute("ROLLBACK")
            results = [(task, None, self._failure(error)) for task in batch]
        by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Task, Any, BaseException | None]]]
        by_loop = {}
        for each in results:
            by_loop.setdefault(each[0].loop, []).append(each)
        for loop, told in by_loop.items():
            try:
                loop.call_soon_threadsafe(_tell, told)
            except RuntimeError:  # the loop is closed: nobody waits any more
                continue

    def _failure(self, error: Exception) -> JournalError:
        failure = JournalError(str(self._file), str(error) or type(error).__name__)
        failure.__cause__ = error
        return failure

    def _synchronize(self, *, full: bool) -> None:
        wanted = "FULL" if full else "NORMAL"
        if wanted != self._synchronous:
            assert self._database is not None
            self._database.execute(f"PRAGMA synchronous = {wanted}")
            self._synchronous = wanted


def _tell(results: list[tuple[_Task, Any, BaseException | None]]) -> None:
    for task, value, error in results:
        if task.future.done():
            continue
        if error is None:
            task.future.set_result(value)
        else:
            task.future.set_exception(error)
            task.future.exception()  # whoever was cancelled meanwhile does not ask
