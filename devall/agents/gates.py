"""The pauses that endpoints ask for, kept by all agents of a run together."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

LONGEST_PAUSE = 60.0
"""Seconds for which one endpoint's answer holds up the calls of others at most."""

Sleep = Callable[[float], Awaitable[None]]


@dataclass(slots=True)
class Gate:
    """The way to one endpoint: open, or shut until a moment that the endpoint named.

    A call that was answered with 429 and `Retry-After` shuts it, so that the calls of other
    nodes wait as well instead of being refused one by one. A wait ends when its task is
    cancelled; whoever waits holds nothing.
    """

    clock: Callable[[], float] = time.monotonic
    sleep: Sleep = asyncio.sleep
    _until: float = field(default=0.0, init=False)

    def shut(self, seconds: float) -> None:
        """Nobody passes for that time, at most `LONGEST_PAUSE`; a longer pause stands."""
        self._until = max(self._until, self.clock() + min(seconds, LONGEST_PAUSE))

    @property
    def wait(self) -> float:
        """Seconds until it is open."""
        return max(0.0, self._until - self.clock())

    async def passed(self, on_wait: Callable[[float], None]) -> None:
        """Return when it is open; told of each wait beforehand, in seconds.

        Those who wait do not come back at the same moment.
        """
        while wait := self.wait:
            wait += random.uniform(0, min(1.0, wait / 10))  # noqa: S311 - not for secrets
            on_wait(wait)
            await self.sleep(wait)


@dataclass(slots=True)
class Gates:
    """The gates of a run, by endpoint."""

    _gates: dict[tuple[str, str], Gate] = field(default_factory=dict[tuple[str, str], Gate])

    def at(self, provider: str, url: str) -> Gate:
        """The gate of an endpoint; in process, of a provider."""
        return self._gates.setdefault((provider, url), Gate())
