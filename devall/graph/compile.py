"""From what a file says to a plan that can run."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from devall.graph.model import Plan, PlanEdge, PlanNode
from devall.graph.regions import Arc, Regions, positions
from devall.loading.loader import LoadedGraph

_plans: WeakKeyDictionary[LoadedGraph, Plan] = WeakKeyDictionary()
"""A plan never changes, so it is made once and kept as long as its graph."""


def compile_graph(loaded: LoadedGraph) -> Plan:
    """The plan of a graph that passed validation, its subgraphs included.

    A majority vote runs every node on the task, so its plan has no edges and starts them all.
    """
    plan = _plans.get(loaded)
    if plan is None:
        plan = _plans[loaded] = _compile(loaded)
    return plan


def _compile(loaded: LoadedGraph) -> Plan:
    graph = loaded.config
    number = {node.id: index for index, node in enumerate(graph.nodes)}
    edges: tuple[PlanEdge, ...] = ()
    starts = range(len(graph.nodes))
    if not graph.is_majority_voting:
        edges = tuple(
            PlanEdge(index, number[edge.from_], number[edge.to], edge)
            for index, edge in enumerate(graph.edges)
        )
        starts = dict.fromkeys(number[name] for name in graph.start)
    count = len(graph.nodes)
    into = positions([edge.target for edge in edges], count)
    out = positions([edge.source for edge in edges], count)
    return Plan(
        graph=graph,
        file=loaded.file,
        nodes=tuple(
            PlanNode(index, node.id, node, into[index], out[index])
            for index, node in enumerate(graph.nodes)
        ),
        edges=edges,
        starts=tuple(starts),
        ends=tuple(number[name] for name in graph.end),
        regions=Regions(
            [node.id for node in graph.nodes],
            (Arc(edge.source, edge.target, edge.config.trigger) for edge in edges),
        ),
        subplans={name: compile_graph(child) for name, child in loaded.subgraphs.items()},
        dynamics={
            edge.target: dynamic for edge in edges if (dynamic := edge.config.dynamic) is not None
        },
        places={
            edge.index: str(loaded.locate(("edges", edge.index)))
            for edge in edges
            if edge.config.condition.type in {"function", "expression"}
            or edge.config.process is not None
        },
    )
