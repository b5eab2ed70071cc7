"""The agents of a workflow and the sources of tools that they are bound to."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.core.errors import SetupError, UsageError

if TYPE_CHECKING:
    from devall.config.nodes import AgentNode
    from devall.config.tools import ToolSource
    from devall.core.diagnostics import Position
    from devall.core.events import Event
    from devall.loading.loader import LoadedGraph, LoadedWorkflow
    from devall.telemetry.redaction import Redactor
    from devall.tools.survey import Survey


@dataclass(frozen=True, slots=True)
class Bound:
    """An agent and its sources of tools."""

    node: str
    """Its id, `S/X` in a subgraph."""
    sources: tuple[ToolSource, ...]
    places: tuple[Position, ...]
    """Where each source stands; one that an option adds stands where the node does."""
    base: Path
    """The folder of its file."""
    missing: SetupError | None = None
    """Set where a variable that the sources need is not set."""
    skills: tuple[str, ...] | None = None
    """The skills that it may open; None = it has no tools for that."""


def bound_agents(
    loaded: LoadedWorkflow, node: str | None = None, ex_tools: Sequence[str] = ()
) -> list[Bound]:
    """The agents that have tools, in the order of the files.

    Args:
        loaded: The workflow.
        node: Only this one.
        ex_tools: Tools that every agent has beside its own.

    Raises:
        UsageError: there is no such agent.
        SetupError: EX_TOOLS is not well written.
    """
    from devall.tools.extra import extra_names

    extra = extra_names(ex_tools, loaded.environment.values)
    agents = list(_agents(loaded.root, ""))
    known = [name for name, _, _, _ in agents]
    wanted = [n for n in known if node in {None, n, n.rpartition("/")[2]}]
    if node is not None and not wanted:
        near = difflib.get_close_matches(node, known, 1)
        raise UsageError(
            f"there is no agent {node}",
            hint=f"did you mean {near[0]}?" if near else f"agents: {', '.join(known) or 'none'}",
        )
    found = [_bound(*agent, extra) for agent in agents if agent[0] in wanted]
    return [e for e in found if e.sources or e.skills is not None or node is not None]


def redactor_for(loaded: LoadedWorkflow) -> Redactor:
    """What hides the secrets of a workflow and of the environment."""
    from devall.telemetry.redaction import Redactor, environment_secrets

    return Redactor(loaded.secrets | environment_secrets(loaded.environment.values))


async def surveys(
    loaded: LoadedWorkflow,
    agents: Sequence[Bound],
    *,
    connect: bool,
    functions_dir: Path | None = None,
) -> list[Survey]:
    """What the sources of each agent are; a server that several agents have is asked once.

    Args:
        loaded: The workflow.
        agents: Of it.
        connect: Whether servers are started or reached.
        functions_dir: The project's own functions.
    """
    from devall.core.events import Warned
    from devall.plugins.project import functions_for
    from devall.tools.mcp.pool import McpServers
    from devall.tools.survey import Surveyor

    warnings: list[str] = []

    def take(event: Event) -> None:
        if isinstance(event, Warned):
            warnings.append(event.message)

    async with McpServers(emit=take, redact=redactor_for(loaded).text) as servers:
        functions = functions_for(loaded.path, functions_dir)
        surveyor = Surveyor(functions, servers, warnings, connect)
        return [await surveyor.survey(each.sources, each.base) for each in agents]


def _agents(graph: LoadedGraph, prefix: str) -> Iterator[tuple[str, LoadedGraph, int, AgentNode]]:
    for index, node in enumerate(graph.config.nodes):
        if node.type == "agent":
            yield prefix + node.id, graph, index, node
        elif node.type == "subgraph":
            yield from _agents(graph.subgraphs[node.id], f"{prefix}{node.id}/")


def _bound(
    name: str, graph: LoadedGraph, index: int, node: AgentNode, extra: Sequence[str]
) -> Bound:
    from devall.tools.extra import with_extra

    own = node.config.tooling
    sources = with_extra(own, extra)
    here = graph.locate(("nodes", index))
    places = [_place(graph, index, number) for number in range(len(own))]
    places += [here] * (len(sources) - len(own))
    missing = next(
        (
            SetupError(
                f"node {name}: variable {variable} is not set ({position})",
                hint="set it in the environment or in .env",
            )
            for path, variable, position in graph.missing_variables
            if path[:4] == ("nodes", index, "config", "tooling")
        ),
        None,
    )
    skills = _skills(node, graph.file)
    return Bound(name, sources, tuple(places), graph.file.parent, missing, skills)


def _skills(node: AgentNode, file: Path) -> tuple[str, ...] | None:
    wanted = node.config.skills
    if not wanted.enabled:
        return None
    from devall.loading.skills import find_skills

    allowed = {each.name for each in wanted.allow}
    return tuple(n for n in find_skills(file).skills if n in allowed or not allowed)


def _place(graph: LoadedGraph, index: int, number: int) -> Position:
    return graph.locate(("nodes", index, "config", "tooling", number))
