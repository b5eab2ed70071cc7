"""A sink that keeps every event, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from devall.core.events import Event

E = TypeVar("E", bound=Event)


@dataclass(slots=True)
class Recorder:
    """Keeps events in order; an instance is itself the sink."""

    events: list[Event] = field(default_factory=list[Event])

    def __call__(self, event: Event, /) -> None:
        """Keep the event."""
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """The events of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    def kinds(self) -> list[str]:
        """The names of the events' classes, in order."""
        return [type(event).__name__ for event in self.events]
