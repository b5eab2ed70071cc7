"""A graph made ready to run: nodes and edges by number, and what the run asks of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from devall.config.edges import Dynamic, Edge
from devall.config.limits import Limits
from devall.config.nodes import LoopCounterNode, Node
from devall.config.workflow import Graph
from devall.graph.regions import Regions


@dataclass(frozen=True, slots=True)
class PlanNode:
    """A node and the edges at it, in file order."""

    index: int
    id: str
    config: Node
    in_edges: tuple[int, ...]
    out_edges: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PlanEdge:
    """An edge, its ends by number."""

    index: int
    source: int
    target: int
    config: Edge

    @property
    def name(self) -> str:
        """The edge as texts name it: `A -> B`."""
        return f"{self.config.from_} -> {self.config.to}"


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """An immutable graph; one plan serves any number of runs."""

    graph: Graph
    file: Path
    nodes: tuple[PlanNode, ...]
    edges: tuple[PlanEdge, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    regions: Regions = field(repr=False)
    subplans: Mapping[str, Plan]
    """The plans of subgraph nodes, by node id."""
    dynamics: Mapping[int, Dynamic] = field(default_factory=dict[int, Dynamic], repr=False)
    """By node: how its runs fan out, as the dynamic edges into it agree."""
    places: Mapping[int, str] = field(default_factory=dict[int, str], repr=False)
    """For edges with user functions or expressions: `file:line:column`, for errors."""

    @property
    def sinks(self) -> tuple[int, ...]:
        """Nodes without an edge out, in file order."""
        return tuple(node.index for node in self.nodes if not node.out_edges)

    def tightened(self, limits: Limits) -> Plan:
        """The plan with limits of the graph that are at least as tight as these."""
        found = self.graph.limits.tightened(limits)
        return replace(self, graph=self.graph.model_copy(update={"limits": found}))

    def dynamic_edges(self, node: int) -> frozenset[int]:
        """The dynamic edges into a node."""
        if node not in self.dynamics:
            return frozenset()
        into = self.nodes[node].in_edges
        return frozenset(edge for edge in into if self.edges[edge].config.dynamic is not None)

    def max_rounds(self, loop: Sequence[int]) -> int:
        """How many rounds a loop may take: the limit, or its largest counter if that is more."""
        counts = [
            config.config.max_iterations
            for index in loop
            if isinstance(config := self.nodes[index].config, LoopCounterNode)
        ]
        return max(self.graph.limits.max_loop_iterations, *counts, 1)

    def last_round(self, loop: Sequence[int]) -> int:
        """The round of a loop that is the last one at the latest, if each passes its counters."""
        members = frozenset(loop)
        starts = self.regions.entries(members, self.starts)
        counts = [
            config.config.max_iterations
            for item in self.regions.round(members, starts).items
            if not item.is_loop
            and isinstance(config := self.nodes[item.members[0]].config, LoopCounterNode)
        ]
        return min(counts, default=max(self.graph.limits.max_loop_iterations, 1))

    def names(self, nodes: Sequence[int]) -> tuple[str, ...]:
        """The ids of nodes given by number."""
        return tuple(self.nodes[index].id for index in nodes)
