"""What an estimate says: of each node, each loop, and of the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from devall.estimates.agent import Prompt
from devall.estimates.bounds import Bound
from devall.estimates.costs import Cost, Largest, Least
from devall.estimates.facts import ToolSide
from devall.estimates.rounds import Rounds

Units = Literal["known", "assumed", "unknown"]


@dataclass(frozen=True, slots=True)
class AgentValue:
    """What an agent is asked with."""

    provider: str
    model: str
    window: int | None
    answer: Bound
    """Tokens of one answer."""
    is_answer_given: bool
    """Whether the file says how long an answer may be."""
    prompt: Prompt
    inputs: Bound
    """Tokens of the messages that one run sees."""
    largest: Largest
    calls: Bound
    """Model calls of one run."""
    attempts: int
    turns: Bound
    repairs: int
    thoughts: Bound
    sources: tuple[ToolSide, ...]
    skills: tuple[str, ...]
    memories: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class NodeValue:
    """A node, in all its runs together."""

    name: str
    """Its id, `S/X` in a subgraph."""
    type: str
    runs: Bound
    """For a node with units: one for each."""
    least: Least
    cost: Cost
    seconds: Bound
    """Of one run, that of all its units included."""
    each: Cost
    """Of one run, or of one unit."""
    units: Units | None = None
    """Set for a node with a dynamic edge into it: whether the number of units is known."""
    agent: AgentValue | None = None


@dataclass(frozen=True, slots=True)
class LoopValue:
    """A loop, in all its rounds together."""

    nodes: tuple[str, ...]
    """Names of its nodes, those of inner loops included."""
    rounds: Rounds
    """Each time it is entered."""
    cost: Cost
    stages: tuple[Stage, ...]


Step = str | LoopValue
Stage = tuple[Step, ...]
"""What may run side by side."""


@dataclass(frozen=True, slots=True)
class GraphValue:
    """A graph, or a subgraph in all its runs together."""

    name: str
    """The subgraph's node; empty: the workflow."""
    stages: tuple[Stage, ...]
    nodes: tuple[NodeValue, ...]
    """Its own, in file order."""
    subgraphs: tuple[GraphValue, ...]
    cost: Cost
    largest: Largest
    """Of its model calls."""
    least: Least
    seconds: Bound
    """Of one run, without waiting for humans."""

    def all_nodes(self) -> tuple[NodeValue, ...]:
        """Its nodes, those of subgraphs behind their node."""
        inner = {each.name: each for each in self.subgraphs}
        found: list[NodeValue] = []
        for node in self.nodes:
            found.append(node)
            if node.name in inner:
                found += inner[node.name].all_nodes()
        return tuple(found)
