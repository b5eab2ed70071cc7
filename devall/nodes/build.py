"""The code of a graph's nodes and edges, from what the file says."""

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
)
from devall.core.ports import HumanChannel
from devall.edges.rules import EdgeFunctions, rule_of
from devall.engine.context import Executor, Parts
from devall.graph.model import Plan
from devall.nodes.agent import AgentExecutor
from devall.nodes.human import HumanExecutor
from devall.nodes.literal import LiteralExecutor
from devall.nodes.loops import LoopCounterExecutor, LoopTimerExecutor
from devall.nodes.passthrough import PassthroughExecutor
from devall.nodes.python import PythonExecutor
from devall.nodes.subgraph import SubgraphExecutor
from devall.workspace import Workspace

_IMMEDIATE = (LiteralNode, PassthroughNode, LoopCounterNode)
"""Kinds whose executors never wait for anything."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What nodes need from outside of the graph."""

    human: HumanChannel
    functions: EdgeFunctions
    workspace: Workspace
    agent: Callable[[Plan, AgentNode, str], AgentExecutor]
    """Makes the executor of an agent; the text is its name (`S/X` in a subgraph)."""


def assemble(plan: Plan, prefix: str, around: Surroundings) -> Parts:
    """The code of one run of a graph.

    Raises:
        SetupError: a key, an extra, a function or a file that a node needs is missing.
    """
    executors = tuple(_executor(plan, node.config, prefix, around) for node in plan.nodes)
    return Parts(
        executors=executors,
        immediate=tuple(isinstance(node.config, _IMMEDIATE) for node in plan.nodes),
        rules=tuple(
            rule_of(edge, plan.places.get(edge.index, ""), around.functions) for edge in plan.edges
        ),
        closers=tuple(each.aclose for each in executors if isinstance(each, AgentExecutor)),
    )


def _executor(plan: Plan, node: Node, prefix: str, around: Surroundings) -> Executor:
    match node:
        case AgentNode():
            return around.agent(plan, node, prefix + node.id)
        case HumanNode():
            return HumanExecutor(node.id, node.config, around.human)
        case LiteralNode():
            return LiteralExecutor(node.id, node.config)
        case PassthroughNode():
            return PassthroughExecutor(node.config)
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
