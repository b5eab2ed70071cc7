"""One life of a connection: opened, kept and closed by a task of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from devall.core.errors import SetupError
from devall.tools.mcp.link import Link, Listing

T = TypeVar("T")

DRAIN = 1.0
"""Seconds that calls which are cancelled at the end get to tell the server so."""


class OpenFailedError(Exception):
    """A try to open failed; `cause` is what the link raised, `told` what a user reads."""

    def __init__(self, cause: BaseException, told: SetupError) -> None:
        super().__init__(str(told))
        self.cause = cause
        self.told = told


class ConnectionLostError(Exception):
    """The server went away while a call was under way."""


class Connection:
    """Owns a link. What the link opens belongs to the owner task, which also closes it.

    A call runs in a task of its own: who waits for it may be cancelled, or leave, at any time,
    and neither the link nor another call takes notice.
    """

    def __init__(self, link: Link, warn: Callable[[str], None]) -> None:
        self.link = link
        self.listing = Listing()
        self._warn = warn
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._stop = asyncio.Event()
        self._gone = asyncio.Event()
        self._retired = False
        self._calls: set[asyncio.Task[Any]] = set()
        self.owner = asyncio.create_task(self._own(), name="devall-mcp-owner")

    @property
    def is_usable(self) -> bool:
        """Whether it is open and takes calls."""
        ready = self._ready
        opened = ready.done() and not ready.cancelled() and ready.exception() is None
        return opened and not self._retired and not self._gone.is_set()

    async def opened(self, seconds: float) -> None:
        """Wait until it is open; a try that takes longer is given up.

        Raises:
            OpenFailedError: it could not be opened.
        """
        await asyncio.wait({self._ready}, timeout=max(seconds, 0))
        if self._ready.cancelled():
            raise OpenFailedError(ConnectionLostError(), SetupError("closed while it was opened"))
        if not self._ready.done():
            cause = TimeoutError()
            told = await self.link.explain(cause)
            self.owner.cancel()
            raise OpenFailedError(cause, told)
        self._ready.result()

    async def run(self, work: Callable[[Link], Coroutine[Any, Any, T]]) -> T:
        """The result of a call.

        Raises:
            ConnectionLostError: the server went away meanwhile.
            Exception: whatever the call raised.
        """
        task = asyncio.create_task(work(self.link))
        self._calls.add(task)
        task.add_done_callback(self._forget)
        gone = asyncio.create_task(self._gone.wait())
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            # Not awaited: whoever is cancelled goes on at once, and the server is told meanwhile.
            task.cancel()
        if not task.done() or task.cancelled():
            raise ConnectionLostError
        return task.result()

    def retire(self) -> None:
        """Take no new calls; close once those under way are done."""
        self._retired = True
        if not self._calls:
            self._stop.set()

    def stop(self) -> None:
        """Close as soon as may be; `owner` is done once it is closed."""
        self._stop.set()
        if not self._ready.done():
            self.owner.cancel()

    def _forget(self, task: asyncio.Task[Any]) -> None:
        self._calls.discard(task)
        if not task.cancelled():
            task.exception()  # looked at: nobody may be left to do so
        if self._retired and not self._calls:
            self._stop.set()

    async def _own(self) -> None:
        try:
            try:
                self.listing = await self.link.open()
            # Whatever a server or a library does wrong is told by the link in its own words.
            except Exception as error:  # noqa: BLE001
                told = await self.link.explain(error)
                if not self._ready.done():
                    self._ready.set_exception(OpenFailedError(error, told))
                return
            self._ready.set_result(None)
            await self._until_over()
        finally:
            self._gone.set()
            if not self._ready.done():
                self._ready.cancel()
            elif not self._ready.cancelled():
                self._ready.exception()  # looked at: nobody may be left to do so
            # In a task of its own, which nobody cancels: a process may have to be ended.
            await finished([asyncio.create_task(self._close())])

    async def _until_over(self) -> None:
        lost = asyncio.create_task(self.link.lost())
        stop = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({lost, stop}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            lost.cancel()
            stop.cancel()

    async def _close(self) -> None:
        calls = list(self._calls)
        for task in calls:
            task.cancel()
        if calls:
            await asyncio.wait(calls, timeout=DRAIN)
        for trouble in await self.link.close():
            self._warn(trouble)


async def finished(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for tasks that end by themselves, also where the caller is cancelled meanwhile."""
    left: set[asyncio.Task[Any]] = {task for task in tasks if not task.done()}
    cancelled: asyncio.CancelledError | None = None
    while left:
        try:
            await asyncio.wait(left)
        except asyncio.CancelledError as error:
            cancelled = error
        left = {task for task in left if not task.done()}
    if cancelled is not None:
        raise cancelled
