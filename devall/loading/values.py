"""Plain values of a file whose shape nobody has checked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from devall.core.messages import JsonValue
from devall.loading.diagnostics import value_at
from devall.loading.places import Path


def members(value: Any) -> dict[str, Any]:
    """The members of a mapping; of anything else none."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def member(value: Any, key: str) -> Any:
    """The value of a key; None where there is none, or no mapping."""
    return members(value).get(key)


def items(value: Any) -> list[Any]:
    """The items of a list; of anything else none."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def graph_paths(root: JsonValue) -> Iterator[Path]:
    """The paths of all graphs of a workflow, those within its nodes included."""
    waiting: list[Path] = [("graph",)]
    for path in waiting:  # it grows
        if isinstance(value_at(root, path), dict):
            yield path
        for index, node in enumerate(items(value_at(root, (*path, "nodes")))):
            config = member(node, "config")
            if member(node, "type") == "subgraph" and member(config, "type") == "config":
                waiting.append((*path, "nodes", index, "config", "config"))
