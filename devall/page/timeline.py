"""The time axis of a run: a lane for each node, loop and crowd of units, bars for what they did."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from devall.core.amounts import count, duration
from devall.core.ids import node_of
from devall.history.story import ModelCall, Question, Story, ToolUse, Visit
from devall.page.clock import Clock, Span

Look = Literal["visit", "unit", "model", "tool", "human", "wait", "round"]
State = Literal["good", "bad", "idle", "waiting"]

MOST_LANES = 60
"""Lanes that are shown at once; the others are folded away."""
MOST_TRACKS = 10
"""Things at the same time that are drawn below each other; beyond that only how many they are."""
MOST_BARS = 1500
"""Bars of a lane."""
NARROWEST = 0.12
"""Percent of the axis that a bar takes at least, so that it is seen."""
TRACK = 26
"""Height of a track, in pixels."""
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
class Bar:
    """Something that took time."""

    look: Look
    state: State
    x: float
    """Percent of the axis, as `width`."""
    width: float
    y: float
    """Pixels, as `height`."""
    height: float
    title: str
    label: str = ""


@dataclass(frozen=True, slots=True)
class Lane:
    """One row."""

    name: str
    about: str = ""
    depth: int = 0
    anchor: str = ""
    """Where the page tells more."""
    bars: Sequence[Bar] = ()
    height: float = TRACK
    crowd: str = ""
    """How many at a time, as a path in a field of 1000 by 100; empty: bars tell."""
    most: int = 0
    """How many there were at once."""
    weight: float = 0
    """What makes it worth to be shown when there are many."""
    is_loop: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of the axis."""

    x: float
    label: str
    is_last: bool = False
    """Whether its label must stand on its left, to stay within the picture."""


@dataclass(frozen=True, slots=True)
class Row:
    """One run of a node, for those who read the timeline as a table."""

    node: str
    anchor: str
    number: int
    began: str
    took: str
    status: str


@dataclass(slots=True)
class Timeline:
    """Everything that is drawn."""

    seconds: float = 0
    ticks: list[Tick] = field(default_factory=list[Tick])
    pauses: list[Tick] = field(default_factory=list[Tick])
    lanes: list[Lane] = field(default_factory=list[Lane])
    folded: list[Lane] = field(default_factory=list[Lane])
    """Lanes that are shown when asked for."""
    looks: set[str] = field(default_factory=set[str])
    """What occurs, for the legend."""
    rows: list[Row] = field(default_factory=list[Row])


def timeline_of(
    story: Story, clock: Clock, anchors: Mapping[str, str], say: Callable[[str], str]
) -> Timeline:
    """The timeline of a run.

    Args:
        story: Its course.
        clock: Its times.
        anchors: Where the page tells more, by node and by path of a node's run.
        say: Makes a text fit to be shown on one line.
    """
    drawing = _Drawing(story, clock, anchors, say, max(clock.seconds, 1e-6))
    found = Timeline(clock.seconds)
    found.ticks = list(_ticks(drawing.seconds))
    found.pauses = [
        Tick(drawing.x(at), f"pause of {duration(seconds)}") for at, seconds in clock.pauses
    ]
    lanes = list(drawing.lanes())
    if len(lanes) > MOST_LANES:
        kept = {id(each) for each in heapq.nlargest(MOST_LANES, lanes, key=lambda one: one.weight)}
        found.folded = [each for each in lanes if id(each) not in kept]
        lanes = [each for each in lanes if id(each) in kept]
    found.lanes = lanes
    every = (bar for lane in (*found.lanes, *found.folded) for bar in lane.bars)
    found.looks = {look for bar in every for look in (bar.look, bar.state)}
    if any(each.crowd for each in (*found.lanes, *found.folded)):
        found.looks.add("crowd")
    found.rows = [drawing.row(visit) for visit in story.visits.values()]
    return found


def _ticks(seconds: float) -> Iterator[Tick]:
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


