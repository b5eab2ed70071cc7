"""How often each node of a graph runs: at most, and for certain where the graph completes."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from devall.config.edges import MessageSplit, RegexSplit
from devall.estimates.rounds import Loop
from devall.estimates.ways import always_speaks, is_certain
from devall.graph.model import Plan, PlanEdge
from devall.graph.regions import Order

UNCOUNTED = 10**12
"""Runs of a node from which on nothing is said of them: loops in loops in loops."""
_MOST_ORDERS = 4_000
"""Orders of rounds that are looked at; twelve entries that are triggered apart make 4,095."""


class Course:
    """What follows from a graph's shape alone, for one run of it."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self._loops: dict[frozenset[int], Loop] = {}
        self._runs: dict[frozenset[int], dict[int, int]] = {}
        self._widest: dict[frozenset[int], Order] = {}
        self._left = _MOST_ORDERS

    def loop(self, members: tuple[int, ...] | frozenset[int]) -> Loop:
        """The loop of these nodes, always the same object."""
        key = frozenset(members)
        if key not in self._loops:
            self._loops[key] = Loop(self.plan, key)
        return self._loops[key]

    @cached_property
    def runs(self) -> dict[int, int]:
        """By node: how often it runs at most, a run over units counted once.

        `UNCOUNTED` and more stand for any number.
        """
        return self._runs_in(self.plan.regions.outermost())

    def is_counted(self, loop: Loop) -> bool:
        """Whether it is known how often the nodes of a loop run."""
        return max(self._runs_of_loop(loop).values()) < UNCOUNTED

    def widest(self, loop: Loop) -> Order:
        """The order of a loop's rounds in which most is run; the first among equals."""
        if loop.members not in self._widest:
            found = self.plan.regions.round(loop.members, loop.entries)
            if self.is_counted(loop):
                found = max(loop.orders(), key=lambda each: sum(self._runs_in(each).values()))
            self._widest[loop.members] = found
        return self._widest[loop.members]

    def _runs_in(self, order: Order) -> dict[int, int]:
        """By node: how often it runs in one round of that order."""
        found: dict[int, int] = {}
        for item in order.items:
            if item.is_loop:
                found |= self._runs_of_loop(self.loop(item.members))
            else:
                found[item.members[0]] = 1
        return found

    def _runs_of_loop(self, loop: Loop) -> dict[int, int]:
        """By node: how often it runs each time the loop is entered."""
        known = self._runs.get(loop.members)
        if known is None:
            most = dict.fromkeys(loop.members, 0)
            self._left -= 2 ** len(loop.groups) - 1
            if self._left < 0:
                most = dict.fromkeys(loop.members, UNCOUNTED)
            for order in loop.orders() if self._left >= 0 else ():
                for node, runs in self._runs_in(order).items():
                    most[node] = max(most[node], runs)
            rounds = loop.rounds.most
            known = {node: min(rounds * runs, UNCOUNTED) for node, runs in most.items()}
            self._runs[loop.members] = known
        return known

    @cached_property
    def certain(self) -> frozenset[int]:
        """The nodes that run at least once in every run of the graph that completes."""
        found = {node for node in self.plan.starts if node not in self.plan.dynamics}
        todo = list(found)
        while todo:
            node = todo.pop()
            if not always_speaks(self.plan, node):
                continue
            for index in self.plan.nodes[node].out_edges:
                edge = self.plan.edges[index]
                if edge.target not in found and self._starts(edge):
                    found.add(edge.target)
                    todo.append(edge.target)
        return frozenset(found)

    def path(self, node: int) -> Iterator[Loop]:
        """The loops that a node lies in, the outermost first, in the widest orders."""
        order: Order | None = self.plan.regions.outermost()
        while order is not None:
            item = order.items[order.item_of[node]]
            order = None
            if item.is_loop:
                loop = self.loop(item.members)
                yield loop
                order = self.widest(loop)

    def _starts(self, edge: PlanEdge) -> bool:
        """Whether the target runs for certain once the source has."""
        if not is_certain(self.plan, edge) or not self._has_unit(edge):
            return False
        order, members = self.plan.regions.outermost(), None
        while True:
            ours, theirs = order.item_of[edge.source], order.item_of[edge.target]
            if ours != theirs:
                # The way out wins: what lies on a higher level than an exit may not run.
                exits = order.exit_levels
                return not exits or order.items[theirs].level <= exits[0]
            item = order.items[ours]
            if not item.is_loop:
                return False  # an edge to itself
            members = frozenset(item.members)
            entries = self.loop(members).entries
            if len(entries) != 1 or edge.target in entries:
                return False
            order = self.plan.regions.round(members, entries)

    def _has_unit(self, edge: PlanEdge) -> bool:
        """Whether a message that comes over the edge makes the target run at least once."""
        if edge.target not in self.plan.dynamics:
            return True
        if edge.config.dynamic is None:
            return edge.config.carry_data
        split = edge.config.dynamic.split
        is_whole = isinstance(split, RegexSplit) and split.on_no_match == "pass"
        return edge.config.carry_data and (isinstance(split, MessageSplit) or is_whole)
