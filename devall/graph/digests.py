"""What of each node decides what its runs do, as a short digest: to see what was changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator

from devall.config.nodes import AgentNode, SubgraphNode
from devall.core.messages import JsonValue
from devall.graph.model import Plan, PlanNode

_BESIDE = {"description", "log_output", "timeout", "on_error", "limits"}
"""Keys of a node that decide how long and how well it runs, and not what comes of it."""
_BESIDE_OF_AGENTS = {"api_key": True, "base_url": True, "retry": True, "params": {"timeout"}}


def digests(
    plan: Plan, redact: Callable[[JsonValue], JsonValue], prefix: str = ""
) -> dict[str, str]:
    """A digest of each node by name (`S/X` in a subgraph), and of the edges into it.

    Args:
        plan: The graph.
        redact: Takes secrets out: a digest is written down.
        prefix: Of the nodes' names.
    """
    found = {
        prefix + node.id: hashlib.sha256(_text(plan, node, redact).encode()).hexdigest()[:16]
        for node in plan.nodes
    }
    for name, child in plan.subplans.items():
        found |= digests(child, redact, f"{prefix}{name}/")
    return found


def following(plan: Plan, names: set[str], prefix: str = "") -> Iterator[str]:
    """The nodes that come after any of some, in file order, those excepted."""
    by_name = {prefix + node.id: node.index for node in plan.nodes}
    inner = {
        name
        for name, child in plan.subplans.items()
        if names & {f"{prefix}{name}/{each}" for each in _all_names(child)}
    }
    todo = [index for name, index in by_name.items() if name in names]
    todo += [by_name[prefix + name] for name in inner]
    seen: set[int] = set()
    while todo:
        for edge in plan.nodes[todo.pop()].out_edges:
            target = plan.edges[edge].target
            if target not in seen:
                seen.add(target)
                todo.append(target)
    for node in plan.nodes:
        name = prefix + node.id
        if node.index in seen and name not in names:
            yield name
        elif node.id in inner:
            yield from following(plan.subplans[node.id], names, f"{name}/")


def _all_names(plan: Plan, prefix: str = "") -> Iterator[str]:
    for node in plan.nodes:
        yield prefix + node.id
    for name, child in plan.subplans.items():
        yield from _all_names(child, f"{prefix}{name}/")


def _text(plan: Plan, node: PlanNode, redact: Callable[[JsonValue], JsonValue]) -> str:
    left_out: dict[str, object] = dict.fromkeys(_BESIDE, True)
    if isinstance(node.config, AgentNode):
        left_out["config"] = _BESIDE_OF_AGENTS
    if isinstance(node.config, SubgraphNode):  # its nodes have digests of their own
        left_out["config"] = {"config"}
    config = node.config.model_dump(mode="json", exclude=left_out)  # pyright: ignore[reportArgumentType] -- nested
    edges = [plan.edges[index].config.model_dump(mode="json") for index in node.in_edges]
    return json.dumps(redact([config, edges]), sort_keys=True)
