"""What a picture shows of a run: how often its nodes ran, how long, and how they ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

State = Literal["completed", "failed", "skipped", "waiting", "cancelled", "running"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCourse:
    """What a node did in a run."""

    state: State
    """How its last run ended."""
    runs: int = 0
    seconds: float = 0
    """Of all its runs together."""
    units: int = 0
    """Units of dynamic edges, of all its runs together."""
    models: tuple[str, ...] = ()
    """The models that it asked, `provider: name`, where it asked any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What a run did, by the names that a drawing knows."""

    nodes: Mapping[str, NodeCourse] = field(default_factory=dict[str, NodeCourse])
    """By id, `S/X` in a subgraph; a node that is not named did not begin."""
    edges: Mapping[tuple[str, int], int] = field(default_factory=dict[tuple[str, int], int])
    """How often an edge fired, by its graph (empty for the root, `S` for what stands in node S)
    and its position in the list of edges, from 0."""
    rounds: Mapping[frozenset[str], int] = field(default_factory=dict[frozenset[str], int])
    """Rounds of a loop, by the ids of its nodes as the drawing has them."""
