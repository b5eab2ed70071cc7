"""Which steps of earlier turns at a run still count, as a change spreads along a graph's edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from devall.graph.model import Plan


@dataclass(frozen=True, slots=True)
class Cuts:
    """From where on a run does its steps anew."""

    nodes: Mapping[str, int] = field(default_factory=dict[str, int])
    """By name (`S/X` in a subgraph): the epoch from which on a node's steps count."""
    alone: frozenset[str] = frozenset()
    """Those of them that are done anew by themselves, and not what follows them."""


NO_CUTS = Cuts()


@dataclass(slots=True)
class Freshness:
    """The epochs from which on the steps of one graph's nodes count, while it runs.

    What follows a changed node runs anew, and what comes before it does not: in a loop whose
    second node was changed, the first one's first run still counts, and its second does not.
    So the change spreads when a run of a node ends, to all that can be reached from it.
    """

    plan: Plan
    cuts: Cuts
    prefix: str
    """Of the names of the graph's nodes."""
    inherited: int = 0
    """What holds for the whole graph: the node that it is in was changed."""
    newest: int = field(default=0, init=False)
    """The highest epoch of a node that has ended: what holds behind the graph."""
    _spread: dict[int, int] = field(default_factory=dict[int, int], init=False)

    def since(self, node: int) -> int:
        """The epoch from which on the steps of a run that begins now count."""
        own = self.cuts.nodes.get(self.prefix + self.plan.nodes[node].id, 0)
        return max(own, self.inherited, self._spread.get(node, 0))

    def ended(self, node: int, since: int) -> None:
        """A run of a node is over that counted from an epoch on."""
        name = self.prefix + self.plan.nodes[node].id
        is_alone = name in self.cuts.alone and not max(self.inherited, self._spread.get(node, 0))
        if not since or is_alone:
            return
        self.newest = max(self.newest, since)
        todo, seen = [node], {node}
        while todo:
            for edge in self.plan.nodes[todo.pop()].out_edges:
                target = self.plan.edges[edge].target
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
                    self._spread[target] = max(self._spread.get(target, 0), since)
