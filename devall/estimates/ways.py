"""What can be said of edges before a run: which ones fire for every message, which ones together."""

from __future__ import annotations

from devall.config.edges import Always, RegexExtract
from devall.config.nodes import (
    AgentNode,
    HumanNode,
    LiteralNode,
    LoopCounterNode,
    PassthroughNode,
    PythonNode,
)
from devall.graph.model import Plan, PlanEdge

_SPEAKERS = AgentNode, HumanNode, LiteralNode, PassthroughNode, PythonNode
"""Kinds of nodes that never end a run without an output."""


def is_dead(edge: PlanEdge) -> bool:
    """Whether the edge never fires: `condition: false`."""
    condition = edge.config.condition
    return isinstance(condition, Always) and not condition.value


def is_certain(edge: PlanEdge) -> bool:
    """Whether the edge triggers its target by every output of its source."""
    condition = edge.config.condition
    is_open = isinstance(condition, Always) and condition.value
    return edge.config.trigger and is_open and _keeps(edge)


def fire_together(fired: PlanEdge, other: PlanEdge) -> bool:
    """Whether the other edge of the same source triggers its target whenever this one fires.

    A condition is taken to say the same of the same text, also where it is a user's function.
    """
    if not other.config.trigger or fired.source != other.source:
        return False
    if is_certain(other):
        return True
    is_same = fired.config.condition == other.config.condition
    return is_same and (_keeps(other) or fired.config.process == other.config.process)


def always_speaks(plan: Plan, node: int) -> bool:
    """Whether every run of the node that does not end the whole run has an output."""
    config = plan.nodes[node].config
    is_speaker = isinstance(config, _SPEAKERS) and config.on_error == "fail"
    return is_speaker and node not in plan.dynamics


def speaks_at(plan: Plan, node: int) -> int | None:
    """In which of its runs the node has an output at the latest; None: perhaps in none."""
    config = plan.nodes[node].config
    if isinstance(config, LoopCounterNode) and node not in plan.dynamics:
        return config.config.max_iterations
    return 1 if always_speaks(plan, node) else None


def _keeps(edge: PlanEdge) -> bool:
    """Whether what is done to a text on its way never drops it."""
    process = edge.config.process
    if process is None:
        return True
    return isinstance(process, RegexExtract) and process.config.on_no_match != "drop"
