"""What a run looks like at this moment, kept up to date by its events; draws nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from devall.cli.visits import Call, Loop, Visit
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
from devall.core.outcome import Outcome
from devall.core.shape import GraphShape
from devall.core.usage import Usage

State = Literal["waiting", "running", "asking", "done", "failed", "skipped"]


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
    types: dict[str, str] = field(default_factory=dict[str, str])
    """What kinds of nodes they are, `S/X` in subgraphs; empty where it is not known."""
    visits: dict[str, Visit] = field(default_factory=dict[str, Visit])
    """Runs under way, by logical path, in the order in which they began."""
    loops: dict[str, Loop] = field(default_factory=dict[str, Loop])
    """Loops under way, by graph and nodes."""
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    usd: float = 0
    """Dollars of the calls whose price is known."""
    priced_calls: int = 0
    unpriced_calls: int = 0
    """Calls that are over and whose cost is unknown."""
    outcome: Outcome | None = None
    _open: Counter[str] = field(default_factory=Counter[str])
    """Runs of each node that are under way."""
    _sources: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    _targets: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """Nodes of the root graph to those that edges lead from, and to."""
    _takes: dict[type[Event], Callable[[Any], None]] = field(init=False, repr=False, compare=False)
    """What is done with each kind of event; the others change nothing."""

    def __post_init__(self) -> None:
        self._takes = {
            RunStarted: self._begin,
            RunFinished: self._finish,
            NodeStarted: self._start_node,
            NodeFinished: self._end_node,
            NodeFailed: self._end_node,
            NodeSkipped: self._skip_node,
            LoopRound: self._begin_round,
            LoopLeft: self._leave_loop,
            TextDelta: self._say,
            ModelCallStarted: self._ask_model,
            ModelCallFinished: self._hear_model,
            ModelCallFailed: self._fail_model,
            ModelCallDelayed: self._delay_model,
            ToolCallStarted: self._call_tool,
            ToolProgress: self._follow_tool,
            ToolCallFinished: self._end_tool,
            HumanAsked: self._ask_human,
            HumanAnswered: self._hear_human,
            UnitStarted: self._begin_unit,
            UnitFinished: self._end_unit,
            UnitFailed: self._end_unit,
        }

    def __call__(self, event: Event, /) -> None:
        """Take the event in."""
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def of(self, *states: State) -> list[str]:
        """The nodes in one of these states."""
        return [node for node, state in self.nodes.items() if state in states]

    @property
    def usage(self) -> Usage:
        """What was used so far; calls without an answer yet are counted as calls only."""
        is_known = self.priced_calls or not self.unpriced_calls
        return Usage(
            self.model_calls,
            self.tool_calls,
            self.input_tokens,
            self.output_tokens,
            usd=self.usd if is_known else None,
            unpriced_calls=self.unpriced_calls,
        )

    def next(self) -> Iterator[tuple[str, list[str]]]:
        """Nodes of the root graph that wait for some that run, with those that they wait for."""
        seen: set[str] = set()
        for node in [visit.node for visit in self.visits.values()]:
            for target in self._targets.get(node, ()):
                if target not in seen and self.nodes.get(target) == "waiting":
                    seen.add(target)
                    yield target, [s for s in self._sources[target] if self._is_under_way(s)]

    def visit_of(self, path: str) -> Visit | None:
        """The run of a node that a call belongs to; that of a unit is its node's."""
        return self.visits.get(path) or self.visits.get(path.rpartition("/unit:")[0])

    def _is_under_way(self, node: str) -> bool:
        return self.nodes.get(node) in {"running", "asking", "waiting"}

    def _begin(self, event: RunStarted) -> None:
        self.run_id, self.workflow, self.began = event.run_id, event.workflow, event.at
        self.root, self.nodes = event.nodes, dict.fromkeys(event.nodes, "waiting")
        if event.graph is None:
            return
        self.types = dict(_types(event.graph))
        sources: dict[str, list[str]] = {}
        targets: dict[str, list[str]] = {}
        for edge in event.graph.edges:
            sources.setdefault(edge.target, []).append(edge.source)
            if edge.trigger:
                targets.setdefault(edge.source, []).append(edge.target)
        self._sources = {node: tuple(dict.fromkeys(them)) for node, them in sources.items()}
        self._targets = {node: tuple(dict.fromkeys(them)) for node, them in targets.items()}

    def _finish(self, event: RunFinished) -> None:
        self.outcome = event.outcome
        self.visits.clear()
        self.loops.clear()

    def _start_node(self, event: NodeStarted) -> None:
        self.nodes[event.node] = "running"
        self.visits[event.path] = Visit(event.node, event.visit, event.at)
        self._open[event.node] += 1

    def _end_node(self, event: NodeFinished | NodeFailed) -> None:
        node = event.node
        if self.visits.pop(event.path, None) is not None:
            self._open[node] -= 1
        state: State = "done" if isinstance(event, NodeFinished) else "failed"
        self.nodes[node] = "running" if self._open[node] > 0 else state

    def _skip_node(self, event: NodeSkipped) -> None:
        self.nodes[event.node] = "skipped"
        for path, visit in list(self.visits.items()):  # it was begun and had nothing to do
            if visit.node == event.node and path.rpartition("/")[0] == event.path:
                del self.visits[path]
                self._open[event.node] -= 1

    def _begin_round(self, event: LoopRound) -> None:
        key = _loop_key(event.path, event.loop)
        self.loops[key] = Loop(event.loop, event.round, event.bound)

    def _leave_loop(self, event: LoopLeft) -> None:
        self.loops.pop(_loop_key(event.path, event.loop), None)

    def _say(self, event: TextDelta) -> None:
        visit = self.visit_of(event.path)
        if visit and visit.unit == event.path:
            visit.say(event.text)

    def _ask_model(self, event: ModelCallStarted) -> None:
        self.model_calls += 1
        if visit := self.visit_of(event.path):
            visit.turn, visit.model, visit.unit = event.turn, event.model, event.path
            visit.note, visit.tail, visit.until, visit.is_asking = "", "", 0, True

    def _hear_model(self, event: ModelCallFinished) -> None:
        if event.usage is not None:
            self.input_tokens += event.usage.input_tokens
            self.output_tokens += event.usage.output_tokens
        self._pay(event.usd)
        visit = self.visit_of(event.path)
        if visit and visit.unit == event.path:
            visit.tail, visit.is_asking = "", False

    def _fail_model(self, event: ModelCallFailed) -> None:
        if event.usage is not None:
            self.input_tokens += event.usage.input_tokens
            self.output_tokens += event.usage.output_tokens
        self._pay(event.usd)
        if visit := self.visit_of(event.path):
            visit.note, visit.tail, visit.is_asking = event.message, "", False
            visit.until = 0 if event.wait is None else event.at + event.wait

    def _pay(self, usd: float | None) -> None:
        if usd is None:
            self.unpriced_calls += 1
        else:
            self.priced_calls += 1
            self.usd += usd

    def _delay_model(self, event: ModelCallDelayed) -> None:
        if visit := self.visit_of(event.path):
            visit.note = f"{event.model}: its endpoint asked to wait"
            visit.until = event.at + event.seconds

    def _call_tool(self, event: ToolCallStarted) -> None:
        self.tool_calls += 1
        if visit := self.visit_of(event.path):
            visit.calls[event.path, event.call_id] = Call(event.tool, event.arguments, event.at)

    def _follow_tool(self, event: ToolProgress) -> None:
        visit = self.visit_of(event.path)
        if visit and (call := visit.calls.get((event.path, event.call_id))):
            total = f"/{event.total:g}" if event.total else ""
            call.progress = f"{event.progress:g}{total} {event.message}".strip()

    def _end_tool(self, event: ToolCallFinished) -> None:
        if visit := self.visit_of(event.path):
            visit.calls.pop((event.path, event.call_id), None)

    def _ask_human(self, event: HumanAsked) -> None:
        self.nodes[event.node] = "asking"
        if visit := self.visit_of(event.path):
            visit.question = event.question

    def _hear_human(self, event: HumanAnswered) -> None:
        self.nodes[event.node] = "running"
        if visit := self.visit_of(event.path):
            visit.question = ""

    def _begin_unit(self, event: UnitStarted) -> None:
        if visit := self.visit_of(event.path):
            visit.begin_unit(event)

    def _end_unit(self, event: UnitFinished | UnitFailed) -> None:
        if visit := self.visit_of(event.path):
            visit.end_unit(event.path, is_failed=isinstance(event, UnitFailed))


def _types(graph: GraphShape, prefix: str = "") -> Iterator[tuple[str, str]]:
    for node in graph.nodes:
        yield prefix + node.id, node.type
        if node.graph is not None:
            yield from _types(node.graph, f"{prefix}{node.id}/")


def _loop_key(path: str, loop: tuple[str, ...]) -> str:
    return "\0".join((path, *loop))
