"""What runs before what: the loops of a graph, and the levels within each round.

A loop is a strongly connected part that holds a cycle of triggering edges. Loops nest: with
the edges into the places where a round starts taken away, what is strongly connected even
then is an inner loop. This is the weak topological order of Bourdoncle ("Efficient chaotic
iteration strategies with widenings", 1993), with the heads given by what was triggered
instead of chosen.

Where a round starts from several nodes they share its lowest level; an edge from one of them
to another still makes the other wait and see the message, if the source's id sorts first.
The recorded runs of the conformance suite have it so, and ids, unlike places in the file, do
not change when nodes are listed in another order.

Nodes are numbers from 0, edges keep their position in the file. Everything here is pure.

Arcs and items are named tuples: a frozen dataclass takes three times as long to make. What is
kept of arcs are flat lists and tuples of numbers, which the garbage collector need not look
through. networkx is imported for graphs with a cycle only: it takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple


class Arc(NamedTuple):
    """An edge as far as order is concerned."""

    source: int
    target: int
    trigger: bool = True


class Item(NamedTuple):
    """What is one thing to a round: a node, or an inner loop folded to one."""

    members: tuple[int, ...]
    """Nodes in file order."""
    is_loop: bool
    level: int
    """Topological generation within the round, from 0."""
    before: int
    """How many items must be settled before this one."""
    after: tuple[int, ...]
    """Items that wait for this one."""
    may_exit: bool
    """Whether a triggering edge leads from here out of the loop whose round this is."""


@dataclass(frozen=True, slots=True)
class Order:
    """The items of one round, and the item of each node."""

    items: tuple[Item, ...]
    item_of: dict[int, int] = field(repr=False)
    exit_levels: tuple[int, ...] = ()
    """Levels that hold an item that may leave the loop, ascending, one entry an item."""


_Group = tuple[tuple[int, ...], bool]
"""Nodes that are one item, and whether they are a loop."""


class Regions:
    """The orders of a graph's rounds, each worked out when it is first asked for."""

    def __init__(self, ids: Sequence[str], arcs: Iterable[Arc]) -> None:
        self._ids = tuple(ids)
        self._sources: list[int] = []
        self._targets: list[int] = []
        self._triggers: list[bool] = []
        for source, target, trigger in arcs:
            self._sources.append(source)
            self._targets.append(target)
            self._triggers.append(trigger)
        self._out = positions(self._sources, len(self._ids))
        self._orders: dict[tuple[frozenset[int] | None, frozenset[int]], Order] = {}

    def outermost(self) -> Order:
        """The order of the whole graph, loops folded."""
        return self._order(None, frozenset())

    def round(self, members: frozenset[int], starts: frozenset[int]) -> Order:
        """The order of a round of the loop `members` that starts from `starts`."""
        return self._order(members, starts)

    def loops(self) -> tuple[tuple[int, ...], ...]:
        """The outermost loops, nodes in file order."""
        return tuple(item.members for item in self.outermost().items if item.is_loop)

    def entries(self, members: Collection[int], starts: Collection[int] = ()) -> frozenset[int]:
        """Nodes of a loop that may be triggered from outside of it, or are among `starts`."""
        inside = members if isinstance(members, frozenset) else frozenset(members)
        found = inside.intersection(starts)
        arcs = zip(self._sources, self._targets, self._triggers, strict=True)
        return found | {
            target
            for source, target, trigger in arcs
            if trigger and target in inside and source not in inside
        }

    def _order(self, members: frozenset[int] | None, starts: frozenset[int]) -> Order:
        key = (members, starts)
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = self._work_out(members, starts)
        return order

    def _work_out(self, members: frozenset[int] | None, starts: frozenset[int]) -> Order:
        nodes = range(len(self._ids)) if members is None else sorted(members)
        groups: list[_Group] = [((node,), False) for node in nodes]
        item_of = {node: at for at, node in enumerate(nodes)}
        after = [self._behind(self._out[node], item_of, starts) for node in nodes]
        levels = _generations(after)
        if levels is None:
            inside = [
                arc
                for node in nodes
                for arc in self._out[node]
                if self._targets[arc] in item_of and self._targets[arc] not in starts
            ]
            groups, silent = self._fold(nodes, inside)
            item_of = {node: at for at, (group, _) in enumerate(groups) for node in group}
            after = [
                self._behind(
                    [arc for node in group for arc in self._out[node] if arc not in silent],
                    item_of,
                    starts.union(group),
                )
                for group, _ in groups
            ]
            levels = _generations(after)
            assert levels is not None, "folding loops leaves no cycle"
        for node in starts:  # these share their level, but wait for each other
            behind = {
                item_of[target]
                for arc in self._out[node]
                if (target := self._targets[arc]) in starts and self._ids[node] < self._ids[target]
            }
            after[item_of[node]] = tuple(sorted(behind.union(after[item_of[node]])))
        before = _counts(after)
        items = tuple(
            Item(
                members=group,
                is_loop=is_loop,
                level=levels[at],
                before=before[at],
                after=after[at],
                may_exit=members is not None and self._leads_out(group, members),
            )
            for at, (group, is_loop) in enumerate(groups)
        )
        exits = tuple(sorted(item.level for item in items if item.may_exit))
        return Order(items, item_of, exits)

    def _behind(
        self, arcs: Iterable[int], item_of: Mapping[int, int], but: frozenset[int]
    ) -> tuple[int, ...]:
        """The items that arcs lead to, each once, ascending; nodes of `but` left out."""
        found = {
            item_of[target]
            for arc in arcs
            if (target := self._targets[arc]) in item_of and target not in but
        }
        return tuple(sorted(found))

    def _fold(self, nodes: Iterable[int], inside: Iterable[int]) -> tuple[list[_Group], set[int]]:
        """Groups of nodes that are one item, in order; and the arcs that order nothing.

        Args:
            nodes: What is to be ordered.
            inside: The arcs between them.
        """
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from((self._sources[arc], self._targets[arc]) for arc in inside)
        part_of: dict[int, int] = {}
        parts: list[tuple[int, ...]] = []
        for part in nx.strongly_connected_components(graph):
            for node in part:
                part_of[node] = len(parts)
            parts.append(tuple(sorted(part)))
        within: list[list[int]] = [[] for _ in parts]
        for arc in inside:
            part = part_of[self._sources[arc]]
            if part == part_of[self._targets[arc]]:
                within[part].append(arc)

        groups: list[_Group] = []
        silent: set[int] = set()
        for part, inner in zip(parts, within, strict=True):
            if not inner:
                groups.append((part, False))
            elif self._holds_cycle(part, inner):
                groups.append((part, True))
            else:
                groups.extend(((node,), False) for node in part)
                silent |= self._closing(part, inner)
        # A node whose only cycle is a data edge to itself lands in `silent` as well.
        groups.sort()
        return groups, silent

    def _holds_cycle(self, part: Sequence[int], inner: Iterable[int]) -> bool:
        """Whether the triggering arcs of a part make a cycle."""
        number = {node: at for at, node in enumerate(part)}
        after: list[list[int]] = [[] for _ in part]
        for arc in inner:
            if self._triggers[arc]:
                after[number[self._sources[arc]]].append(number[self._targets[arc]])
        return _generations(after) is None

    def _closing(self, part: Iterable[int], inner: Iterable[int]) -> set[int]:
        """Data arcs that would close a cycle, taken in file order on top of the triggers."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(part)
        data: list[int] = []
        for arc in sorted(inner):
            if self._triggers[arc]:
                graph.add_edge(self._sources[arc], self._targets[arc])
            else:
                data.append(arc)
        closing: set[int] = set()
        for arc in data:
            source, target = self._sources[arc], self._targets[arc]
            if source == target or nx.has_path(graph, target, source):
                closing.add(arc)
            else:
                graph.add_edge(source, target)
        return closing

    def _leads_out(self, group: Iterable[int], members: frozenset[int]) -> bool:
        return any(
            self._triggers[arc] and self._targets[arc] not in members
            for node in group
            for arc in self._out[node]
        )


def positions(numbers: Sequence[int], count: int) -> list[tuple[int, ...]]:
    """For each number below `count`, where it stands in `numbers`, ascending."""
    found: list[tuple[int, ...]] = [()] * count
    order = sorted(range(len(numbers)), key=numbers.__getitem__)
    for number, places in groupby(order, key=numbers.__getitem__):
        found[number] = tuple(places)
    return found


def _counts(after: Sequence[Sequence[int]]) -> list[int]:
    """How often each number is in `after`."""
    found = [0] * len(after)
    for each in after:
        for number in each:
            found[number] += 1
    return found


def _generations(after: Sequence[Sequence[int]]) -> list[int] | None:
    """The length of the longest path to each number, or None if there is a cycle (Kahn, 1962).

    Args:
        after: For each number, those that arcs lead to from there.
    """
    before = _counts(after)
    levels = [0] * len(after)
    ready = [number for number, count in enumerate(before) if not count]
    for number in ready:  # it grows
        beyond = levels[number] + 1
        for target in after[number]:
            levels[target] = max(levels[target], beyond)
            before[target] -= 1
            if not before[target]:
                ready.append(target)
    return levels if len(ready) == len(after) else None
