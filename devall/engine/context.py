"""What a run shares, and what one node's run sees of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from devall.core.events import Event, Sink, Warned
from devall.core.messages import JsonValue, Message
from devall.core.ports import CallKind, NodeResult, StepKind
from devall.engine.limits import Deadline, Meter, Price
from devall.engine.steps import take_step
from devall.graph.model import Plan
from devall.journal.base import Journal

NodeStatus = Literal["completed", "skipped", "failed", "running", "waiting", "cancelled"]


@dataclass(slots=True)
class NodeSummary:
    """How often a node ran, and how that went."""

    runs: int = 0
    """Runs that were begun; each unit of a dynamic edge counts."""
    status: NodeStatus = "skipped"


class Executor(Protocol):
    """The code of one node; one object for each run of a graph, which may hold state."""

    async def run(self, scope: NodeScope, inputs: Sequence[Message], /) -> NodeResult:
        """Do the node's work once."""
        ...


class EdgeRule(Protocol):
    """The condition and the processing of one edge."""

    @property
    def immediate(self) -> bool:
        """Whether a call never waits for anything."""
        ...

    async def __call__(self, message: Message, /) -> Message | None:
        """The message as it goes along the edge; None: the edge does not fire."""
        ...


@dataclass(frozen=True, slots=True)
class Parts:
    """The code of one graph: executors by node, rules by edge (None: always, unchanged)."""

    executors: tuple[Executor, ...]
    immediate: tuple[bool, ...]
    """For each node, whether its executor never waits for anything."""
    rules: tuple[EdgeRule | None, ...]
    closers: tuple[Callable[[], Awaitable[None]], ...] = ()
    """What the executors want done when the graph's run is over."""


@dataclass(slots=True, eq=False)
class Run:
    """What all graphs of one run share."""

    journal: Journal
    assemble: Callable[[Plan, str], Parts]
    """Makes the code of a graph; the text is the prefix of its nodes' names."""
    start_graph: Callable[[Run, Plan, NodeScope, Sequence[Message]], Awaitable[Sequence[Message]]]
    """Runs a graph inside of a node's run; gives the outputs of its end node."""
    sinks: tuple[Sink, ...] = ()
    """Who is told of events; warnings are kept even if there is nobody."""
    price: Price | None = None
    """What model calls cost, for limits on money."""
    nodes: dict[str, NodeSummary] = field(default_factory=dict[str, NodeSummary])
    """By name: a node's id, `S/X` in a subgraph."""
    warnings: list[str] = field(default_factory=list[str])
    """What a user should know, though the run goes on."""

    def emit(self, event: Event) -> None:
        """Tell all sinks; warnings are kept."""
        if isinstance(event, Warned):
            where = f"node {event.node}: " if event.node else ""
            self.warnings.append(where + event.message)
        for sink in self.sinks:
            sink(event)


@dataclass(slots=True, eq=False)
class NodeScope:
    """One run of a node, as its executor sees it (the port `Scope`).

    Nobody changes one; it is not frozen, since there is one for each run of a node.
    """

    run: Run
    node: str
    path: str
    meters: tuple[Meter, ...]
    deadlines: tuple[Deadline, ...] = ()

    def emit(self, event: Event) -> None:
        """Tell whoever listens; usage is counted on the way."""
        for meter in self.meters:
            unpriced = len(meter.unpriced)
            meter.note(event)
            if len(meter.unpriced) > unpriced:
                text = "a model's price is unknown: `max_usd` cannot hold for it"
                self.run.emit(
                    Warned(path=self.path, code="unknown_price", message=text, node=self.node)
                )
        self.run.emit(event)

    async def step(
        self,
        kind: StepKind,
        name: str,
        request: JsonValue,
        call: Callable[[], Awaitable[JsonValue]],
    ) -> JsonValue:
        """The value of an effect, made at most once for each path and request."""
        return await take_step(self.run.journal, f"{self.path}/{name}", kind, request, call)

    def allow(self, kind: CallKind, tokens: int = 0) -> None:
        """Check the limits of the node, its graphs and the run before a call.

        Raises:
            LimitReached: the call would go over one of them.
        """
        for meter in self.meters:
            meter.allow(kind, tokens)

    @contextmanager
    def waiting_for_human(self) -> Generator[None]:
        """A block during which no time limit of this run, its graphs and nodes goes on."""
        with ExitStack() as stack:
            for deadline in self.deadlines:
                stack.enter_context(deadline.held())
            yield

    async def run_graph(self, plan: Plan, task: Sequence[Message]) -> Sequence[Message]:
        """The outputs of a graph that runs inside of this node's run."""
        return await self.run.start_graph(self.run, plan, self, task)

    def unit(self, number: int, layer: int = 0) -> NodeScope:
        """The scope of one unit of a dynamic edge (from 1), in a layer of a tree (from 1)."""
        name = f"unit:{layer}.{number}" if layer else f"unit:{number}"
        return replace(self, path=f"{self.path}/{name}")
