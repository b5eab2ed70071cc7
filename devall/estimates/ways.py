"""What can be said of edges before a run: which ones fire for every message, which ones together."""

from __future__ import annotations

from collections.abc import Hashable

from devall.config.edges import (
    Always,
    FunctionCondition,
    FunctionProcess,
    KeywordCondition,
    RegexExtract,
)
from devall.config.nodes import (
    AgentNode,
    HumanNode,
    LiteralNode,
    LoopCounterNode,
    LoopTimerNode,
    Node,
    PassthroughNode,
    PythonNode,
    TemplateNode,
)
from devall.edges.conditions import keyword_test
from devall.edges.transforms import regex_extract
from devall.graph.model import Plan, PlanEdge
from devall.nodes.loops import counter_text, timer_text

_SPEAKERS = AgentNode, HumanNode, LiteralNode, PassthroughNode, PythonNode, TemplateNode
"""Kinds of nodes that never end a run without an output."""


def is_dead(edge: PlanEdge) -> bool:
    """Whether the edge never fires: `condition: false`."""
    condition = edge.config.condition
    return isinstance(condition, Always) and not condition.value


def known_text(node: Node) -> str | None:
    """What the node says of itself whenever it does; None: it depends on its inputs."""
    match node:
        case LiteralNode(config=config):
            return config.content
        case LoopCounterNode(config=config):
            return counter_text(config)
        case LoopTimerNode(config=config):
            return timer_text(config)
        case _:
            return None


def is_certain(plan: Plan, edge: PlanEdge) -> bool:
    """Whether the edge triggers its target by every output that its source says of itself.

    A timer may hand on its inputs before: they are not meant.
    """
    condition, process = edge.config.condition, edge.config.process
    text = known_text(plan.nodes[edge.source].config)
    is_open = isinstance(condition, Always) and condition.value
    if isinstance(condition, KeywordCondition) and text is not None:
        is_open = keyword_test(condition.config)(text)
    is_kept = _keeps(edge)
    if isinstance(process, RegexExtract) and text is not None:
        is_kept = regex_extract(process.config)(text) is not None
    return edge.config.trigger and is_open and is_kept


def fire_together(plan: Plan, fired: PlanEdge, other: PlanEdge) -> bool:
    """Whether the other edge of the same source triggers its target whenever this one fires.

    A condition is taken to say the same of the same text, also where it is a user's function.
    """
    if not other.config.trigger or fired.source != other.source:
        return False
    if is_certain(plan, other) and not isinstance(plan.nodes[other.source].config, LoopTimerNode):
        return True
    is_same = fired.config.condition == other.config.condition
    return is_same and (_keeps(other) or fired.config.process == other.config.process)


def occasion(plan: Plan, edge: PlanEdge) -> Hashable:
    """When the edge triggers its target: what is the same of two edges happens together.

    Functions are not trusted here: each edge has an occasion of its own.
    """
    is_timer = isinstance(plan.nodes[edge.source].config, LoopTimerNode)
    if is_certain(plan, edge) and not is_timer:
        return edge.source
    condition, process = edge.config.condition, edge.config.process
    if isinstance(condition, FunctionCondition) or isinstance(process, FunctionProcess):
        return edge.index, "function"
    return edge.source, repr(condition), "" if _keeps(edge) else repr(process)


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
