"""How many units dynamic edges make: known where the texts are, else as many as one assumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from devall.config.edges import Dynamic, FunctionProcess, JsonPathSplit, MessageSplit
from devall.config.nodes import LiteralNode, PassthroughNode
from devall.core.messages import user
from devall.edges.transforms import regex_extract
from devall.engine.splitting import split_messages
from devall.estimates.bounds import NOTHING, Bound, unbounded
from devall.estimates.ways import is_dead
from devall.graph.model import Plan, PlanEdge, PlanNode


class FlowLike(Protocol):
    """Messages that go one way."""

    @property
    def count(self) -> Bound:
        """How many."""
        ...

    @property
    def tokens(self) -> Bound:
        """Of all of them."""
        ...

    @property
    def largest(self) -> Bound:
        """Tokens of the largest one."""
        ...


class Surroundings(Protocol):
    """What the number of units is worked out from."""

    @property
    def plan(self) -> Plan:
        """The graph."""
        ...

    @property
    def name(self) -> str:
        """What names of its nodes begin with."""
        ...

    @property
    def task_text(self) -> str | None:
        """The task, where it is known."""
        ...

    @property
    def given_units(self) -> int | None:
        """How many units each run of a node is taken to have where that is not known."""
        ...


@dataclass(frozen=True, slots=True)
class UnitCount:
    """The units of a node's runs."""

    runs: Bound
    """Runs of the node for units, in all its runs together."""
    once: Bound
    """The same in one run of the node."""
    waves: Bound
    """How many of those go one after another, as `max_parallel` lets no more go side by side."""
    is_tree: bool
    unit: Bound
    """Tokens of a unit at most; of a reduction, of a group."""
    size: int = 1
    """Messages of a unit; of a reduction, of a group."""
    is_assumed: bool = False
    """Whether their number is that of `--units`."""


def unit_count(
    around: Surroundings,
    node: PlanNode,
    dynamic: Dynamic,
    carried: Sequence[tuple[PlanEdge, FlowLike]],
    visits: Bound,
    result: Bound,
) -> UnitCount:
    """The units of a node.

    Args:
        around: Where the node stands.
        node: The node.
        dynamic: How messages are split.
        carried: What comes over each dynamic edge.
        visits: How often the node runs, its units counted as one run.
        result: Tokens of what a unit gives at most, for reductions.
    """
    name = around.name + node.id
    count, unit = NOTHING, NOTHING
    # Written anew, JSON may have more blanks.
    larger = 2 if isinstance(dynamic.split, JsonPathSplit) else 1
    for edge, flow in carried:
        unit = unit.most(flow.largest * larger)
        each = _units_of(around, edge, dynamic)
        if each is None:
            why = "how many units its inputs are split into"
            count += flow.count * unbounded(name, "--units", why)
        else:
            count += flow.count * each
    once, is_assumed = count, False
    if not count.is_known and around.given_units is not None:
        once, is_assumed = Bound(around.given_units), True
        count = visits * once
    is_tree = dynamic.type == "tree"
    side_by_side, size = dynamic.config.max_parallel, 1
    if is_tree:
        size = dynamic.config.group_size
        waves, once = _groups(once, size, side_by_side), _groups(once, size)
        # One run that has them all, or many with one each.
        runs = visits * once if is_assumed else once + count + visits
        runs = once if visits.value == 1 else runs
        unit = (unit + result) * size
    else:
        # A run without a unit is a run on its other inputs.
        runs = visits * once.most(Bound(1)) if is_assumed else count.most(Bound(1)) + visits
        if not is_assumed and runs.value is not None:
            runs = Bound(runs.value - 1)
        once = once.most(Bound(1))
        waves = _waves(once, side_by_side)
    return UnitCount(runs, once, waves, is_tree, unit, size, is_assumed)


def _waves(units: Bound, side_by_side: int) -> Bound:
    """How often the units of one layer begin anew."""
    return units if units.value is None else Bound(-(-units.value // side_by_side))


def _groups(units: Bound, size: int, side_by_side: int = 1) -> Bound:
    """The runs of a reduction of so many units, layer by layer; those of a wave count as one."""
    if units.value is None:
        return units
    left, found = int(units.value), 0
    while True:
        left = -(-left // size)
        found += -(-left // side_by_side)
        if left <= 1:
            return Bound(max(1, found), (), units.held_by)


def _units_of(around: Surroundings, edge: PlanEdge, dynamic: Dynamic) -> int | None:
    """The units that one message makes at most; None: nobody knows before."""
    if isinstance(dynamic.split, MessageSplit):
        return 1
    texts = _texts_along(around, edge, frozenset())
    if texts is None:
        return None
    return max((len(split_messages(dynamic.split, [user(text)])) for text in texts), default=0)


def _texts_along(
    around: Surroundings, edge: PlanEdge, above: frozenset[int]
) -> tuple[str, ...] | None:
    """All texts that an edge can carry; None: not known before."""
    texts = _texts_of(around, around.plan.nodes[edge.source], above)
    process = edge.config.process
    if texts is None or process is None:
        return texts
    if isinstance(process, FunctionProcess):
        return None
    extract = regex_extract(process.config)
    return tuple(text for text in map(extract, texts) if text is not None)


def _texts_of(
    around: Surroundings, node: PlanNode, above: frozenset[int]
) -> tuple[str, ...] | None:
    """All texts that a node can say; None: not known before."""
    if isinstance(node.config, LiteralNode):
        return (node.config.config.content,)
    is_dynamic = node.index in around.plan.dynamics
    if not isinstance(node.config, PassthroughNode) or is_dynamic or node.index in above:
        return None
    found = [""]
    if node.index in around.plan.starts:
        if around.task_text is None:
            return None
        found.append(around.task_text)
    for index in node.in_edges:
        edge = around.plan.edges[index]
        if is_dead(edge) or not edge.config.carry_data:
            continue
        texts = _texts_along(around, edge, above | {node.index})
        if texts is None:
            return None
        found += texts
    return tuple(dict.fromkeys(found))
