"""Tells a client that its call is still at work, and how far."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from devall.core.events import Event, ToolProgress

T = TypeVar("T")

BEAT = 5.0
"""Seconds of silence after which a sign of life is sent: clients give up after 60, some after 30."""
WAITING = 256
"""Reports that wait for a slow client; those beyond are dropped."""
LAST = 1.0
"""Seconds that the last reports get to be sent once the work is done."""

Send = Callable[[float, float | None, str], Awaitable[None]]
"""Sends progress, total and message."""


class Progress:
    """Passes a tool's reports on, each with a larger number than the one before.

    The protocol wants numbers that grow, and a sign of life must not look like progress: where a
    number would not grow it is the next one that a computer knows.
    """

    def __init__(self, send: Send, beat: float = BEAT) -> None:
        """Take nothing yet.

        Args:
            send: Reaches the client.
            beat: Seconds of silence after which a sign of life is sent.
        """
        self._send = send
        self._beat = beat
        self._last: float | None = None
        self._reports: asyncio.Queue[ToolProgress | None] = asyncio.Queue()

    def take(self, event: Event) -> None:
        """Take an event of a call; what is no progress is passed over."""
        if isinstance(event, ToolProgress) and self._reports.qsize() < WAITING:
            self._reports.put_nowait(event)

    async def during(self, work: Awaitable[T]) -> T:
        """The value of the work, with its reports sent before it."""
        pump = asyncio.create_task(self._pump())
        try:
            value = await work
            self._reports.put_nowait(None)
            await asyncio.wait({pump}, timeout=LAST)
            return value
        finally:
            pump.cancel()

    async def _pump(self) -> None:
        began = asyncio.get_running_loop().time()
        # Who asked may be gone, which must not spoil the work: it may matter to others.
        with suppress(Exception):
            while True:
                report: ToolProgress | None = None
                try:
                    async with asyncio.timeout(self._beat):
                        report = await self._reports.get()
                    if report is None:
                        return
                    await self._tell(report.progress, report.total, report.message)
                except TimeoutError:
                    passed = asyncio.get_running_loop().time() - began
                    await self._tell(self._last or 0, None, f"still at work ({passed:.0f} s)")

    async def _tell(self, progress: float, total: float | None, message: str) -> None:
        if self._last is not None and progress <= self._last:
            # Not `nextafter`: a number so close is the same once it is written and read.
            progress = self._last + max(abs(self._last), 1) * 1e-6
        if not math.isfinite(progress):
            return
        self._last = progress
        await self._send(progress, total, message)
