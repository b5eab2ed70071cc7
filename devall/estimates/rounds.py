"""How many rounds a loop takes at most, and what ends it: a counter, a way out, the limit.

A round that another one follows was not left, so all that was triggered in it has run. Where a
node with a certain way out of the loop runs in each such round, the round in which it speaks is
the last one. Which nodes those are is read from the edges that start the next round: all that
lies on every way to their source has run, and so has what those trigger for certain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations

from devall.config.edges import FunctionCondition
from devall.config.nodes import LoopCounterNode, LoopTimerNode
from devall.estimates.ways import (
    always_speaks,
    fire_together,
    is_certain,
    is_dead,
    occasion,
    speaks_at,
)
from devall.graph.model import Plan, PlanEdge
from devall.graph.regions import Order
from devall.nodes.loops import SECONDS


@dataclass(frozen=True, slots=True)
class Rounds:
    """How often a loop goes round at most each time it is entered."""

    most: int
    key: str
    """The key that says so: `max_iterations`, `limits.max_loop_iterations`, or `edges`."""
    node: str
    """The node whose key it is, or that always leaves the loop; empty: the graph."""
    loose: tuple[str, ...] = ()
    """Counters in the loop that need not run in every round, so that they bound nothing."""
    timers: tuple[tuple[str, float], ...] = ()
    """Timers that leave the loop when their seconds are up."""
    trusted: tuple[str, ...] = ()
    """Functions that are taken to say the same of the same text, as conditions of two edges."""


class Loop:
    """A strongly connected part of a graph, and how its rounds may begin."""

    def __init__(self, plan: Plan, members: frozenset[int]) -> None:
        self.plan = plan
        self.members = members
        self._inside = [
            edge
            for edge in plan.edges
            if edge.source in members and edge.target in members and not is_dead(edge)
        ]

    @cached_property
    def entries(self) -> frozenset[int]:
        """Nodes from which a round may start."""
        found = self.plan.regions.entries(self.members, self.plan.starts)
        return found or self.members

    @cached_property
    def groups(self) -> list[frozenset[int]]:
        """The entries, those together that are triggered on the same occasions and on no others."""
        found: dict[object, set[int]] = {}
        for node in sorted(self.entries):
            edges = (self.plan.edges[edge] for edge in self.plan.nodes[node].in_edges)
            occasions = frozenset(
                occasion(self.plan, edge)
                for edge in edges
                if edge.config.trigger and not is_dead(edge)
            )
            found.setdefault((node in self.plan.starts, occasions), set()).add(node)
        return [frozenset(group) for group in found.values()]

    def orders(self) -> Iterator[Order]:
        """The orders that a round may have: it starts from any of the groups of entries."""
        for size in range(1, len(self.groups) + 1):
            for starts in combinations(self.groups, size):
                yield self.plan.regions.round(self.members, frozenset[int]().union(*starts))

    @cached_property
    def rounds(self) -> Rounds:
        """How many rounds it takes at most."""
        plan = self.plan
        found = self._by_limit()
        back = [e for e in self._inside if e.config.trigger and e.target in self.entries]
        if not back:
            return Rounds(1, "edges", "")
        always = frozenset[int].intersection(*map(self._certain, back))
        loose: list[str] = []
        timers: list[tuple[str, float]] = []
        for node in sorted(self.members):
            config = plan.nodes[node].config
            is_sure = node in always and self._leaves(node)
            if isinstance(config, LoopCounterNode) and not is_sure:
                loose.append(config.id)
            if not is_sure:
                continue
            spoken = speaks_at(plan, node)
            if spoken is not None and spoken < found.most:
                key = "max_iterations" if isinstance(config, LoopCounterNode) else "edges"
                found = Rounds(spoken, key, config.id)
            if isinstance(config, LoopTimerNode) and node not in plan.dynamics:
                seconds = config.config.max_duration * SECONDS[config.config.duration_unit]
                timers.append((config.id, seconds))
        trusted = () if found.key == "limits.max_loop_iterations" else self._trusted(back)
        return replace(found, loose=tuple(loose), timers=tuple(timers), trusted=trusted)

    def _trusted(self, back: list[PlanEdge]) -> tuple[str, ...]:
        """The functions that decide a way back and another edge of the same node."""
        names = {
            edge.config.condition.config.name
            for edge in back
            if isinstance(edge.config.condition, FunctionCondition)
            and any(
                other is not edge and fire_together(self.plan, edge, other)
                for other in self._inside
                if other.config.condition == edge.config.condition
            )
        }
        return tuple(sorted(names))

    def _by_limit(self) -> Rounds:
        """The graph's limit, or the largest count of a counter, which raises it."""
        limit = self.plan.max_rounds(tuple(self.members))
        raised = limit > self.plan.graph.limits.max_loop_iterations
        for node in sorted(self.members) if raised else ():
            config = self.plan.nodes[node].config
            if isinstance(config, LoopCounterNode) and config.config.max_iterations == limit:
                return Rounds(limit, "max_iterations", config.id)
        return Rounds(limit, "limits.max_loop_iterations", "")

    def _leaves(self, node: int) -> bool:
        """Whether each output of a node leaves the loop."""
        edges = (self.plan.edges[edge] for edge in self.plan.nodes[node].out_edges)
        return any(
            is_certain(self.plan, edge) and edge.target not in self.members for edge in edges
        )

    @cached_property
    def _before(self) -> dict[int, frozenset[int]]:
        """By node: those that have run in every round in which it runs, itself included.

        They are the dominators of a flow graph whose roots are the entries.
        """
        found = dict.fromkeys(self.members, self.members)
        for node in self.entries:
            found[node] = frozenset((node,))
        into: dict[int, list[int]] = {node: [] for node in self.members}
        for edge in self._inside:
            if edge.config.trigger:
                into[edge.target].append(edge.source)
        changed = True
        while changed:
            changed = False
            for node in sorted(self.members - self.entries):
                ways = [found[source] for source in into[node]]
                now = frozenset[int].intersection(*ways) | {node} if ways else found[node]
                if now != found[node]:
                    found[node] = now
                    changed = True
        return found

    def _certain(self, fired: PlanEdge) -> frozenset[int]:
        """Nodes that have run in a round in which an edge fired, and that another one follows."""
        ran = set(self._before[fired.source])
        ran |= {
            e.target
            for e in self._inside
            if self._reaches(e) and fire_together(self.plan, fired, e)
        }
        todo = list(ran)
        while todo:
            node = todo.pop()
            if not always_speaks(self.plan, node):
                continue
            for edge in self._inside:
                is_new = edge.source == node and edge.target not in ran
                if is_new and is_certain(self.plan, edge) and self._reaches(edge):
                    ran.add(edge.target)
                    todo.append(edge.target)
        return frozenset(ran)

    def _reaches(self, edge: PlanEdge) -> bool:
        """Whether a target that is triggered runs in the same round, however it has begun.

        One from which rounds start runs in the next; one in the same inner loop may be cut off
        when that is left.
        """
        if edge.target in self.entries:
            return False
        ends = edge.source, edge.target
        return not any(ends[0] in inner and ends[1] in inner for inner in self._inner)

    @cached_property
    def _inner(self) -> list[frozenset[int]]:
        """All inner loops that rounds may have; those of several starts lie in those of one."""
        return [
            frozenset(item.members)
            for start in self.entries
            for item in self.plan.regions.round(self.members, frozenset((start,))).items
            if item.is_loop
        ]
