"""The axis of time: its ticks, and how spans of it are put beside each other."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from devall.page.clock import Span

_STEPS = (
    *(base * 10.0**power for power in range(-3, 1) for base in (1, 2, 5)),
    *(10.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0, 3600.0, 7200.0, 10800.0),
    *(21600.0, 43200.0, 86400.0),
)
"""Seconds between two ticks of an axis."""
MOST_TICKS = 8
_PIECES = 500
"""Into how many pieces the axis is cut where only numbers are drawn."""


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of the axis."""

    x: float
    label: str
    is_last: bool = False
    """Whether its label must stand on its left, to stay within the picture."""


def ticks_of(seconds: float) -> Iterator[Tick]:
    """The marks of an axis of so many seconds: few, and at round times."""
    step = next((each for each in _STEPS if seconds / each <= MOST_TICKS), 0.0)
    if not step:
        step = _STEPS[-1]
        while seconds / step > MOST_TICKS:
            step *= 2
    for number in range(int(seconds / step * (1 + 1e-9)) + 1):
        at = number * step
        x = at / seconds * 100
        yield Tick(x, _moment(at, step), x > 92)


def _moment(at: float, step: float) -> str:
    """A time on the axis, with as many digits as its steps need."""
    if not at:
        return "0"
    if step < 60 and at < 60:
        digits = 0 if step >= 1 else 1 if step >= 0.1 else 2 if step >= 0.01 else 3
        return f"{at:.{digits}f} s"
    minutes, seconds = divmod(round(at), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (seconds, "s")]
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount)


def tracks_of(spans: Sequence[Span]) -> list[int]:
    """On which track each span lies, so that no two of them lie upon each other."""
    found = [0] * len(spans)
    free: list[int] = []
    busy: list[tuple[float, int]] = []
    used = 0
    for at in sorted(range(len(spans)), key=lambda each: spans[each].start):
        span = spans[at]
        while busy and busy[0][0] <= span.start + 1e-9:
            heapq.heappush(free, heapq.heappop(busy)[1])
        if free:
            track = heapq.heappop(free)
        else:
            track, used = used, used + 1
        found[at] = track
        heapq.heappush(busy, (max(span.end, span.start), track))
    return found


def most_at_once(spans: Iterable[Span]) -> int:
    """How many there were at a time, at most."""
    now = most = 0
    for _, change in _changes(spans):
        now += change
        most = max(most, now)
    return most


def crowd_of(spans: Iterable[Span], seconds: float, most: int) -> str:
    """How many there were at a time, as steps; of a narrow piece of time the most there were."""
    changes, at, now, before = _changes(spans), 0, 0, 0
    points = ["M0 100"]
    for number in range(_PIECES):
        here = now
        while at < len(changes) and changes[at][0] <= seconds * (number + 1) / _PIECES:
            now += changes[at][1]
            here = max(here, now)
            at += 1
        if here != before:
            points.append(f"H{number * 1000 / _PIECES:.0f}V{100 - here / most * 100:.1f}")
        before = here
    return "".join([*points, "H1000V100Z"])


def _changes(spans: Iterable[Span]) -> list[tuple[float, int]]:
    """When one more began to be there, or one less."""
    return sorted(change for span in spans for change in ((span.start, 1), (span.end, -1)))
