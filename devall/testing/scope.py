"""A node's run for tests of what works inside of one: it journals nothing and keeps its events."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from devall.core.events import Event
from devall.core.messages import JsonValue
from devall.core.ports import CallKind, StepKind
from devall.core.usage import Estimate


@dataclass(slots=True)
class PlainScope:
    """The port `Scope` in its simplest form: every effect is made, every call allowed."""

    node: str = "A"
    path: str = "/A@1"
    events: list[Event] = field(default_factory=list[Event])

    def emit(self, event: Event, /) -> None:
        """Keep the event."""
        self.events.append(event)

    async def step(
        self,
        kind: StepKind,  # noqa: ARG002 - the port's name
        name: str,  # noqa: ARG002 - the port's name
        request: JsonValue,  # noqa: ARG002 - the port's name
        call: Callable[[], Awaitable[JsonValue]],
        in_doubt: Callable[[], Awaitable[JsonValue]] | None = None,  # noqa: ARG002 - the port's
    ) -> JsonValue:
        """Make the effect."""
        return await call()

    def allow(self, kind: CallKind, estimate: Estimate | None = None) -> None:
        """Nothing is bounded."""
