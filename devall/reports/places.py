"""Where in its file a node stands."""

from __future__ import annotations

from collections.abc import Iterator

from devall.core.diagnostics import Position
from devall.loading.loader import LoadedGraph


def places_of(graph: LoadedGraph, prefix: str = "") -> Iterator[tuple[str, Position]]:
    """The name and the place of each node in file order, those of a subgraph after its node.

    The name is a node's id, `S/X` in a subgraph; the place is in the file it is written in.
    """
    for index, node in enumerate(graph.config.nodes):
        yield prefix + node.id, graph.locate(("nodes", index))
        if node.id in graph.subgraphs:
            yield from places_of(graph.subgraphs[node.id], f"{prefix}{node.id}/")
