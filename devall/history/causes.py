"""Why a node ran, was skipped or has not run: its in-edges, what it waited for, its loops."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from devall.core.events import (
    EdgeFired,
    Event,
    LoopLeft,
    LoopRound,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
)
from devall.core.messages import Message
from devall.graph.model import Plan, PlanEdge
from devall.history.story import Story, Visit, VisitStatus
from devall.history.verdicts import Verdicts

Fate = Literal["ran", "skipped", "not run"]


@dataclass(frozen=True, slots=True)
class Firing:
    """What became of an edge at one run of its source."""

    visit: int
    """Which run of the source."""
    path: str
    fired: int
    """How often: once for each output that went along it; 0: not at all."""
    outputs: int
    """How many outputs there were."""
    reasons: tuple[str, ...]
    """What decided it, for each output."""


@dataclass(frozen=True, slots=True)
class InEdge:
    """An edge into the node."""

    edge: int
    """Position in the file's list of edges, from 0."""
    source: str
    target: str
    condition: str
    """In words; empty: always."""
    trigger: bool
    firings: tuple[Firing, ...]
    source_state: str
    """How its source stood at the end: `completed`, `skipped`, `has not run` and so on."""


@dataclass(frozen=True, slots=True)
class Cause:
    """Why one run of a node began."""

    visit: Visit
    triggers: tuple[str, ...]
    """What triggered it, in the order in which it came."""
    waited_for: tuple[str, ...]
    rounds: tuple[str, ...]
    """Of the loops that it lies in, the outermost first."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a node fared as it did, within one run of its graph."""

    node: str
    graph: str
    """Logical path of the graph's run; empty: the root's."""
    fate: Fate
    summary: str
    causes: tuple[Cause, ...]
    edges: tuple[InEdge, ...]
    loops: tuple[str, ...]
    """How the loops that it lies in ended."""


