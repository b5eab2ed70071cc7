"""Rules about what runs at all: starts, ends, and edges that do something."""

from __future__ import annotations

from collections.abc import Iterator

from devall.core.diagnostics import Diagnostic
from devall.graph.checks.shape import Shape, Way
from devall.loading.repair import UNKNOWN


def check_structure(shape: Shape) -> Iterator[Diagnostic]:
    """What is wrong with the graph as a whole."""
    graph, lost = shape.loaded.config, shape.loaded.flaws.keys
    if not graph.nodes:
        if "nodes" not in lost:
            yield shape.diagnostic(
                "no-nodes", "the graph has no nodes", ("nodes",), "nothing would run", "error"
            )
        return
    if not graph.start and "start" not in lost:
        yield shape.diagnostic(
            "no-start",
            "`start` names no node",
            ("start",),
            "name the node, or the nodes, that get the task",
            "error",
        )
        return
    for index, node in enumerate(graph.nodes):
        if "max_loop_iterations" in node.limits.model_fields_set:
            yield shape.diagnostic(
                "limit-without-effect",
                f"node {node.id}: `max_loop_iterations` means nothing on a node",
                ("nodes", index, "limits", "max_loop_iterations"),
                "it belongs in the `limits` of the graph",
            )
    if graph.is_majority_voting:
        yield from _check_vote(shape)
        return
    if shape.is_whole:
        yield from _check_reach(shape)
    for way in shape.ways:
        yield from _check_edge(shape, way)
    yield from _check_dynamic(shape)


def _check_vote(shape: Shape) -> Iterator[Diagnostic]:
    graph = shape.loaded.config
    if graph.edges:
        yield shape.diagnostic(
            "voting-with-edges",
            "edges mean nothing in a majority vote: every node runs on the task",
            ("edges",),
            "take the edges out, or `is_majority_voting`",
        )
    if len(graph.nodes) == 1:
        yield shape.diagnostic(
            "voting-alone",
            "a majority vote of one node",
            ("is_majority_voting",),
            "add nodes, or take `is_majority_voting` out",
        )


def _check_reach(shape: Shape) -> Iterator[Diagnostic]:
    """Nodes, ends and edges of which it is certain that they never do anything."""
    running = shape.reached(number for _, number in shape.starts)
    ends = {number for _, number in shape.ends}
    for at, number in shape.ends:
        if number not in running:
            yield shape.diagnostic(
                "unreachable-end",
                f"the end `{shape.name(number)}` is never reached: {_why(shape, number)}",
                ("end", at),
                "the answer will come from somewhere else",
            )
    for number in shape.number.values():
        if number in running or number in ends or shape.name(number).startswith(UNKNOWN):
            continue
        yield shape.diagnostic(
            "unreachable-node",
            f"node {shape.name(number)} never runs: {_why(shape, number)}",
            ("nodes", number),
            "lead an edge to it that triggers, or name it in `start`",
        )
    for way in shape.ways:
        if way.source not in running and way.target in running and not way.is_dead:
            yield shape.diagnostic(
                "edge-never-fires",
                f"edge {_name(way)} never fires: node {way.edge.from_} never runs",
                ("edges", way.index),
            )


def _why(shape: Shape, number: int) -> str:
    into = [way for way in shape.into[number] if way.source != number]
    if not into:
        return "no edge leads to it"
    if not any(way.edge.trigger for way in into):
        return "no edge into it triggers"
    alive = [way for way in into if way.triggers]
    if not alive:
        return "the edges that would trigger it have `condition: false`"
    sources = dict.fromkeys(way.source for way in alive)
    return f"it is triggered only by {shape.names(sources)}, which never runs"


def _check_edge(shape: Shape, way: Way) -> Iterator[Diagnostic]:
    edge = way.edge
    if not way.is_sound:
        return
    if way.is_dead:
        yield shape.diagnostic(
            "edge-never-fires",
            f"edge {_name(way)} never fires: its condition is false",
            ("edges", way.index, "condition"),
            "take the edge out, or give it a condition",
        )
    clears = edge.clear_context or edge.clear_kept_context
    if not edge.trigger and not edge.carry_data and not clears:
        yield shape.diagnostic(
            "edge-does-nothing",
            f"edge {_name(way)} neither triggers nor carries data",
            ("edges", way.index),
            "set `trigger` or `carry_data`, or take the edge out",
        )


def _check_dynamic(shape: Shape) -> Iterator[Diagnostic]:
    """All dynamic edges into one node must agree."""
    first: dict[int, Way] = {}
    for way in shape.ways:
        if way.edge.dynamic is None or not way.is_sound:
            continue
        known = first.setdefault(way.target, way)
        if known.edge.dynamic != way.edge.dynamic:
            yield shape.diagnostic(
                "dynamic-disagrees",
                f"edge {_name(way)} and edge {_name(known)} say different things about how"
                f" node {way.edge.to} runs",
                ("edges", way.index, "dynamic"),
                "all dynamic edges into one node must have the same `dynamic`",
                "error",
            )


def _name(way: Way) -> str:
    return f"{way.edge.from_} -> {way.edge.to}"
