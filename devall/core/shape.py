"""What a graph is made of, in plain values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from devall.core.messages import JsonValue


@dataclass(frozen=True, slots=True)
class NodeShape:
    """A node of a graph."""

    id: str
    type: str
    """`agent`, `python`, ..."""
    graph: GraphShape | None = None
    """What a subgraph is made of."""


@dataclass(frozen=True, slots=True)
class EdgeShape:
    """An edge of a graph; its place in the list is the `edge` of `edge_fired`."""

    source: str
    target: str
    trigger: bool = True
    """Whether it makes its target run, or only hands messages on."""
    dynamic: str = ""
    """`map` or `tree`: its target runs once for each unit."""
    condition: JsonValue = None
    """The condition as the file has it; None: it always fires."""


@dataclass(frozen=True, slots=True)
class LoopShape:
    """A loop of a graph, outermost ones only; what is within is told by `loop_round`."""

    nodes: tuple[str, ...]
    """Ids of its nodes in file order."""
    bound: int | None = None
    """Rounds after which it ends at the latest, as its counters and limits have it."""


@dataclass(frozen=True, slots=True)
class GraphShape:
    """What a graph is made of."""

    id: str
    nodes: tuple[NodeShape, ...] = ()
    """In file order."""
    edges: tuple[EdgeShape, ...] = ()
    """In file order; none where all nodes vote."""
    loops: tuple[LoopShape, ...] = ()
    start: tuple[str, ...] = ()
    """Ids of the nodes that get the task."""
    end: tuple[str, ...] = ()
    """Ids of the nodes whose output is the answer; none: the file does not say."""


def to_json(graph: GraphShape) -> dict[str, JsonValue]:
    """The shape as a JSON object; fields at their default are left out."""
    found: dict[str, JsonValue] = {"id": graph.id, "nodes": [_node(each) for each in graph.nodes]}
    if graph.edges:
        found["edges"] = [_edge(each) for each in graph.edges]
    if graph.loops:
        found["loops"] = [{"nodes": each.nodes, "bound": each.bound} for each in graph.loops]
    if graph.start:
        found["start"] = graph.start
    if graph.end:
        found["end"] = graph.end
    return found


def from_json(data: Mapping[str, JsonValue]) -> GraphShape:
    """The shape that `to_json` wrote; keys that are unknown are left out.

    Raises:
        KeyError: a field that must be there is missing.
    """
    known = [each.name for each in fields(EdgeShape)]
    return GraphShape(
        data["id"],
        tuple(
            NodeShape(each["id"], each["type"], from_json(inner) if inner else None)
            for each in data.get("nodes", ())
            for inner in [each.get("graph")]
        ),
        tuple(
            EdgeShape(**{name: each[name] for name in known if name in each})
            for each in data.get("edges", ())
        ),
        tuple(LoopShape(tuple(each["nodes"]), each.get("bound")) for each in data.get("loops", ())),
        tuple(data.get("start", ())),
        tuple(data.get("end", ())),
    )


def _node(node: NodeShape) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {"id": node.id, "type": node.type}
    if node.graph is not None:
        found["graph"] = to_json(node.graph)
    return found


def _edge(edge: EdgeShape) -> dict[str, JsonValue]:
    found: dict[str, JsonValue] = {"source": edge.source, "target": edge.target}
    if not edge.trigger:
        found["trigger"] = False
    if edge.dynamic:
        found["dynamic"] = edge.dynamic
    if edge.condition is not None:
        found["condition"] = edge.condition
    return found