@dataclass(slots=True)
class Explainer:
    """Explains the nodes of one run."""

    story: Story
    plan: Plan
    """Of the root graph."""
    verdicts: Verdicts
    is_alive: bool = False

    def explain(self, node: str, newest: int | None = None) -> list[Explanation]:
        """Why the node fared as it did, for each run of the graph that it is in.

        Args:
            node: Its name.
            newest: Only for so many runs of the graph, the newest ones; None = all.
        """
        plan, prefix = self._plan_of(node)
        if plan is None:
            return []
        local = node.removeprefix(prefix)
        graphs = self._graphs(prefix)
        graphs = graphs if newest is None else graphs[-newest:]
        return [self._explain(node, local, prefix, graph, plan) for graph in graphs]

    def _plan_of(self, node: str) -> tuple[Plan | None, str]:
        """The plan that a node stands in, and the prefix of the names of its nodes."""
        plan, prefix = self.plan, ""
        while True:
            rest = node.removeprefix(prefix)
            if any(each.id == rest for each in plan.nodes):
                return plan, prefix
            inner = [name for name in plan.subplans if rest.startswith(f"{name}/")]
            if not inner:
                return None, prefix
            plan, prefix = plan.subplans[inner[0]], f"{prefix}{inner[0]}/"

    def _graphs(self, prefix: str) -> list[str]:
        """The runs of the graph, by path."""
        if not prefix:
            return [""]
        owner = prefix.removesuffix("/")
        units = [
            visit.graph
            for visit in self.story.visits.values()
            if visit.node.startswith(prefix) and "/" not in visit.node.removeprefix(prefix)
        ]
        units += [
            each.path
            for each in self.story.skipped
            if each.node.startswith(prefix) and "/" not in each.node.removeprefix(prefix)
        ]
        begun = [visit.path for visit in self.story.of_node(owner)]
        return list(dict.fromkeys(units)) or begun

    def _explain(self, node: str, local: str, prefix: str, graph: str, plan: Plan) -> Explanation:
        index = next(each.index for each in plan.nodes if each.id == local)
        visits = [v for v in self.story.of_node(node) if v.graph == graph]
        edges = tuple(
            self._edge(plan.edges[at], prefix, graph) for at in plan.nodes[index].in_edges
        )
        causes = tuple(self._causes(visits, index, plan, prefix))
        ran = [cause for cause in causes if not cause.visit.is_idle]
        is_skipped = bool(causes) or self._is_skipped(node, graph)
        fate: Fate = "ran" if ran else "skipped" if is_skipped else "not run"
        loops = tuple(self._loop_ends(local, graph, plan, prefix))
        return Explanation(
            node,
            graph,
            fate,
            self._summary(fate, index, plan, edges, causes),
            causes,
            edges,
            loops,
        )

    def _summary(
        self,
        fate: Fate,
        index: int,
        plan: Plan,
        edges: tuple[InEdge, ...],
        causes: tuple[Cause, ...],
    ) -> str:
        node = plan.nodes[index].id
        if fate == "ran":
            times = len(causes)
            return f"{node} ran once" if times == 1 else f"{node} ran {times} times"
        if causes:
            return f"{node} was begun and had nothing to do: its dynamic edge gave no unit"
        if not edges and index not in plan.starts:
            return f"{node} never runs: it is no start node, and no edge leads to it"
        fired = [edge for edge in edges if any(each.fired for each in edge.firings)]
        triggered = [edge for edge in fired if edge.trigger]
        if fate == "skipped" and not fired:
            return f"{node} was skipped: no edge into it fired"
        if fate == "skipped" and not triggered:
            names = ", ".join(f"{edge.source} -> {edge.target}" for edge in fired)
            return f"{node} was skipped: {names} fired, but does not trigger (`trigger: false`)"
        if fate == "skipped":
            return f"{node} was skipped in that round, and was not reached again"
        return self._not_run(node, edges, triggered)

    def _not_run(self, node: str, edges: tuple[InEdge, ...], triggered: list[InEdge]) -> str:
        open_sources = list(
            dict.fromkeys(
                f"{edge.source} ({edge.source_state})"
                for edge in edges
                if edge.source_state not in {"completed", "skipped"}
            )
        )
        if self.story.finished is None:
            how = "has not run yet" if self.is_alive else "had not run when the run broke off"
        else:
            status = self.story.finished.outcome.status.replace("_", " ")
            how = f"has not run: the run ended ({status}) before its turn"
        if open_sources:
            return f"{node} {how}; it waits for {', '.join(open_sources)}"
        if triggered:
            names = ", ".join(f"{edge.source} -> {edge.target}" for edge in triggered)
            return f"{node} {how}, though {names} had triggered it"
        return f"{node} {how}"

    def _edge(self, edge: PlanEdge, prefix: str, graph: str) -> InEdge:
        source = prefix + edge.config.from_
        visits = [v for v in self.story.of_node(source) if v.graph == graph]
        firings = [self._firing(visit, edge) for visit in visits]
        return InEdge(
            edge.index,
            source,
            prefix + edge.config.to,
            self.verdicts.condition(edge),
            edge.config.trigger,
            tuple(each for each in firings if each is not None),
            self._state(source, graph, visits),
        )

    def _state(self, node: str, graph: str, visits: list[Visit]) -> str:
        if visits:
            status = self.story.status(visits[-1])
            is_running = status == "unfinished" and self.is_alive
            return "is running" if is_running else _STATES[status]
        return "skipped" if self._is_skipped(node, graph) else "has not run"

    def _is_skipped(self, node: str, graph: str) -> bool:
        """Whether a node that has not run in a graph's run never will.

        Where a node ran in another run of the graph, no event says that it was skipped.
        """
        if any(each.node == node and each.path == graph for each in self.story.skipped):
            return True
        if not graph:
            end = self.story.finished
            return end is not None and end.outcome.status == "completed"
        owner = self.story.visit_of(graph)
        return owner is not None and isinstance(owner.ended, NodeFinished)

    def _firing(self, visit: Visit, edge: PlanEdge) -> Firing | None:
        """What became of the edge when a run of its source was over; None: it is not."""
        if visit.ended is None and not visit.is_idle:
            return None
        fired = sum(each.edge == edge.index for each in visit.fired)
        outputs: tuple[Message, ...] = visit.outputs
        if not outputs:
            why = f"{visit.node} {'failed' if visit.failure is not None else 'said nothing'}"
            return Firing(visit.number, visit.path, 0, 0, (why,))
        reasons = tuple(
            self.verdicts.reason(edge, visit.path, at, message, fired, len(outputs))
            for at, message in enumerate(outputs)
        )
        return Firing(visit.number, visit.path, fired, len(outputs), reasons)

    def _causes(
        self, visits: Sequence[Visit], index: int, plan: Plan, prefix: str
    ) -> Iterator[Cause]:
        """What triggered each run of a node: edges that fired since the run before it began."""
        if not visits:
            return
        graph, began = visits[0].graph, {visit.path: visit for visit in visits}
        since = _Since(plan, index, prefix, graph)
        for event in self.story.events:
            visit = self.story.visits.get(event.path)
            if isinstance(event, NodeStarted) and visit is not None and visit.graph == graph:
                if visit.path in began:
                    yield since.cause(visit)
                since.begun(visit)
            elif event.path == graph:
                since.take(event)

    def _loop_ends(self, local: str, graph: str, plan: Plan, prefix: str) -> Iterator[str]:
        """How the loops that a node lies in ended, in order."""
        last: dict[tuple[str, ...], list[str]] = {}
        names: Mapping[str, int] = {node.id: node.index for node in plan.nodes}
        for event in self.story.events:
            if event.path != graph:
                continue
            match event:
                case LoopRound():
                    last[event.loop] = []
                case EdgeFired():
                    source = event.source.removeprefix(prefix)
                    target = event.target.removeprefix(prefix)
                    for loop, ways in last.items():
                        leaves = source in loop and target not in loop
                        if leaves and plan.edges[event.edge].config.trigger:
                            ways.append(f"{event.source} -> {event.target}")
                case LoopLeft() if local in event.loop:
                    ways = ", ".join(dict.fromkeys(last.get(event.loop, [])))
                    bound = plan.max_rounds([names[each] for each in event.loop])
                    yield _loop_end(event, ways, bound)
                case _:
                    pass


