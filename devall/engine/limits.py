"""Bounds of a run, a graph or a node: what was used, what may still be used, for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from devall.config.limits import Limits
from devall.core.errors import DevallError, LimitReached
from devall.core.events import Event, ModelCallFailed, ModelCallFinished
from devall.core.ports import CallKind
from devall.core.usage import NOTHING_USED, Estimate, TokenUsage

Price = Callable[[str, str, TokenUsage], float | None]
"""US dollars of a call of a provider's model; None: not known."""

NEAR = 0.8
"""The share of a bound at which a warning says that it comes near."""


def near_text(limit: str, used: float, bound: float, where: str) -> str:
    """What a warning says of a bound that comes near."""
    of = f" of {where}" if where else ""
    return f"{used:.6g} of `{limit}`{of} ({bound:g}) are used"


class Meter:
    """What was used of one set of limits; parallel calls share it.

    What a call may use is set aside from the moment it is allowed until it is answered, so that
    calls side by side cannot go over a bound together. A call that is cancelled keeps what was
    set aside for it: nobody will say what it used.
    """

    def __init__(self, limits: Limits, where: str = "") -> None:
        self.limits = limits
        self.where = where
        self._calls = {"model_call": 0, "tool_call": 0}
        self._tokens = 0
        self._usd = 0.0
        self._reserved: dict[str, tuple[int, float]] = {}
        """Tokens and dollars set aside, by the path of the node's run that calls."""
        self._over: dict[str, LimitReached] = {}
        """Bounds that were gone over, by the path of the node's run that did it first."""
        self._told: set[str] = set()
        self._news: list[str] = []

    def allow(
        self, kind: CallKind, path: str = "", estimate: Estimate | None = None, usd: float = 0.0
    ) -> None:
        """Count a call that is about to be made.

        Args:
            kind: What is called.
            path: The run of a node that calls.
            estimate: What the call may use.
            usd: What that may cost; 0 where it is not known.

        Raises:
            LimitReached: this call, or what it may use, would go over a bound.
        """
        limits = self.limits
        name = f"max_{kind}s"
        bound = limits.max_model_calls if kind == "model_call" else limits.max_tool_calls
        if bound is not None and self._calls[kind] >= bound:
            raise LimitReached(name, bound, self.where)
        tokens = estimate.usage.tokens if estimate else 0
        self._check("max_tokens", limits.max_tokens, self._tokens, 0, tokens)
        self._check("max_usd", limits.max_usd, self._usd, 1, usd)
        self._calls[kind] += 1
        self._tell(name, bound, self._calls[kind])
        if estimate is not None:
            self._reserved[path] = tokens, usd

    def _check(self, limit: str, bound: float | None, used: float, at: int, more: float) -> None:
        if bound is None:
            return
        planned = sum(each[at] for each in self._reserved.values()) if more else 0
        # With the bound used up not even a call that asks for nothing is made.
        if used + planned + more > bound or (used >= bound and (used or not at)):
            ahead = f"{used:.6g} are used"
            if planned:
                ahead += f", calls under way may use {planned:.6g}"
            if more:
                ahead += f", and the next call may use about {more:.6g}"
            raise LimitReached(limit, bound, self.where, used=ahead)

    def note(self, event: Event) -> None:
        """Add what an event says was used; estimated where nobody counted it."""
        match event:
            case ModelCallFinished():
                self._reserved.pop(event.path, None)
                self._add(event.path, event.usage or event.estimate or NOTHING_USED, event.usd)
            case ModelCallFailed():
                if event.wait is None:
                    self._reserved.pop(event.path, None)
                self._add(event.path, event.usage or NOTHING_USED, event.usd)
            case _:
                pass

    def _add(self, path: str, usage: TokenUsage, usd: float | None) -> None:
        self._tokens += usage.tokens
        self._usd += usd or 0.0
        for limit, bound, used in (
            ("max_tokens", self.limits.max_tokens, self._tokens),
            ("max_usd", self.limits.max_usd, self._usd),
        ):
            self._tell(limit, bound, used)
            if bound is not None and used > bound and not self._over:
                text = f"{used:.6g} are used"
                self._over[path] = LimitReached(limit, bound, self.where, used=text)

    def over(self, path: str) -> LimitReached | None:
        """The bound that a run of a node, or one of its units, has gone over first, if any."""
        for culprit, limit in self._over.items():
            if culprit == path or culprit.startswith(f"{path}/unit:"):
                return limit
        return None

    def _tell(self, limit: str, bound: float | None, used: float) -> None:
        if bound and limit not in self._told and NEAR * bound <= used <= bound:
            self._told.add(limit)
            self._news.append(near_text(limit, used, bound, self.where))

    def news(self) -> list[str]:
        """What bounds came near since this was asked last; each is said once."""
        found, self._news = self._news, []
        return found


class Deadline:
    """A time limit that stands still while a human thinks; its blocks share the time."""

    def __init__(self, seconds: float | None, on_near: Callable[[], None] | None = None) -> None:
        """Set the time; the clock goes within blocks only.

        Args:
            seconds: All the time there is; None = no limit.
            on_near: Called once, when little of it is left (see `NEAR`).
        """
        self._seconds = self._left = seconds
        self._on_near = on_near
        self._near: asyncio.TimerHandle | None = None
        self._timeout: asyncio.Timeout | None = None
        self._holds = 0

    @asynccontextmanager
    async def within(self, error: DevallError) -> AsyncGenerator[None]:
        """A block that must end in time.

        Raises:
            DevallError: `error`, when the time is up; the block is cancelled first.
        """
        if self._left is None:
            yield
            return
        timeout = asyncio.timeout(self._left)
        try:
            async with timeout as self._timeout:
                self._watch()
                yield
        except TimeoutError:
            if timeout.expired():
                raise error from None
            raise
        finally:
            when = timeout.when()
            if when is not None:
                self._left = max(0.0, when - asyncio.get_running_loop().time())
            self._unwatch()
            self._timeout = None

    def _watch(self) -> None:
        if self._on_near is None or self._seconds is None or self._left is None:
            return
        soon = max(0.0, self._left - (1 - NEAR) * self._seconds)
        self._near = asyncio.get_running_loop().call_later(soon, self._say)

    def _unwatch(self) -> None:
        if self._near is not None:
            self._near.cancel()
            self._near = None

    def _say(self) -> None:
        told, self._on_near, self._near = self._on_near, None, None
        if told is not None:
            told()

    @contextmanager
    def held(self) -> Generator[None]:
        """A block during which this clock stands still; blocks may overlap."""
        timeout = self._timeout
        if timeout is None:
            yield
            return
        loop = asyncio.get_running_loop()
        when = timeout.when()
        if not self._holds and when is not None and not timeout.expired():
            self._left = when - loop.time()
            timeout.reschedule(None)
            self._unwatch()
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if not self._holds and not timeout.expired() and timeout is self._timeout:
                timeout.reschedule(loop.time() + (self._left or 0))
                self._watch()
