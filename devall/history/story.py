"""A run's course, put together from its events: each run of a node, and what happened in it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from devall.core.errors import UsageError
from devall.core.events import (
    EdgeFired,
    Event,
    HistoryCut,
    HumanAnswered,
    HumanAsked,
    LoopLeft,
    LoopRound,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunFinished,
    RunResumed,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
    UnitFailed,
    UnitFinished,
    UnitStarted,
    Warned,
)
from devall.core.messages import Message
from devall.history.events import last_turn

VisitStatus = Literal["completed", "failed", "skipped", "waiting", "cancelled", "unfinished"]


@dataclass(slots=True)
class ModelCall:
    """A request to a model, its attempts together."""

    path: str
    turn: int
    provider: str
    model: str
    attempts: int = 0
    """How often it was sent; 0: its reply came from the journal."""
    failures: list[ModelCallFailed] = field(default_factory=list[ModelCallFailed])
    started: ModelCallStarted | None = None
    """Its first attempt, which tells what was sent; None: its reply came from the journal."""
    finished: ModelCallFinished | None = None

    @property
    def key(self) -> str:
        """Its step in the journal."""
        return f"{self.path}/turn:{self.turn}"


@dataclass(slots=True)
class ToolUse:
    """A call of a tool."""

    started: ToolCallStarted
    turn: int
    finished: ToolCallFinished | None = None


@dataclass(slots=True)
class Question:
    """A question to a human."""

    path: str
    text: str
    answer: str | None = None


@dataclass(slots=True)
class Unit:
    """One unit of a dynamic edge."""

    started: UnitStarted
    ended: UnitFinished | UnitFailed | None = None


Happening = ModelCall | ToolUse | Question | Warned | HistoryCut


@dataclass(slots=True)
class Visit:
    """One run of a node."""

    path: str
    node: str
    number: int
    """From 1."""
    started: NodeStarted = field(repr=False)
    ended: NodeFinished | NodeFailed | None = None
    is_idle: bool = False
    """Whether it was begun and there was nothing to do: no unit of a dynamic edge."""
    happenings: list[Happening] = field(default_factory=list[Happening])
    fired: list[EdgeFired] = field(default_factory=list[EdgeFired])
    units: dict[str, Unit] = field(default_factory=dict[str, Unit])
    """Its units by path, in the order in which they began."""

    @property
    def inputs(self) -> tuple[Message, ...]:
        """What it saw."""
        return self.started.inputs

    @property
    def began(self) -> float:
        """When it began."""
        return self.started.at

    @property
    def graph(self) -> str:
        """The path of the graph's run that it is in: empty for the root's."""
        return self.path.rpartition("/")[0]

    @property
    def name(self) -> str:
        """The node, with the number of the run where it is not the first."""
        return self.node if self.number == 1 else f"{self.node}@{self.number}"

    @property
    def outputs(self) -> tuple[Message, ...]:
        """What it said."""
        return self.ended.outputs if isinstance(self.ended, NodeFinished) else ()

    @property
    def failure(self) -> NodeFailed | None:
        """Why it failed, if it did."""
        return self.ended if isinstance(self.ended, NodeFailed) else None

    @property
    def calls(self) -> list[ModelCall]:
        """Its requests to models."""
        return [each for each in self.happenings if isinstance(each, ModelCall)]

    @property
    def tools(self) -> list[ToolUse]:
        """Its calls of tools."""
        return [each for each in self.happenings if isinstance(each, ToolUse)]


@dataclass(slots=True)
class Story:
    """The course of a run."""

    events: list[Event]
    """Those of the last process at it, which tells all."""
    started: RunStarted | None = None
    resumed: RunResumed | None = None
    finished: RunFinished | None = None
    visits: dict[str, Visit] = field(default_factory=dict[str, Visit])
    """By path, in the order in which they began."""
    skipped: list[NodeSkipped] = field(default_factory=list[NodeSkipped])
    took: dict[str, float] = field(default_factory=dict[str, float])
    """Seconds of runs of nodes that an earlier process did, by path."""

    def visit_of(self, path: str) -> Visit | None:
        """The run of a node that a logical path lies in."""
        while path and path not in self.visits:
            path = path.rpartition("/")[0]
        return self.visits.get(path)

    def status(self, visit: Visit) -> VisitStatus:
        """How the run of a node ended."""
        if isinstance(visit.ended, NodeFinished):
            return "completed"
        if visit.ended is not None:
            return "failed"
        if visit.is_idle:
            return "skipped"
        if self.finished is None:
            return "unfinished"
        waits = any(_is_in(path, visit.path) for path, _ in self.finished.outcome.waiting)
        return "waiting" if waits else "cancelled"

    def seconds(self, visit: Visit) -> float | None:
        """How long the run of a node took, when it was really done; None: it is not over."""
        if visit.ended is None:
            return None
        return max(self.took.get(visit.path, 0), visit.ended.seconds)

    def of_node(self, node: str) -> list[Visit]:
        """The runs of a node, in the order in which they began."""
        return [visit for visit in self.visits.values() if visit.node == node]

    @property
    def nodes(self) -> list[str]:
        """The nodes that are known of: those of the root graph, and those inside that began."""
        known = list(self.started.nodes) if self.started is not None else []
        known += [visit.node for visit in self.visits.values()]
        known += [event.node for event in self.skipped]
        return list(dict.fromkeys(known))

    @property
    def loops(self) -> Iterator[LoopRound | LoopLeft]:
        """The rounds of loops and their ends, in order."""
        return (each for each in self.events if isinstance(each, LoopRound | LoopLeft))


def story_of(events: Iterable[Event]) -> Story:
    """The course of a run from its events, those of earlier processes included."""
    every = list(events)
    telling = _Telling(Story(last_turn(every)))
    for event in telling.story.events:
        telling.take(event)
    story = telling.story
    if story.resumed is not None:
        for event in every:
            if isinstance(event, NodeFinished) and event.path in telling.replayed:
                story.took[event.path] = max(story.took.get(event.path, 0), event.seconds)
    return story


@dataclass(slots=True)
class _Telling:
    """A story in the making."""

    story: Story
    replayed: set[str] = field(default_factory=set[str])
    """Paths of runs of nodes whose calls were not made in this turn."""
    _calls: dict[tuple[str, int], ModelCall] = field(
        default_factory=dict[tuple[str, int], ModelCall]
    )
    _tools: dict[tuple[str, str], ToolUse] = field(default_factory=dict[tuple[str, str], ToolUse])
    _begun: dict[tuple[str, str], Visit] = field(default_factory=dict[tuple[str, str], Visit])
    """By graph's run and node: the newest run of the node."""

    def take(self, event: Event) -> None:
        """Take the next event in."""
        story = self.story
        match event:
            case RunStarted():
                story.started = event
            case RunResumed():
                story.resumed = event
            case RunFinished():
                story.finished = event
            case NodeStarted():
                visit = Visit(event.path, event.node, event.visit, event)
                story.visits[event.path] = self._begun[visit.graph, visit.node] = visit
            case NodeSkipped():
                newest = self._begun.get((event.path, event.node))
                if newest is not None and newest.ended is None:
                    newest.is_idle = True
                else:
                    story.skipped.append(event)
            case EdgeFired():
                if (source := self._begun.get((event.path, event.source))) is not None:
                    source.fired.append(event)
            case _:
                if (visit := story.visit_of(event.path)) is not None:
                    self._take_of(visit, event)

    def _take_of(self, visit: Visit, event: Event) -> None:
        """Take in what happened within a run of a node."""
        match event:
            case NodeFinished() | NodeFailed():
                visit.ended = event
            case ModelCallStarted() | ModelCallFailed() | ModelCallFinished():
                self._take_call(visit, event)
            case ToolCallStarted():
                turn = max((c.turn for c in visit.calls if c.path == event.path), default=0)
                use = self._tools[event.path, event.call_id] = ToolUse(event, turn)
                visit.happenings.append(use)
            case ToolCallFinished():
                if (use := self._tools.get((event.path, event.call_id))) is not None:
                    use.finished = event
            case HumanAsked():
                visit.happenings.append(Question(event.path, event.question))
            case HumanAnswered():
                for each in reversed(visit.happenings):
                    if isinstance(each, Question) and each.path == event.path:
                        each.answer = event.answer
                        break
            case Warned() | HistoryCut():
                visit.happenings.append(event)
            case UnitStarted():
                visit.units[event.path] = Unit(event)
            case UnitFinished() | UnitFailed():
                if (unit := visit.units.get(event.path)) is not None:
                    unit.ended = event
            case _:
                pass

    def _take_call(
        self, visit: Visit, event: ModelCallStarted | ModelCallFailed | ModelCallFinished
    ) -> None:
        key = event.path, event.turn
        call = self._calls.get(key)
        if call is None:
            call = ModelCall(event.path, event.turn, event.provider, event.model)
            self._calls[key] = call
            visit.happenings.append(call)
        match event:
            case ModelCallStarted():
                call.attempts = max(call.attempts + 1, event.attempt)
                call.started = call.started or event
            case ModelCallFailed():
                call.failures.append(event)
            case ModelCallFinished():
                call.finished = event
                if event.replayed:
                    self.replayed.add(visit.path)


def named(name: str, known: Collection[str]) -> tuple[list[str], int | None]:
    """The nodes of a name (`S/X`, or `X` wherever it is), and the run that `X@2` asks for.

    Raises:
        UsageError: there is no such node.
    """
    if found := _matching(name, known):
        return found, None
    stem, at, number = name.rpartition("@")
    if at and number.isdigit() and (found := _matching(stem, known)):
        return found, int(number)
    near = difflib.get_close_matches(stem or name, known, 1)
    raise UsageError(
        f"there is no node {name} in the run",
        hint=f"did you mean {near[0]}?" if near else f"nodes: {', '.join(known) or 'none'}",
    )


def _matching(name: str, known: Collection[str]) -> list[str]:
    return [name] if name in known else [each for each in known if each.endswith(f"/{name}")]


def _is_in(path: str, place: str) -> bool:
    return path == place or path.startswith(f"{place}/")
