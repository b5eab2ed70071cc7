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

Arcs and items are named tuples, not dataclasses, since each node of a plan has one of both: a
frozen dataclass takes three times as long to make. networkx is imported for graphs with a
cycle only: it takes a quarter of a second.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


class Regions:
    """The orders of a graph's rounds, each worked out when it is first asked for."""

    def __init__(self, ids: Sequence[str], arcs: Sequence[Arc]) -> None:
        self._ids = tuple(ids)
        self._arcs = tuple(arcs)
        self._out: list[list[int]] = [[] for _ in self._ids]
        for index, arc in enumerate(self._arcs):
            self._out[arc.source].append(index)
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
        return found | {
            arc.target
            for arc in self._arcs
            if arc.trigger and arc.target in inside and arc.source not in inside
        }

    def _order(self, members: frozenset[int] | None, starts: frozenset[int]) -> Order:
        key = (members, starts)
        order = self._orders.get(key)
        if order is None:
            order = self._orders[key] = self._work_out(members, starts)
        return order

    def _work_out(self, members: frozenset[int] | None, starts: frozenset[int]) -> Order:
        nodes = range(len(self._ids)) if members is None else sorted(members)
        arcs = [
            (index, arc.source, arc.target)
            for node in nodes
            for index in self._out[node]
            if (arc := self._arcs[index]).target not in starts
            and (members is None or arc.target in members)
        ]
        ordering = [(source, target) for _, source, target in arcs]
        levels = _generations(nodes, ordering)
        if levels is not None:
            groups = [((node,), False) for node in nodes]
        else:
            groups, ordering = self._fold(nodes, arcs)
        beside = [
            (node, arc.target)
            for node in sorted(starts)
            for index in self._out[node]
            if (arc := self._arcs[index]).target in starts
            and self._ids[node] < self._ids[arc.target]
        ]
        return self._assemble(members, groups, ordering, beside, levels)

    def _fold(
        self, nodes: Sequence[int], arcs: Sequence[tuple[int, int, int]]
    ) -> tuple[list[tuple[tuple[int, ...], bool]], list[tuple[int, int]]]:
        """Groups of nodes that are one item, with whether they loop; and what orders them."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(nodes)
        graph.add_edges_from((s, t) for _, s, t in arcs)
        part_of: dict[int, int] = {}
        parts: list[tuple[int, ...]] = []
        for part in nx.strongly_connected_components(graph):
            for node in part:
                part_of[node] = len(parts)
            parts.append(tuple(sorted(part)))
        within: list[list[int]] = [[] for _ in parts]
        for index, source, target in arcs:
            if part_of[source] == part_of[target]:
                within[part_of[source]].append(index)

        groups: list[tuple[tuple[int, ...], bool]] = []
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
        return groups, [(s, t) for index, s, t in arcs if index not in silent]

    def _holds_cycle(self, part: Iterable[int], inner: Iterable[int]) -> bool:
        """Whether the triggering edges of a part make a cycle."""
        triggers = [(a.source, a.target) for i in inner if (a := self._arcs[i]).trigger]
        return _generations(tuple(part), triggers) is None

    def _closing(self, part: Iterable[int], inner: Iterable[int]) -> set[int]:
        """Data edges that would close a cycle, taken in file order on top of the triggers."""
        import networkx as nx

        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(part)
        ordered = sorted(inner)
        graph.add_edges_from((a.source, a.target) for i in ordered if (a := self._arcs[i]).trigger)
        closing: set[int] = set()
        for index in ordered:
            arc = self._arcs[index]
            if arc.trigger:
                continue
            if arc.source == arc.target or nx.has_path(graph, arc.target, arc.source):
                closing.add(index)
            else:
                graph.add_edge(arc.source, arc.target)
        return closing

    def _assemble(
        self,
        members: frozenset[int] | None,
        groups: Sequence[tuple[tuple[int, ...], bool]],
        ordering: Iterable[tuple[int, int]],
        beside: Iterable[tuple[int, int]],
        levels: Mapping[int, int] | None,
    ) -> Order:
        """Items from groups; `beside` orders starting points without parting their level.

        `levels` are those of the nodes, if no group has more than one.
        """
        item_of = {node: at for at, (group, _) in enumerate(groups) for node in group}
        following: list[list[int]] = [[] for _ in groups]
        for source, target in ordering:
            here, there = item_of[source], item_of[target]
            if here != there:
                following[here].append(there)
        if levels is None:
            folded = _generations(
                range(len(groups)), ((s, t) for s, targets in enumerate(following) for t in targets)
            )
            assert folded is not None, "folding loops leaves no cycle"
            level_of = [folded[at] for at in range(len(groups))]
        else:
            level_of = [levels[group[0]] for group, _ in groups]
        for source, target in beside:
            following[item_of[source]].append(item_of[target])
        after = [
            tuple(sorted(set(each)) if len(each) > 1 else each)  # two nodes may share many edges
            for each in following
        ]
        before = [0] * len(groups)
        for each in after:
            for there in each:
                before[there] += 1
        items = tuple(
            Item(
                members=group,
                is_loop=is_loop,
                level=level_of[at],
                before=before[at],
                after=after[at],
                may_exit=members is not None and self._leads_out(group, members),
            )
            for at, (group, is_loop) in enumerate(groups)
        )
        exits = tuple(sorted(item.level for item in items if item.may_exit))
        return Order(items, item_of, exits)

    def _leads_out(self, group: Iterable[int], members: frozenset[int]) -> bool:
        return any(
            (arc := self._arcs[index]).trigger and arc.target not in members
            for node in group
            for index in self._out[node]
        )


def _generations(nodes: Sequence[int], arcs: Iterable[tuple[int, int]]) -> dict[int, int] | None:
    """The length of the longest path to each node, or None if there is a cycle (Kahn, 1962)."""
    after: dict[int, list[int]] = {node: [] for node in nodes}
    before = dict.fromkeys(nodes, 0)
    for source, target in arcs:
        after[source].append(target)
        before[target] += 1
    level = dict.fromkeys(nodes, 0)
    ready = [node for node in nodes if not before[node]]
    for node in ready:
        beyond = level[node] + 1
        for target in after[node]:
            level[target] = max(level[target], beyond)
            before[target] -= 1
            if not before[target]:
                ready.append(target)
    return level if len(ready) == len(before) else None
