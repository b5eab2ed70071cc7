"""Bounds of a run, a graph or a node: what was used, what may still be used, for how long."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import asynccontextmanager, contextmanager

from devall.config.limits import Limits
from devall.core.errors import DevallError, LimitReached
from devall.core.events import Event, ModelCallFailed, ModelCallFinished, ToolCallFinished
from devall.core.ports import CallKind
from devall.core.usage import TokenUsage, Usage

Price = Callable[[str, str, TokenUsage], float | None]
"""US dollars of a call of a provider's model; None: not known."""


class Meter:
    """What was used of one set of limits; parallel calls share it."""

    def __init__(self, limits: Limits, where: str = "", price: Price | None = None) -> None:
        self.limits = limits
        self._price = price
        self.usd = 0.0
        """Money, counted only where `max_usd` bounds it; calls of unknown price left out."""
        self.unpriced: set[str] = set()
        """Models whose price is unknown, so that `max_usd` cannot hold for them."""
        self.where = where
        self.model_calls = 0
        self.tool_calls = 0
        self.input_tokens = 0
        self.output_tokens = 0
        self.cached_tokens = 0
        self.unknown_calls = 0
        self._allowed = {"model_call": 0, "tool_call": 0}

    def allow(self, kind: CallKind, tokens: int) -> None:
        """Count a call that is about to be made.

        Calls are counted here and not at their end, so that parallel ones cannot go over the
        bound together.

        Raises:
            LimitReached: this call, or `tokens` more tokens, would go over a bound.
        """
        limits = self.limits
        bound = limits.max_model_calls if kind == "model_call" else limits.max_tool_calls
        if bound is not None and self._allowed[kind] >= bound:
            raise LimitReached(f"max_{kind}s", bound, self.where)
        used = self.input_tokens + self.output_tokens
        if limits.max_tokens is not None and (
            used + tokens > limits.max_tokens or used >= limits.max_tokens
        ):
            raise LimitReached("max_tokens", limits.max_tokens, self.where)
        if limits.max_usd is not None and self.usd >= limits.max_usd:
            raise LimitReached("max_usd", limits.max_usd, self.where)
        self._allowed[kind] += 1

    def note(self, event: Event) -> None:
        """Add what an event says was used."""
        match event:
            case ModelCallFinished():
                self.model_calls += 1
                if event.usage is None:
                    self.unknown_calls += 1
                else:
                    self.input_tokens += event.usage.input_tokens
                    self.output_tokens += event.usage.output_tokens
                    self.cached_tokens += event.usage.cached_tokens
                if self.limits.max_usd is not None:
                    self._charge(event)
            case ModelCallFailed():
                self.model_calls += 1
            case ToolCallFinished():
                self.tool_calls += 1
            case _:
                pass

    def _charge(self, event: ModelCallFinished) -> None:
        cost = None
        if event.usage is not None and self._price is not None:
            cost = self._price(event.provider, event.model, event.usage)
        if cost is None:
            self.unpriced.add(event.model)
        else:
            self.usd += cost

    @property
    def usage(self) -> Usage:
        """The totals."""
        return Usage(
            self.model_calls,
            self.tool_calls,
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.unknown_calls,
        )


class Deadline:
    """A time limit that stands still while a human thinks."""

    def __init__(self, seconds: float | None) -> None:
        self._left = seconds
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
                yield
        except TimeoutError:
            if timeout.expired():
                raise error from None
            raise
        finally:
            self._timeout = None

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
        self._holds += 1
        try:
            yield
        finally:
            self._holds -= 1
            if not self._holds and not timeout.expired() and timeout is self._timeout:
                timeout.reschedule(loop.time() + (self._left or 0))
