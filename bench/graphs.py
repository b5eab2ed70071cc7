"""The workflows that are measured."""

from __future__ import annotations

from typing import Any

Mapping = dict[str, Any]


def _node(index: int) -> Mapping:
    """Literals and passthroughs by turns."""
    if index % 2 == 0:
        return {"id": f"n{index}", "type": "literal", "config": {"content": f"text {index}"}}
    return {"id": f"n{index}", "type": "passthrough"}


def chain(count: int) -> Mapping:
    """Each node behind the other."""
    edges = [{"from": f"n{at}", "to": f"n{at + 1}"} for at in range(count - 1)]
    return {"graph": {"start": "n0", "nodes": [_node(at) for at in range(count)], "edges": edges}}


def wide(count: int) -> Mapping:
    """One node, a layer of all others, one node."""
    first, last = {"id": "first", "type": "passthrough"}, {"id": "last", "type": "passthrough"}
    between = [_node(at) for at in range(count - 2)]
    edges = [{"from": "first", "to": node["id"]} for node in between]
    edges += [{"from": node["id"], "to": "last"} for node in between]
    return {"graph": {"start": "first", "nodes": [first, *between, last], "edges": edges}}


def agents(count: int) -> Mapping:
    """One literal, and so many agents beside each other."""
    nodes: list[Mapping] = [{"id": "L", "type": "literal", "config": {"content": "hello"}}]
    nodes += [agent(f"A{at}", "m") for at in range(count)]
    edges = [{"from": "L", "to": node["id"]} for node in nodes[1:]]
    return {"graph": {"start": "L", "nodes": nodes, "edges": edges}}


def agent(name: str, model: str) -> Mapping:
    """An agent at the endpoint of the environment."""
    return {"id": name, "type": "agent", "config": {"provider": "openai", "name": model}}


def branches() -> Mapping:
    """Two branches of unequal nodes: the slow node of one stands beside the quick of the other."""
    nodes = [
        {"id": "L", "type": "literal", "config": {"content": "hello"}},
        agent("A1", "slow"),
        agent("A2", "quick"),
        agent("B1", "quick"),
        agent("B2", "slow"),
        {"id": "J", "type": "passthrough"},
    ]
    ways = [("L", "A1"), ("A1", "A2"), ("L", "B1"), ("B1", "B2"), ("A2", "J"), ("B2", "J")]
    edges = [{"from": source, "to": target} for source, target in ways]
    return {"graph": {"start": "L", "nodes": nodes, "edges": edges}}
