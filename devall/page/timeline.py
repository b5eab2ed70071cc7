"""The time axis of a run: a lane for each node, loop and crowd of units, bars for what they did."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from devall.core.amounts import count, duration
from devall.core.ids import node_of
from devall.history.story import ModelCall, Question, Story, ToolUse, Visit
from devall.page.axis import Tick, crowd_of, most_at_once, ticks_of, tracks_of
from devall.page.clock import Clock, Span

Look = Literal["visit", "unit", "model", "tool", "human", "wait", "round"]
State = Literal["good", "bad", "idle", "waiting"]

MOST_LANES = 60
"""Lanes that are shown at once; the others are folded away."""
MOST_TRACKS = 10
"""Things at the same time that are drawn below each other; beyond that only how many they are."""
MOST_BARS = 1500
"""Bars of a lane."""
MOST_ROUNDS = 200
"""Bars of a loop; of more rounds each is several of them."""
NARROWEST = 0.12
"""Percent of the axis that a bar takes at least, so that it is seen."""
TRACK = 26
"""Height of a track, in pixels."""


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
    weight: float = 0
    """What makes it worth to be shown when there are many."""
    is_loop: bool = False


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
    overview: Lane | None = None
    """How many nodes were at work, where not all of them are shown."""
    folded: list[Lane] = field(default_factory=list[Lane])
    """Lanes that are shown when asked for."""
    looks: set[str] = field(default_factory=set[str])
    """What occurs, for the legend."""
    rows: list[Row] = field(default_factory=list[Row])


def timeline_of(
    story: Story,
    clock: Clock,
    anchors: Mapping[str, str],
    say: Callable[[str], str],
    *,
    is_alive: bool = False,
) -> Timeline:
    """The timeline of a run.

    Args:
        story: Its course.
        clock: Its times.
        anchors: Where the page tells more, by node and by path of a node's run.
        say: Makes a text fit to be shown on one line.
        is_alive: Whether the run still goes on.
    """
    drawing = _Drawing(story, clock, anchors, say, max(clock.seconds, 1e-6), is_alive)
    found = Timeline(clock.seconds)
    found.ticks = list(ticks_of(drawing.seconds))
    found.pauses = [
        Tick(drawing.x(at), f"pause of {duration(seconds)}") for at, seconds in clock.pauses
    ]
    lanes = list(drawing.lanes())
    if len(lanes) > MOST_LANES:
        found.overview = drawing.overview()
        kept = {id(each) for each in heapq.nlargest(MOST_LANES, lanes, key=lambda one: one.weight)}
        found.folded = [each for each in lanes if id(each) not in kept]
        lanes = [each for each in lanes if id(each) in kept]
    found.lanes = lanes
    every = (bar for lane in (*found.lanes, *found.folded) for bar in lane.bars)
    found.looks = {look for bar in every for look in (bar.look, f"{bar.look} {bar.state}")}
    if any(each.crowd for each in (*found.lanes, *found.folded)):
        found.looks.add("crowd")
    found.rows = [drawing.row(visit) for visit in story.visits.values()]
    return found


@dataclass(slots=True)
class _Drawing:
    """Puts spans of time on the axis."""

    story: Story
    clock: Clock
    anchors: Mapping[str, str]
    say: Callable[[str], str]
    seconds: float
    is_alive: bool

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

    def overview(self) -> Lane:
        """How many runs of nodes there were at a time, those of subgraphs apart."""
        roots = [visit for visit in self.story.visits.values() if not visit.graph]
        spans = [span for visit in roots for span in self.clock.visits.get(visit.path, [])]
        most = most_at_once(spans)
        crowd = crowd_of(spans, self.seconds, most)
        return Lane("all nodes", f"{most:,} at once", height=44, crowd=crowd)

    def row(self, visit: Visit) -> Row:
        """A run of a node in words."""
        spans = self.clock.visits.get(visit.path, [])
        took, status = self.story.seconds(visit), self.story.status(visit)
        return Row(
            visit.node,
            self.anchors.get(visit.path, ""),
            visit.number,
            duration(spans[0].start) if spans else "",
            duration(took) if took is not None else "",
            "running" if status == "unfinished" and self.is_alive else status,
        )

    def _node(self, node: str, visits: Sequence[Visit]) -> Lane:
        pieces = [
            (span, visit) for visit in visits for span in self.clock.visits.get(visit.path, [])
        ]
        depth, name = node.count("/"), node.rpartition("/")[2]
        tracks = tracks_of([span for span, _ in pieces])
        most = max(tracks, default=-1) + 1
        weight = sum(span.seconds for span, _ in pieces)
        weight += self.seconds * sum(visit.failure is not None for visit in visits)
        anchor = self.anchors.get(node, "")
        about = "" if len(visits) == 1 else f"{len(visits):,} runs"
        if most > MOST_TRACKS or len(pieces) > MOST_BARS:
            spans = [span for span, _ in pieces]
            most = most_at_once(spans)
            crowd, about = crowd_of(spans, self.seconds, most), f"{about}, {most:,} at once"
            return Lane(self.say(name), about, depth, anchor, (), 44, crowd, weight)
        bars: list[Bar] = []
        first: dict[str, int] = {}
        for (span, visit), track in zip(pieces, tracks, strict=True):
            first.setdefault(visit.path, track)
            bars.append(self._visit_bar(span, visit, track))
        within = [
            bar
            for visit in visits
            if not visit.units
            for bar in self._inside(visit, first.get(visit.path, 0))
        ]
        if len(within) <= MOST_BARS:  # all or none: a part would look like the whole
            bars += within
        return Lane(
            self.say(name),
            about,
            depth,
            anchor,
            tuple(bars),
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
        used = [
            span
            for each in visit.happenings
            if isinstance(each, ToolUse)
            for span in self.clock.uses.get((each.started.path, each.started.call_id), [])
        ]
        tracks = tracks_of(used)
        height = 6 / min(3, max(tracks, default=0) + 1)
        places = {id(span): at % 3 for span, at in zip(used, tracks, strict=True)}
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
                        y = top + 14 + height * places[id(span)]
                        yield self._bar("tool", state, span, y, height, title)
                case Question():
                    for span in self.clock.humans.get(each.path, []):
                        title = f"a human is asked: {self._times(span)}"
                        yield self._bar("human", "good", span, top + 6, 14, title)
                case _:
                    pass

    def _units(self, node: str, paths: Sequence[str]) -> Lane:
        spans = [span for path in paths for span in self.clock.units.get(path, [])]
        named = [path for path in paths for _ in self.clock.units.get(path, [])]
        tracks = tracks_of(spans)
        most = most_at_once(spans)
        about = f"{most:,} at once" if most > 1 else "one at a time"
        name = count(len(paths), "unit")
        depth = node.count("/") + 1
        anchor = self.anchors.get(node, "")
        if max(tracks, default=0) >= MOST_TRACKS or len(spans) > MOST_BARS:
            crowd = crowd_of(spans, self.seconds, most)
            return Lane(name, about, depth, anchor, (), 44, crowd, self.seconds)
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
        lane = f"loop {', '.join([*names, '…'] if len(loop) > 3 else names)}"
        bars: list[Bar] = []
        many = -(-len(rounds) // MOST_ROUNDS)
        for number, at in enumerate(range(0, len(rounds), many)):
            found = rounds[at : at + many]
            first, last = found[0], found[-1]
            span = Span(first.span.start, last.span.end, last.span.is_open)
            name = f"round {first.number}"
            if last.number != first.number:
                name = f"rounds {first.number} to {last.number}"
            label = str(first.number) if span.seconds / self.seconds > 0.02 else ""
            state: State = "idle" if number % 2 else "good"
            title = f"{name}: {self._times(span)}"
            bars.append(self._bar("round", state, span, 3, 16, title, label if many == 1 else ""))
        depth = above.count("/") + 1 if above else 0
        about = count(len({each.number for each in rounds}), "round")
        return Lane(lane, about, depth, "", bars, 22, weight=self.seconds, is_loop=True)

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
