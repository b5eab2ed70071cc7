"""What an estimate starts from beside the graph: the task, and what each agent has to hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from devall.agents.skills import Card
from devall.core.messages import Message
from devall.models.base import ToolSchema


@dataclass(frozen=True, slots=True)
class OfferedTool:
    """A tool of an agent, and how long its results may be."""

    schema: ToolSchema
    most_chars: int


@dataclass(frozen=True, slots=True)
class ToolSide:
    """One source of tools of an agent."""

    label: str
    """What it is called: `mcp_remote http://...`, `functions a, b`."""
    state: str
    """`known`, `not contacted`, or why its tools are not known."""
    tools: tuple[OfferedTool, ...] = ()
    most_chars: int = 0
    """Characters of a result that are kept."""
    is_known: bool = True
    """Whether `tools` are its tools."""
    is_server: bool = False


@dataclass(frozen=True, slots=True)
class AgentFacts:
    """What one agent has to hand."""

    provider: str
    model: str
    sources: tuple[ToolSide, ...] = ()
    skills: Sequence[Card] = ()
    schema: str = ""
    """What the agent is told of the form of its answer."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of one run that is planned."""

    task: Message | None = None
    """None: not given, though the workflow needs one."""
    agents: Mapping[str, AgentFacts] = field(default_factory=dict[str, AgentFacts])
    """By name, `S/X` in a subgraph."""
    units: int | None = None
    """How many units each dynamic edge is taken to make where that is not known."""
