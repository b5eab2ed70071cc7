"""When things really happened in a run, whichever of its processes did them.

A process that goes on with a run tells again what was done before it, in no time. So each
thing is looked for in the process that did it, and the time between two processes, in which
nothing happened, is left out of the axis and told as a pause.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from devall.core.events import (
    Event,
    HumanAnswered,
    HumanAsked,
    LoopLeft,
    LoopRound,
    ModelCallDelayed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    RunResumed,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
    UnitFailed,
    UnitFinished,
    UnitStarted,
)
from devall.core.ids import node_of

Key = TypeVar("Key")
Value = TypeVar("Value")

Call = tuple[str, int]
"""A model call: the path of its conversation, its turn."""
Use = tuple[str, str]
"""A tool call: the path of the conversation, the call's id."""
Loop = tuple[str, tuple[str, ...]]
"""A loop: the path of its graph's run, its nodes."""


@dataclass(slots=True)
class Span:
    """A piece of time, in seconds of the clock."""

    start: float
    end: float
    is_open: bool = True
    """Whether it had no end when its process had."""
    has_failed: bool = False

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Round:
    """One round of a loop."""

    number: int
    span: Span


@dataclass(frozen=True, slots=True)
class Process:
    """One process at the run."""

    began: float
    """Seconds since the epoch."""
    ended: float
    offset: float
    """When it began, on the clock."""


@dataclass(slots=True)
class Clock:
    """The times of a run; by path, in seconds from its beginning."""

    processes: list[Process] = field(default_factory=list[Process])
    visits: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])
    units: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])
    calls: dict[Call, list[Span]] = field(default_factory=dict[Call, list[Span]])
    """Each attempt by itself."""
    waits: dict[Call, list[Span]] = field(default_factory=dict[Call, list[Span]])
    """Before a call was made, or made again."""
    uses: dict[Use, list[Span]] = field(default_factory=dict[Use, list[Span]])
    humans: dict[str, list[Span]] = field(default_factory=dict[str, list[Span]])
    rounds: dict[Loop, list[Round]] = field(default_factory=dict[Loop, list[Round]])
    sent: dict[Call, ModelCallStarted] = field(default_factory=dict[Call, ModelCallStarted])
    """What was sent when the call was really made."""

    @property
    def seconds(self) -> float:
        """How long the processes took together."""
        last = self.processes[-1:]
        return last[0].offset + last[0].ended - last[0].began if last else 0

    @property
    def pauses(self) -> list[tuple[float, float]]:
        """Between processes: when on the clock, and how many seconds."""
        return [
            (after.offset, after.began - before.ended)
            for before, after in zip(self.processes, self.processes[1:], strict=False)
        ]


def clock_of(events: Iterable[Event], until: float | None = None) -> Clock:
    """The times of a run.

    Args:
        events: All of its events.
        until: Now, of a run that still goes on; None: nothing was after its last event.
    """
    turns: list[list[Event]] = []
    for event in events:
        if isinstance(event, RunStarted) or not turns:
            turns.append([])
        turns[-1].append(event)
    clock = Clock()
    undone = _undone(turns)
    for number, (turn, again) in enumerate(zip(turns, undone, strict=True), 1):
        began, ended = turn[0].at, max(each.at for each in turn)
        if until is not None and number == len(turns):
            ended = max(ended, until)
        process = Process(began, ended, clock.seconds)
        clock.processes.append(process)
        reading = _Reading(clock, process, again)
        for event in turn:
            reading.take(event)
        reading.close()
    return clock


def _undone(turns: Sequence[Sequence[Event]]) -> list[set[str]]:
    """For each process the nodes that a later one did anew."""
    found: list[set[str]] = []
    later: set[str] = set()
    for turn in reversed(turns):
        found.append(set(later))
        for event in turn[:2]:
            if isinstance(event, RunResumed):
                later |= {*event.changed, *event.following}
    return found[::-1]


