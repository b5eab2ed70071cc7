"""What a run shares, and what one node's run sees of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from devall.core.events import Event, ModelCallFailed, ModelCallFinished, Sink, Warned
from devall.core.messages import JsonValue, Message
from devall.core.ports import CallKind, NodeResult, StepKind
from devall.core.usage import Estimate
from devall.engine.freshness import NO_CUTS, Cuts
from devall.engine.ledger import Ledger
from devall.engine.limits import Deadline, Meter, Price
from devall.engine.steps import Effect, take_step
from devall.graph.model import Plan
from devall.journal.base import Journal, Step, fingerprint

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
    """What model calls cost; None: nobody knows."""
    ledger: Ledger = field(default_factory=Ledger)
    """Sums what is used."""
    unpriced: set[str] = field(default_factory=set[str])
    """Models of which it was said that their price is unknown."""
    redact: Callable[[JsonValue], JsonValue] | None = None
    """Takes secrets out of what steps are known by; None: there are none."""
    cuts: Cuts = NO_CUTS
    """From where on the journal's steps do not count."""
    hidden: frozenset[str] = frozenset()
    """Nodes inside of subgraphs whose words must not stand in logs, beside those that say so
    themselves."""
    nodes: dict[str, NodeSummary] = field(default_factory=dict[str, NodeSummary])
    """By name: a node's id, `S/X` in a subgraph."""
    warnings: list[str] = field(default_factory=list[str])
    """What a user should know, though the run goes on."""

    def emit(self, event: Event) -> None:
        """Tell all sinks; warnings are kept."""
        if isinstance(event, Warned):
            where = f"node {event.node}: " if event.node else ""
            self.warnings.append(where + event.message)
        self.ledger.note(event)
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
    since: int = 0
    """The epoch from which on the journal's steps count; a graph inside may raise it."""

    def emit(self, event: Event) -> None:
        """Tell whoever listens; what a model call used is priced and counted on the way."""
        if not isinstance(event, ModelCallFinished | ModelCallFailed):
            self.run.emit(event)
            return
        event = self._priced(event)
        self.run.emit(event)
        for meter in self.meters:
            meter.note(event)
        self._warn_of_bounds()

    def _priced(self, event: ModelCallFinished | ModelCallFailed) -> Event:
        """The event with what the call cost, where that is known."""
        price = self.run.price
        if price is None or event.usage is None or event.usd is not None:
            return event
        usd = price(event.provider, event.model, event.usage)
        if usd is None and isinstance(event, ModelCallFinished) and event.answered_by:
            # A deployment's own name says nothing; the endpoint names the model behind it.
            usd = price(event.provider, event.answered_by, event.usage)
        if usd is not None:
            return replace(event, usd=usd)
        bounded = any(meter.limits.max_usd is not None for meter in self.meters)
        if bounded and event.model not in self.run.unpriced:
            self.run.unpriced.add(event.model)
            text = f"model {event.model}: its price is unknown, `max_usd` cannot hold for it"
            self.run.emit(Warned(path=self.path, code="unknown_price", message=text))
        return event

    def _warn_of_bounds(self) -> None:
        for meter in self.meters:
            for text in meter.news():
                self._warn("limit_near", text)

    def _warn(self, code: str, text: str) -> None:
        self.run.emit(Warned(path=self.path, code=code, message=text, node=self.node))

    async def step(
        self,
        kind: StepKind,
        name: str,
        request: JsonValue,
        call: Effect,
        in_doubt: Effect | None = None,
    ) -> JsonValue:
        """The value of an effect, made at most once for each path and request."""
        mark = fingerprint(request, self.run.redact)
        step = Step(f"{self.path}/{name}", kind, request, mark, self.since)
        return await take_step(self.run.journal, step, call, in_doubt)

    def allow(self, kind: CallKind, estimate: Estimate | None = None) -> None:
        """Check the limits of the node, its graphs and the run before a call.

        Raises:
            LimitReached: the call would go over one of them.
        """
        usd, price = 0.0, self.run.price
        if (
            estimate is not None
            and price is not None
            and any(meter.limits.max_usd is not None for meter in self.meters)
        ):
            usd = price(estimate.provider, estimate.model, estimate.usage) or 0.0
        for meter in self.meters:
            meter.allow(kind, self.path, estimate, usd)
        self._warn_of_bounds()

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

    def unit(self, name: str) -> NodeScope:
        """The scope of one unit of a dynamic edge; `name` is the last piece of its path."""
        return replace(self, path=f"{self.path}/{name}")
