"""What is left of a broken file for the rules to look at, so that one mistake hides no other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from devall.core.messages import JsonValue
from devall.loading import keys
from devall.loading.diagnostics import Finding
from devall.loading.places import Path

UNKNOWN = "\0"
"""In place of an id that cannot be known; behind it may follow the node's number."""

_STRUCTURE = ("start", "end", "nodes", "edges", "memory")


@dataclass(frozen=True, slots=True)
class Flaws:
    """Which parts of a graph stand in for something broken: nothing is to be said about them."""

    keys: frozenset[str] = frozenset()
    """Keys of the graph whose value is not known."""
    nodes: frozenset[int] = frozenset()
    """Positions of nodes of which at most the id is known."""
    edges: frozenset[int] = frozenset()
    """Positions of edges of which at most `from` and `to` are known."""


NO_FLAWS = Flaws()

Broken: TypeAlias = dict[Path, bool]
"""Paths of what is broken, and whether it is only an unknown key."""


def repair(
    root: Mapping[str, JsonValue], findings: Iterable[Finding], unknown: Iterable[Path]
) -> tuple[dict[str, JsonValue], dict[Path, Flaws]]:
    """A file's values with stand-ins for all that is broken; the flaws of each graph, by path.

    Args:
        root: The file's values.
        findings: What is wrong with them.
        unknown: Values that could not be worked out.
    """
    broken: Broken = dict.fromkeys(unknown, False)
    for finding in findings:
        is_stray = finding.diagnostic.code == "unknown-key"
        broken[finding.path] = is_stray and broken.get(finding.path, True)
    tops = {path[0] for path in broken if path and (len(path) == 1 or path[0] != "graph")}
    left = {key: value for key, value in root.items() if key not in tops or key == "graph"}
    flaws: dict[Path, Flaws] = {}
    inner = {path[1:]: stray for path, stray in broken.items() if path[:1] == ("graph",)}
    strays = [key for key in tops if isinstance(key, str) and key != "graph"]
    left["graph"] = _graph(root.get("graph"), inner, ("graph",), flaws, strays)
    return left, flaws


def _graph(
    raw: JsonValue, broken: Broken, path: Path, flaws: dict[Path, Flaws], strays: list[str]
) -> dict[str, JsonValue]:
    """A graph of which every part is legal."""
    if not isinstance(raw, dict) or () in broken:
        flaws[path] = Flaws(frozenset(_STRUCTURE))
        return {"start": [], "nodes": []}
    graph = dict(cast("dict[str, JsonValue]", raw))
    items: dict[str, dict[int, Broken]] = defaultdict(lambda: defaultdict(dict))
    lost: set[str] = set()
    for where, is_stray in broken.items():
        key = where[0]
        if len(where) > 1 and isinstance(where[1], int) and isinstance(graph.get(str(key)), list):
            items[str(key)][where[1]][where[2:]] = is_stray
            continue
        lost.add(str(key))
        graph.pop(str(key), None)
    # A misspelt or misplaced `edges` says nothing about what the graph has.
    for stray in [*lost, *strays]:
        lost.update(near for near in keys.nearest(stray, _STRUCTURE) if near not in graph)
    graph.setdefault("start", [])
    graph.setdefault("nodes", [])

    nodes = list(cast("list[JsonValue]", graph["nodes"]))
    bad_nodes: set[int] = set()
    for index, wrong in items.pop("nodes", {}).items():
        here = (*path, "nodes", index)
        nodes[index], is_sound = _node(nodes[index], index, wrong, here, flaws)
        if not is_sound:
            bad_nodes.add(index)
    graph["nodes"] = nodes
    bad_edges = items.pop("edges", {})
    if bad_edges:
        edges = cast("list[JsonValue]", graph["edges"])
        graph["edges"] = [
            _edge(edge, bad_edges[index]) if index in bad_edges else edge
            for index, edge in enumerate(edges)
        ]
    bad_stores = items.pop("memory", {})
    if bad_stores:
        stores = cast("list[JsonValue]", graph["memory"])
        named = [
            _store(store) if index in bad_stores else store for index, store in enumerate(stores)
        ]
        if None in named:
            lost.add("memory")
        graph["memory"] = [each for each in named if each is not None]
    for key in items:  # an item of `start` or `end`
        lost.add(key)
        graph.pop(key)
        graph.setdefault("start", [])
    flaws[path] = Flaws(frozenset(lost), frozenset(bad_nodes), frozenset(bad_edges))
    return graph


def _node(
    raw: JsonValue, index: int, broken: Broken, path: Path, flaws: dict[Path, Flaws]
) -> tuple[JsonValue, bool]:
    """A node that is legal, and whether it is still the one that was written."""
    node = dict(cast("dict[str, Any]", raw)) if isinstance(raw, dict) else {}
    rest = {
        where: is_stray
        for where, is_stray in broken.items()
        if not (is_stray and len(where) == 1 and node.pop(str(where[0]), None) is not None)
    }
    if not rest and isinstance(raw, dict):
        return node, True
    config = node.get("config")
    if node.get("type") == "subgraph" and isinstance(config, dict):
        block = dict(cast("dict[str, Any]", config))
        prefix = ("config", "config")
        if block.get("type") == "config" and all(where[:2] == prefix for where in rest):
            inner = {where[2:]: is_stray for where, is_stray in rest.items()}
            block["config"] = _graph(block.get("config"), inner, (*path, *prefix), flaws, [])
            return node | {"config": block}, True
    stray = _without_strays(node, rest)
    if stray is not None:
        return stray, True
    name = node.get("id")
    is_named = isinstance(name, str) and name and ("id",) not in rest
    return {"id": name if is_named else f"{UNKNOWN}{index}", "type": "passthrough"}, False


def _without_strays(node: dict[str, Any], broken: Broken) -> dict[str, Any] | None:
    """The node without its unknown keys, at any depth; None if more than these is wrong."""
    if not all(broken.values()):
        return None
    for where in broken:
        node = _without(node, where)
    return node


def _without(value: Any, path: Path) -> Any:
    head, *rest = path
    if isinstance(value, list):
        items = list(cast("list[Any]", value))
        items[cast("int", head)] = _without(items[cast("int", head)], tuple(rest))
        return items
    mapping = dict(cast("dict[str, Any]", value))
    if not rest:
        mapping.pop(cast("str", head), None)
    else:
        mapping[cast("str", head)] = _without(mapping[cast("str", head)], tuple(rest))
    return mapping


def _edge(raw: JsonValue, broken: Broken) -> JsonValue:
    """An edge of which at most the ends are known."""
    edge = cast("dict[str, JsonValue]", raw) if isinstance(raw, dict) else {}
    ends = {
        key: value if isinstance(value, str) and value and (key,) not in broken else UNKNOWN
        for key in ("from", "to")
        for value in (edge.get(key),)
    }
    return cast("JsonValue", ends)


def _store(raw: JsonValue) -> JsonValue | None:
    """A store of which only the name is known."""
    name = cast("dict[str, JsonValue]", raw).get("name") if isinstance(raw, dict) else None
    if not isinstance(name, str) or not name:
        return None
    return {"name": name, "type": "blackboard"}