class _Reading:
    """Takes in the events of one process."""

    def __init__(self, clock: Clock, process: Process, undone: set[str]) -> None:
        self._clock = clock
        self._process = process
        self._undone = undone
        self._visits: dict[str, Span] = {}
        self._units: dict[str, Span] = {}
        self._calls: dict[Call, Span] = {}
        self._uses: dict[Use, Span] = {}
        self._humans: dict[str, Span] = {}
        self._rounds: dict[Loop, Round] = {}
        self._told: dict[Loop, int] = {}
        """Rounds that this process has told of."""
        self._known = {
            loop: sum(not each.span.is_open for each in rounds)
            for loop, rounds in clock.rounds.items()
        }
        """Rounds that were over before it."""

    def take(self, event: Event) -> None:
        """Take the next event in."""
        at, path, clock = self._at(event.at), event.path, self._clock
        match event:
            case NodeStarted():
                self._begin(self._visits, clock.visits, path, at)
            case NodeFinished() | NodeFailed():
                self._end(self._visits, path, at, isinstance(event, NodeFailed))
            case UnitStarted():
                self._begin(self._units, clock.units, path, at)
            case UnitFinished() | UnitFailed():
                self._end(self._units, path, at, isinstance(event, UnitFailed))
            case ToolCallStarted():
                self._begin(self._uses, clock.uses, (path, event.call_id), at)
            case ToolCallFinished():
                self._end(self._uses, (path, event.call_id), at, event.is_error)
            case HumanAsked():
                self._begin(self._humans, clock.humans, path, at)
            case HumanAnswered():
                self._end(self._humans, path, at, False)
            case LoopRound() | LoopLeft():
                self._take_round(event, at)
            case _:
                self._take_call(event, at)

    def close(self) -> None:
        """End everything with the process, and forget what is not so any more."""
        ended = self._at(self._process.ended)
        opened = (self._visits, self._units, self._calls, self._uses, self._humans)
        spans = [span for each in opened for span in each.values()]
        for span in [*spans, *(each.span for each in self._rounds.values())]:
            span.end = ended
        if self._undone:
            self._forget()

    def _at(self, at: float) -> float:
        """A moment on the clock; a wall clock that was set back takes nothing back."""
        inside = min(max(at, self._process.began), self._process.ended)
        return self._process.offset + inside - self._process.began

    def _take_call(self, event: Event, at: float) -> None:
        clock = self._clock
        match event:
            case ModelCallStarted():
                key = event.path, event.turn
                for wait in clock.waits.get(key, [])[-1:]:
                    wait.end = min(wait.end, at)
                if event.messages or key not in clock.sent:
                    clock.sent[key] = event
                self._begin(self._calls, clock.calls, key, at)
            case ModelCallFailed():
                key = event.path, event.turn
                self._end(self._calls, key, at, True)
                if event.wait is not None:
                    self._wait(key, event.at, event.wait)
            case ModelCallDelayed():
                self._wait((event.path, event.turn), event.at, event.seconds)
            case ModelCallFinished():
                self._end(self._calls, (event.path, event.turn), at, False)
            case _:
                pass

    def _wait(self, key: Call, at: float, seconds: float) -> None:
        span = Span(self._at(at), self._at(at + seconds), is_open=False)
        self._clock.waits.setdefault(key, []).append(span)

    def _begin(
        self, opened: dict[Key, Span], spans: dict[Key, list[Span]], key: Key, at: float
    ) -> None:
        """A span begins, unless an earlier process has done the thing."""
        before = spans.setdefault(key, [])
        is_stated = spans is self._clock.uses  # what a tool said stays, also that it failed
        is_done = any(not span.is_open and (is_stated or not span.has_failed) for span in before)
        if is_done and before[-1].start < self._process.offset:
            return
        opened[key] = Span(at, at)
        before.append(opened[key])

    def _end(self, opened: dict[Key, Span], key: Key, at: float, has_failed: bool) -> None:
        if (span := opened.pop(key, None)) is not None:
            span.end, span.is_open, span.has_failed = at, False, has_failed

    def _take_round(self, event: LoopRound | LoopLeft, at: float) -> None:
        loop = event.path, event.loop
        if (before := self._rounds.pop(loop, None)) is not None:
            before.span.end, before.span.is_open = at, False
        if not isinstance(event, LoopRound):
            return
        self._told[loop] = self._told.get(loop, 0) + 1
        if self._told[loop] > self._known.get(loop, 0):
            begun = self._rounds[loop] = Round(event.round, Span(at, at))
            self._clock.rounds.setdefault(loop, []).append(begun)

    def _forget(self) -> None:
        """Leave out what a later process did anew."""
        clock = self._clock
        for spans in (clock.visits, clock.units, clock.humans):
            _drop(spans, {path for path in spans if self._is_undone(node_of(path))})
        for spans in (clock.calls, clock.waits):
            _drop(spans, {key for key in spans if self._is_undone(node_of(key[0]))})
        _drop(clock.uses, {key for key in clock.uses if self._is_undone(node_of(key[0]))})
        gone: set[Loop] = set()
        for path, loop in clock.rounds:
            above = node_of(path)
            names = [f"{above}/{name}" if above else name for name in loop]
            if any(map(self._is_undone, names)):
                gone.add((path, loop))
        _drop(clock.rounds, gone)

    def _is_undone(self, node: str) -> bool:
        while node:
            if node in self._undone:
                return True
            node = node.rpartition("/")[0]
        return False


def _drop(spans: dict[Key, list[Value]], keys: set[Key]) -> None:
    for key in keys:
        del spans[key]