@dataclass(slots=True)
class _Drawing:
    """Puts spans of time on the axis."""

    story: Story
    clock: Clock
    anchors: Mapping[str, str]
    say: Callable[[str], str]
    seconds: float

    def x(self, at: float) -> float:
        """Where a moment is, in percent."""
        return min(100.0, at / self.seconds * 100)

    def lanes(self) -> Iterator[Lane]:
        """All lanes, by when their node began; a loop stands above its first node."""
        by_node: dict[str, list[Visit]] = {}
        for visit in self.story.visits.values():
            by_node.setdefault(visit.node, []).append(visit)
        loops: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        for path, loop in self.clock.rounds:
            above = node_of(path)
            names = {f"{above}/{each}" if above else each for each in loop}
            first = next((node for node in by_node if node in names), None)
            if first is not None:
                known = loops.setdefault(first, [])
                known += [] if (above, loop) in known else [(above, loop)]
        for node in _nested(by_node):
            for above, loop in sorted(loops.get(node, ()), key=lambda each: -len(each[1])):
                yield self._loop(above, loop)
            yield self._node(node, by_node[node])
            units = [path for visit in by_node[node] for path in visit.units]
            if units:
                yield self._units(node, units)

    def row(self, visit: Visit) -> Row:
        """A run of a node in words."""
        spans = self.clock.visits.get(visit.path, [])
        took = self.story.seconds(visit)
        return Row(
            visit.node,
            self.anchors.get(visit.path, ""),
            visit.number,
            duration(spans[0].start) if spans else "",
            duration(took) if took is not None else "",
            self.story.status(visit),
        )

    def _node(self, node: str, visits: Sequence[Visit]) -> Lane:
        pieces = [
            (span, visit) for visit in visits for span in self.clock.visits.get(visit.path, [])
        ]
        depth, name = node.count("/"), node.rpartition("/")[2]
        tracks = _tracks([span for span, _ in pieces])
        most = max(tracks, default=-1) + 1
        weight = sum(span.seconds for span, _ in pieces)
        weight += self.seconds * sum(visit.failure is not None for visit in visits)
        anchor = self.anchors.get(node, "")
        about = "" if len(visits) == 1 else f"{len(visits):,} runs"
        if most > MOST_TRACKS or len(pieces) > MOST_BARS:
            most = _most_at_once([span for span, _ in pieces])
            crowd = _crowd([span for span, _ in pieces], self.seconds, most)
            return Lane(
                self.say(name), about, depth, anchor, (), 44, crowd, most, weight, is_loop=False
            )
        bars: list[Bar] = []
        first: dict[str, int] = {}
        for (span, visit), track in zip(pieces, tracks, strict=True):
            first.setdefault(visit.path, track)
            bars.append(self._visit_bar(span, visit, track))
        for visit in visits:
            if not visit.units:
                bars += self._inside(visit, first.get(visit.path, 0))
        return Lane(
            self.say(name),
            about,
            depth,
            anchor,
            tuple(bars[:MOST_BARS]),
            TRACK * max(1, most),
            weight=weight,
        )

    def _visit_bar(self, span: Span, visit: Visit, track: int) -> Bar:
        state = self._state(span, visit)
        run = f", run {visit.number}" if visit.number > 1 else ""
        words = {"good": "", "bad": ", failed", "idle": ", not finished", "waiting": ", waiting"}
        title = f"{self.say(visit.node)}{run}{words[state]}: {self._times(span)}"
        return self._bar("visit", state, span, track * TRACK + 3, TRACK - 6, title)

    def _state(self, span: Span, visit: Visit) -> State:
        if span.has_failed:
            return "bad"
        if span.is_open:
            return "waiting" if self.story.status(visit) == "waiting" else "idle"
        return "good"

    def _inside(self, visit: Visit, track: int) -> Iterator[Bar]:
        """What the run of a node did: calls of models above, those of tools below."""
        top = track * TRACK
        for each in visit.happenings:
            match each:
                case ModelCall():
                    key = each.path, each.turn
                    name = self.say(each.model)
                    for at, span in enumerate(self.clock.calls.get(key, []), 1):
                        attempt = f", attempt {at}" if at > 1 else ""
                        how = " failed" if span.has_failed else ""
                        title = f"{name}, turn {each.turn}{attempt}{how}: {self._times(span)}"
                        state: State = "bad" if span.has_failed else "good"
                        yield self._bar("model", state, span, top + 6, 6, title)
                    for span in self.clock.waits.get(key, []):
                        title = f"{name} is waited for: {self._times(span)}"
                        yield self._bar("wait", "good", span, top + 6, 6, title)
                case ToolUse():
                    key = each.started.path, each.started.call_id
                    for span in self.clock.uses.get(key, []):
                        how = " failed" if span.has_failed else ""
                        title = f"{self.say(each.started.tool)}{how}: {self._times(span)}"
                        state = "bad" if span.has_failed else "good"
                        yield self._bar("tool", state, span, top + 14, 6, title)
                case Question():
                    for span in self.clock.humans.get(each.path, []):
                        title = f"a human is asked: {self._times(span)}"
                        yield self._bar("human", "good", span, top + 6, 14, title)
                case _:
                    pass

    def _units(self, node: str, paths: Sequence[str]) -> Lane:
        spans = [span for path in paths for span in self.clock.units.get(path, [])]
        named = [path for path in paths for _ in self.clock.units.get(path, [])]
        tracks = _tracks(spans)
        most = _most_at_once(spans)
        about = f"{most:,} at once" if most > 1 else "one at a time"
        name = count(len(paths), "unit")
        depth = node.count("/") + 1
        anchor = self.anchors.get(node, "")
        if max(tracks, default=0) >= MOST_TRACKS or len(spans) > MOST_BARS:
            crowd = _crowd(spans, self.seconds, most)
            return Lane(name, about, depth, anchor, (), 44, crowd, most, self.seconds)
        bars = [
            self._bar(
                "unit",
                "bad" if span.has_failed else "idle" if span.is_open else "good",
                span,
                track * 12 + 3,
                8,
                f"{path.rpartition('/')[2].replace(':', ' ')}: {self._times(span)}",
            )
            for span, track, path in zip(spans, tracks, named, strict=True)
        ]
        height = 12 * (max(tracks, default=0) + 1) + 4
        return Lane(name, about, depth, anchor, bars, height, weight=self.seconds)

    def _loop(self, above: str, loop: tuple[str, ...]) -> Lane:
        rounds = [
            each
            for (path, nodes), found in self.clock.rounds.items()
            if nodes == loop and node_of(path) == above
            for each in found
        ]
        names = [self.say(each) for each in loop[:3]]
        name = f"loop {', '.join([*names, '…'] if len(loop) > 3 else names)}"
        bars: list[Bar] = []
        for each in rounds[:MOST_BARS]:
            title = f"round {each.number}: {self._times(each.span)}"
            label = str(each.number) if each.span.seconds / self.seconds > 0.02 else ""
            state: State = "good" if each.number % 2 else "idle"
            bars.append(self._bar("round", state, each.span, 3, 16, title, label))
        depth = above.count("/") + 1 if above else 0
        about = count(len({each.number for each in rounds}), "round")
        return Lane(name, about, depth, "", bars, 22, weight=self.seconds, is_loop=True)

    def _bar(
        self,
        look: Look,
        state: State,
        span: Span,
        y: float,
        height: float,
        title: str,
        label: str = "",
    ) -> Bar:
        x, end = self.x(span.start), self.x(span.end)
        width = max(end - x, NARROWEST)
        return Bar(look, state, min(x, 100 - width), width, y, height, title, label)

    def _times(self, span: Span) -> str:
        how = "since" if span.is_open else "from"
        return f"{duration(span.seconds)}, {how} {duration(span.start)}"


def _nested(nodes: Iterable[str]) -> list[str]:
    """The nodes in their order, those of a subgraph behind it."""
    order = {node: at for at, node in enumerate(nodes)}

    def place(node: str) -> tuple[int, ...]:
        parts = node.split("/")
        above = ["/".join(parts[: at + 1]) for at in range(len(parts))]
        return tuple(order.get(each, order[node]) for each in above)

    return sorted(order, key=place)


def _tracks(spans: Sequence[Span]) -> list[int]:
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


def _most_at_once(spans: Iterable[Span]) -> int:
    now = most = 0
    for _, change in _changes(spans):
        now += change
        most = max(most, now)
    return most


def _crowd(spans: Iterable[Span], seconds: float, most: int) -> str:
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
