"""The spans that have begun, by what they belong to; in whatever task, the right one is current."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from opentelemetry import propagate
from opentelemetry.context import Context, attach, get_current
from opentelemetry.trace import (
    Link,
    Span,
    SpanKind,
    StatusCode,
    Tracer,
    get_current_span,
    set_span_in_context,
)

from devall.core.messages import NOTHING
from devall.core.outgoing import HEADERS

Value = str | bool | int | float | Sequence[str]
Attributes = Mapping[str, Value]

_NOT_FOR_STRANGERS = frozenset({"baggage"})
"""Fields that are the application's own and go to no model's endpoint."""


@dataclass(slots=True, eq=False)
class Opened:
    """A span that has begun."""

    key: str
    span: Span
    at: float
    """When it began; seconds since the epoch."""
    before: Context
    """What was current where it began."""
    parent: Opened | None = None
    inside: dict[str, Opened] = field(default_factory=dict[str, "Opened"])
    """Those that began in it and have not ended."""
    labels: dict[str, Value] = field(default_factory=dict[str, Value])
    """What tells its measurements from others."""
    sums: dict[str, float] = field(default_factory=dict[str, float])
    """What its calls have used."""

    def add(self, name: str, amount: float) -> None:
        """Count something that happened in it."""
        self.sums[name] = self.sums.get(name, 0) + amount


class Tree:
    """Begins and ends spans.

    A span's parent is found by its logical path, and never by what happens to be current: side
    by side branches cannot get into each other's. That it is made current in the task that
    works for it is for whatever does its own tracing below, such as an MCP client.

    Nothing is detached by token, since the end of a span may be told in another task than its
    beginning was: what was current before is put back only where the span is current still.
    """

    def __init__(self, tracer: Tracer, clean: Callable[[str], str]) -> None:
        """Make an empty tree; `clean` takes secrets out of texts."""
        self._tracer = tracer
        self._clean = clean
        self._open: dict[str, Opened] = {}

    def get(self, key: str) -> Opened | None:
        """The span of that key, if it is open."""
        return self._open.get(key)

    def around(self, path: str) -> Opened | None:
        """The open span that a path lies in: its own, or the nearest above."""
        while path not in self._open:
            if not path:
                return None
            path = path.rpartition("/")[0]
        return self._open[path]

    def begin(
        self,
        key: str,
        name: str,
        attributes: Attributes,
        at: float,
        *,
        parent: Opened | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        is_current: bool = True,
        links: Sequence[Link] = (),
        context: Context | None = None,
    ) -> Opened:
        """A span that has begun.

        Args:
            key: What it is known by.
            name: The span's name.
            attributes: What is known of it by now.
            at: When; seconds since the epoch.
            parent: The span that it is a part of.
            kind: Whether it is the client's side of something.
            is_current: Whether it is made current in the running task.
            links: Spans that it has to do with.
            context: Where the parent is, if it is none of ours.
        """
        before = get_current()
        if parent is not None:
            context = set_span_in_context(parent.span, before)
        span = self._tracer.start_span(
            name,
            context,
            kind,
            self._cleaned(attributes),
            links,
            start_time=_ns(at),
        )
        opened = Opened(key, span, at, before, parent)
        self._open[key] = opened
        if parent is not None:
            parent.inside[key] = opened
        if is_current:
            current = set_span_in_context(span, before)
            attach(current)
            if kind is SpanKind.CLIENT:
                HEADERS.set(_headers(current))
        return opened

    def end(
        self,
        opened: Opened,
        at: float,
        attributes: Attributes = NOTHING,
        *,
        failed: str | None = None,
        left: str = "cancelled",
    ) -> None:
        """Let a span end, and whatever of it is open still.

        Args:
            opened: The span.
            at: When; seconds since the epoch.
            attributes: What is known of it now.
            failed: What went wrong, for people; None: it went well.
            left: What became of those within.
        """
        for each in [*opened.inside.values()]:
            self.end(each, at, {"devall.status": left}, left=left)
        if attributes:
            opened.span.set_attributes(self._cleaned(attributes))
        if failed is not None:
            opened.span.set_status(StatusCode.ERROR, self._clean(failed) or None)
        opened.span.end(_ns(max(at, opened.at)))
        self._forget(opened)

    def discard(self, opened: Opened) -> None:
        """Make a span that never was: one that does not end is never sent."""
        self._forget(opened)

    def event(self, opened: Opened, name: str, attributes: Attributes, at: float) -> None:
        """Note what happened in a span."""
        opened.span.add_event(name, self._cleaned(attributes), _ns(at))

    def open_within(self, opened: Opened) -> Iterator[Opened]:
        """The spans that began in this one, or in those, and have not ended."""
        for each in opened.inside.values():
            yield each
            yield from self.open_within(each)

    def _forget(self, opened: Opened) -> None:
        self._open.pop(opened.key, None)
        if opened.parent is not None:
            opened.parent.inside.pop(opened.key, None)
        if get_current_span() is opened.span:
            attach(opened.before)
            HEADERS.set(NOTHING)

    def _cleaned(self, attributes: Attributes) -> dict[str, Value]:
        clean = self._clean
        return {n: clean(v) if isinstance(v, str) else v for n, v in attributes.items()}


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)


def _headers(context: Context) -> Mapping[str, str]:
    """What tells another service of a span, as far as that is asked for (`OTEL_PROPAGATORS`)."""
    carrier: dict[str, str] = {}
    propagate.inject(carrier, context)
    return {n: v for n, v in carrier.items() if n.lower() not in _NOT_FOR_STRANGERS}
