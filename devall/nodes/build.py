"""The code of a graph's nodes, from what the file says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import assert_never

from devall.config.nodes import (
    AgentNode,
    HumanNode,
    LiteralNode,
    LoopCounterNode,
    LoopTimerNode,
    Node,
    PassthroughNode,
    PythonNode,
    SubgraphNode,
    TemplateNode,
)
from devall.core.ports import HumanChannel
from devall.engine.context import Executor
from devall.graph.model import Plan
from devall.nodes.agent import AgentExecutor
from devall.nodes.human import HumanExecutor
from devall.nodes.literal import LiteralExecutor
from devall.nodes.loops import LoopCounterExecutor, LoopTimerExecutor
from devall.nodes.passthrough import PassthroughExecutor
from devall.nodes.python import PythonExecutor
from devall.nodes.subgraph import SubgraphExecutor
from devall.nodes.template import TemplateExecutor
from devall.workspace import Workspace


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What nodes need from outside of the graph."""

    human: HumanChannel
    workspace: Workspace
    agent: Callable[[Plan, AgentNode, str], AgentExecutor]
    """Makes the executor of an agent; the text is its name (`S/X` in a subgraph)."""


_IMMEDIATE = LiteralNode, PassthroughNode, TemplateNode, LoopCounterNode


def is_immediate(node: Node) -> bool:
    """Whether the node's executor never waits for anything."""
    return isinstance(node, _IMMEDIATE)


def executor_of(plan: Plan, node: Node, prefix: str, around: Surroundings) -> Executor:
    """The executor of a node, for one run of its graph.

    Args:
        plan: The node's graph.
        node: As the file has it.
        prefix: What the node's name begins with: `S/` in subgraph S.
        around: What it needs from outside.
    """
    match node:
        case AgentNode():
            return around.agent(plan, node, prefix + node.id)
        case HumanNode():
            return HumanExecutor(node.id, node.config, around.human)
        case LiteralNode():
            return LiteralExecutor(node.id, node.config)
        case PassthroughNode():
            return PassthroughExecutor(node.config)
        case TemplateNode():
            return TemplateExecutor(node.id, node.config)
        case PythonNode():
            return PythonExecutor(node.id, node.config, around.workspace)
        case SubgraphNode():
            return SubgraphExecutor(plan.subplans[node.id])
        case LoopCounterNode():
            return LoopCounterExecutor(node.id, node.config)
        case LoopTimerNode():
            return LoopTimerExecutor(node.id, node.config)
        case _:
            assert_never(node)
