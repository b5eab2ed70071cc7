"""Many sinks as one, none of which can harm the run."""

from __future__ import annotations

from collections.abc import Iterable

from devall.core.events import Event, Sink, Warned


class FanOut:
    """A sink that passes each event on to others, and never raises.

    The first time a sink fails the others are told by a `Warned`, and `failures` holds the
    text; it goes on getting events, since a full disk may have room again.
    """

    def __init__(self, sinks: Iterable[Sink] = ()) -> None:
        self._sinks = list(sinks)
        self._failed: set[int] = set()
        self.failures: list[str] = []
        """What went wrong with sinks, a text for each that failed."""

    def __bool__(self) -> bool:
        return bool(self._sinks)

    def add(self, sink: Sink) -> None:
        """Pass later events on to this sink too."""
        self._sinks.append(sink)

    def __call__(self, event: Event, /) -> None:
        """Pass the event on."""
        for sink in self._sinks:
            try:
                sink(event)
            except Exception as error:  # noqa: BLE001 - what only looks on must not end the run
                self._note(sink, error)

    def close(self) -> None:
        """Close those sinks that have something to close."""
        for sink in self._sinks:
            try:
                close = getattr(sink, "close", None)
                if close is not None:
                    close()
            except Exception as error:  # noqa: BLE001 - as above
                self._note(sink, error)

    def _note(self, sink: Sink, error: Exception) -> None:
        if id(sink) in self._failed:
            return
        self._failed.add(id(sink))
        name = getattr(sink, "__name__", type(sink).__name__)
        text = f"the run is no longer fully recorded: {name} failed: {str(error) or type(error).__name__}"
        self.failures.append(text)
        self(Warned(code="sink_failed", message=text))