@dataclass(slots=True)
class _Since:
    """What has happened in a run of a graph since a node of it began the last time."""

    plan: Plan
    index: int
    prefix: str
    graph: str
    triggers: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Source within the graph, and what is said of it."""
    runs: dict[str, int] = field(default_factory=dict[str, int])
    """By node: how often it has begun; 0: it was skipped."""
    loops: dict[tuple[str, ...], int] = field(default_factory=dict[tuple[str, ...], int])
    """The round of each loop that goes on."""

    def __post_init__(self) -> None:
        if self.index in self.plan.starts:
            self.triggers.append(("", "the task: it is a start node"))

    def take(self, event: Event) -> None:
        """Take in what happened in the graph."""
        match event:
            case EdgeFired(edge=edge) if edge in self.plan.nodes[self.index].in_edges:
                if self.plan.edges[edge].config.trigger:
                    run = self.runs.get(event.source, 1)
                    which = f" (run {run} of {event.source})" if run > 1 else ""
                    source = event.source.removeprefix(self.prefix)
                    self.triggers.append((source, f"{event.source} -> {event.target}{which}"))
            case NodeSkipped():
                self.runs.setdefault(event.node, 0)
            case LoopRound():
                self.loops[event.loop] = event.round
            case LoopLeft():
                self.loops.pop(event.loop, None)
                if self.plan.nodes[self.index].id in event.loop:
                    self.triggers = [each for each in self.triggers if each[0] not in event.loop]
            case _:
                pass

    def begun(self, visit: Visit) -> None:
        """A run of a node of the graph began."""
        self.runs[visit.node] = visit.number
        if visit.node == self.prefix + self.plan.nodes[self.index].id:
            self.triggers = []

    def cause(self, visit: Visit) -> Cause:
        """Why this run of the node begins now."""
        node = self.plan.nodes[self.index]
        sources = dict.fromkeys(
            self.prefix + self.plan.edges[edge].config.from_ for edge in node.in_edges
        )
        waited = [
            f"{each} ({f'run {self.runs[each]}' if self.runs[each] else 'skipped'})"
            for each in sources
            if each in self.runs
        ]
        rounds = [
            f"round {number} of the loop {', '.join(names)}"
            for names, number in self.loops.items()
            if node.id in names
        ]
        triggers = dict.fromkeys(text for _, text in self.triggers)
        return Cause(visit, tuple(triggers), tuple(waited), tuple(rounds))


def _loop_end(event: LoopLeft, ways: str, bound: int) -> str:
    loop = f"the loop {', '.join(event.loop)}"
    rounds = f"round {event.rounds}"
    if event.exited:
        return f"{loop} was left in {rounds}, as {ways or 'an edge out of it'} fired"
    if event.rounds >= bound:
        return f"{loop} ended after {rounds}: that is its bound (`max_loop_iterations`)"
    return f"{loop} ended after {rounds}: nothing in it triggered another one"


_STATES: dict[VisitStatus, str] = {
    "completed": "completed",
    "skipped": "skipped",
    "failed": "failed",
    "waiting": "waits for a human",
    "cancelled": "was cancelled",
    "unfinished": "was not finished",
}


def names_in(plan: Plan, prefix: str = "") -> Iterator[str]:
    """The nodes of a plan and of those within, by name: `X`, `S/X`."""
    for node in plan.nodes:
        yield prefix + node.id
    for name, child in plan.subplans.items():
        yield from names_in(child, f"{prefix}{name}/")
