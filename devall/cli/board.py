"""What a run looks like at this moment, kept up to date by its events; draws nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from devall.core.events import (
    Event,
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
    RunStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    UnitFailed,
    UnitFinished,
    UnitStarted,
)
from devall.core.messages import JsonValue
from devall.core.outcome import Outcome

State = Literal["waiting", "running", "asking", "done", "failed", "skipped"]

_TAIL = 4000
"""Characters of streaming text that are kept: what is shown is the end of it."""


@dataclass(slots=True)
class Call:
    """A tool call that is under way."""

    tool: str
    arguments: JsonValue
    began: float
    progress: str = ""


@dataclass(slots=True)
class Visit:
    """A run of a node that is under way."""

    node: str
    number: int
    began: float
    turn: int = 0
    model: str = ""
    note: str = ""
    """Why it waits: a failed attempt that will be repeated."""
    question: str = ""
    tail: str = ""
    """The end of the text that streams in."""
    unit: str = ""
    """Path of the unit whose model was asked last; the text is that unit's."""
    calls: dict[str, Call] = field(default_factory=dict[str, Call])
    units: int = 0
    """How many units of a dynamic edge it runs for; of a tree, in the layer under way."""
    units_done: int = 0
    layer: int = 0
    """Of a tree, from 1."""

    def begin_unit(self, event: UnitStarted) -> None:
        """Take in that a unit begins: the first of a layer begins the layer."""
        if event.layer != self.layer or not self.units:
            self.layer, self.units, self.units_done = event.layer, event.units, 0

    def say(self, text: str) -> None:
        """Add a piece of streaming text."""
        self.tail += text
        if len(self.tail) > 2 * _TAIL:
            self.tail = self.tail[-_TAIL:]


@dataclass(slots=True)
class Board:
    """The run as it stands; an instance is itself the sink."""

    run_id: str = ""
    workflow: str = ""
    began: float = 0
    nodes: dict[str, State] = field(default_factory=dict[str, State])
    """Nodes of the root graph in file order, then others as they turn up (`S/X`)."""
    root: tuple[str, ...] = ()
    """Nodes of the root graph."""
    visits: dict[str, Visit] = field(default_factory=dict[str, Visit])
    """Runs under way, by logical path, in the order in which they began."""
    loops: dict[str, tuple[tuple[str, ...], int]] = field(
        default_factory=dict[str, tuple[tuple[str, ...], int]]
    )
    """Loops under way: their nodes and the round, by graph and nodes."""
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    outcome: Outcome | None = None

    def __call__(self, event: Event, /) -> None:
        """Take the event in."""
        match event:
            case TextDelta():
                visit = self._visit(event.path)
                if visit and visit.unit == event.path:
                    visit.say(event.text)
            case NodeStarted():
                self.nodes[event.node] = "running"
                self.visits[event.path] = Visit(event.node, event.visit, event.at)
            case NodeFinished():
                self._end(event.path, event.node, "done")
            case NodeFailed():
                self._end(event.path, event.node, "failed")
            case NodeSkipped():
                self.nodes[event.node] = "skipped"
            case LoopRound():
                self.loops[_loop_key(event.path, event.loop)] = event.loop, event.round
            case LoopLeft():
                self.loops.pop(_loop_key(event.path, event.loop), None)
            case RunStarted():
                self.run_id, self.workflow, self.began = event.run_id, event.workflow, event.at
                self.root, self.nodes = event.nodes, dict.fromkeys(event.nodes, "waiting")
            case RunFinished():
                self.outcome = event.outcome
                self.visits.clear()
                self.loops.clear()
            case _:
                self._take_call(event)

    def of(self, *states: State) -> list[str]:
        """The nodes in one of these states."""
        return [node for node, state in self.nodes.items() if state in states]

    def _take_call(self, event: Event) -> None:
        visit = self._visit(event.path)
        match event:
            case ModelCallStarted():
                self.model_calls += 1
                if visit:
                    visit.turn, visit.model, visit.unit = event.turn, event.model, event.path
                    visit.note = visit.tail = ""
            case ModelCallFinished():
                if event.usage is not None:
                    self.input_tokens += event.usage.input_tokens
                    self.output_tokens += event.usage.output_tokens
                if visit and visit.unit == event.path:
                    visit.tail = ""
            case ModelCallFailed():
                if visit:
                    again = f"again in {event.wait:.1f} s: " if event.wait is not None else ""
                    visit.note, visit.tail = again + event.message, ""
            case HumanAsked():
                self.nodes[event.node] = "asking"
                if visit:
                    visit.question = event.question
            case HumanAnswered():
                self.nodes[event.node] = "running"
                if visit:
                    visit.question = ""
            case _:
                self._take_part(event, visit)

    def _take_part(self, event: Event, visit: Visit | None) -> None:
        match event:
            case ToolCallStarted():
                self.tool_calls += 1
                if visit:
                    call = Call(event.tool, event.arguments, event.at)
                    visit.calls[event.call_id] = call
            case ToolProgress():
                if visit and (call := visit.calls.get(event.call_id)):
                    total = f"/{event.total:g}" if event.total else ""
                    call.progress = f"{event.progress:g}{total} {event.message}".strip()
            case ToolCallFinished():
                if visit:
                    visit.calls.pop(event.call_id, None)
            case UnitStarted():
                if visit:
                    visit.begin_unit(event)
            case UnitFinished() | UnitFailed():
                if visit:
                    visit.units_done += 1
            case _:
                pass

    def _visit(self, path: str) -> Visit | None:
        """The run of a node that a call belongs to; that of a unit is its node's."""
        return self.visits.get(path) or self.visits.get(path.rpartition("/unit:")[0])

    def _end(self, path: str, node: str, state: State) -> None:
        self.visits.pop(path, None)
        is_running = any(visit.node == node for visit in self.visits.values())
        self.nodes[node] = "running" if is_running else state


def _loop_key(path: str, loop: tuple[str, ...]) -> str:
    return "\0".join((path, *loop))
