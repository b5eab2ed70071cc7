"""What the agents of a workflow would really use, where it came from, and whether it answers."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from devall.core.errors import DevallError, SetupError
from devall.core.messages import JsonValue
from devall.core.outcome import outcome_of

if TYPE_CHECKING:
    from devall.loading.loader import LoadedGraph, LoadedWorkflow
    from devall.models.base import ModelChoice
    from devall.models.reach import Reached
    from devall.models.routes import Route
    from devall.nodes.crew import Overrides

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)|\$\(([A-Za-z_][A-Za-z0-9_]*):")

_ORIGINS = {"given": "the command line", "vars": "the file's `vars`"}


@dataclass(frozen=True, slots=True)
class Agent:
    """An agent, and what it would use."""

    node: str
    """Its id, `S/X` in a subgraph."""
    choice: ModelChoice
    route: Route
    error: DevallError | None
    """Why its model cannot be had."""
    sources: Mapping[str, str]
    """Of `provider`, `name`, `base_url`, `api_key` and `api_version`: where the value came from,
    in words."""
    used: frozenset[str]
    """Variables that something was taken from."""
    key_variable: str | None

    @property
    def target(self) -> tuple[str, str, str, str] | None:
        """What tells endpoints apart; None: there is nothing to try."""
        if self.error is not None or not self.route.url:
            return None
        return self.choice.provider, self.route.url, self.route.key, self.route.version

    def to_json(self) -> dict[str, JsonValue]:
        """The agent as `--json` prints it."""
        return {
            "node": self.node,
            "provider": {"value": self.choice.provider, "source": self.sources["provider"]},
            "model": {"value": self.choice.name, "source": self.sources["name"]},
            "endpoint": {
                "value": self.route.shown or None,
                "source": self.sources["base_url"],
            },
            "key": {
                "is_set": bool(self.route.key),
                "variable": self.key_variable,
                "source": self.sources["api_key"],
            },
            "api_version": {"value": self.route.version, "source": self.sources["api_version"]}
            if self.route.version
            else None,
            "protocol": self.choice.protocol,
            "error": error_object(self.error),
        }


def error_object(error: DevallError | None) -> dict[str, JsonValue] | None:
    """An error as `--json` prints it."""
    report = outcome_of(error).error if error is not None else None
    if report is None:
        return None
    return {"code": report.code, "message": report.message, "hint": report.hint or None}


def agents_of(loaded: LoadedWorkflow, overrides: Overrides) -> list[Agent]:
    """Every agent of a workflow, those of its subgraphs included."""
    return [
        _looked_at(loaded, graph, index, name, overrides)
        for graph, index, name in _agents(loaded.root, "")
    ]


def _agents(graph: LoadedGraph, prefix: str) -> Iterator[tuple[LoadedGraph, int, str]]:
    for index, node in enumerate(graph.config.nodes):
        if node.type == "agent":
            yield graph, index, prefix + node.id
    for name, child in graph.subgraphs.items():
        yield from _agents(child, f"{prefix}{name}/")


def _looked_at(
    loaded: LoadedWorkflow, graph: LoadedGraph, index: int, name: str, overrides: Overrides
) -> Agent:
    from devall.models.providers import looked_up
    from devall.models.routes import Route, find_route, provider_of
    from devall.models.weights import find
    from devall.nodes.agent import choice_of
    from devall.nodes.crew import check_variables

    node: Any = graph.config.nodes[index]
    written = choice_of(node.config)
    choice = overrides.apply(written, name)
    environ = loaded.environment.values
    error: SetupError | None = None
    route = Route()
    try:
        route = find_route(choice, provider_of(choice.provider), environ)
        if choice.provider == written.provider:
            check_variables(graph, index, name)
        provider, _ = looked_up(choice, environ)
        if provider.kind == "local":
            find(choice.name, environ)
    except SetupError as found:
        error = found
    traced = _Traced(loaded, graph, index)
    sources = {
        "provider": "--provider" if choice.provider != written.provider else traced.at("provider"),
        "name": "--model" if choice.name != written.name else traced.at("name"),
        "base_url": traced.of_route(route.url_source, "the provider's own"),
        "api_key": traced.of_route(route.key_source, "none is given"),
        "api_version": traced.of_route(route.version_source, "where nothing else is said"),
    }
    if not route.url:
        sources["base_url"] = "none" if error else "in this process"
    key_variable = route.key_source or None
    if key_variable == "api_key":
        key_variable = next(iter(traced.variables("api_key")), None)
    return Agent(
        name,
        choice,
        route,
        error,
        sources,
        frozenset(traced.used) | {*loaded.origins},
        key_variable,
    )


class _Traced:
    """Where the values of one agent came from."""

    def __init__(self, loaded: LoadedWorkflow, graph: LoadedGraph, index: int) -> None:
        self._loaded = loaded
        self._graph = graph
        self._index = index
        self.used: set[str] = set()

    def at(self, *keys: str) -> str:
        """The place of a key in the file, and the variables that stand there."""
        position = self._graph.locate(("nodes", self._index, "config", *keys))
        place = f"{position.file}:{position.line}" if position.line else position.file
        return ", ".join((place, *(self._told(name) for name in self.variables(*keys))))

    def variables(self, *keys: str) -> list[str]:
        """The variables in the value of a key."""
        position = self._graph.locate(("nodes", self._index, "config", *keys))
        text = self._loaded.texts.get(str(self._graph.file.resolve()), "")
        lines = text.splitlines()
        if not 0 < position.line <= len(lines):
            return []
        line = lines[position.line - 1][max(position.column - 1, 0) :]
        # What follows on the line in flow style is another key's.
        value = re.split(r",\s*\w+:|\}\s*$", line, maxsplit=1)[0]
        return [found[1] or found[2] for found in _VARIABLE.finditer(value)]

    def of_route(self, source: str, otherwise: str) -> str:
        """A source of a route in words."""
        if source in {"base_url", "api_key"}:
            return self.at(source)
        if source == "api_version":
            return self.at("params", source)
        if source == "api-version":
            return "the endpoint's URL"
        if not source:
            return otherwise
        self.used.add(source)
        return f"{source} of {self._loaded.environment.origin(source)}"

    def _told(self, name: str) -> str:
        """A variable of the file, and where its value came from."""
        origin = self._loaded.origins.get(name)
        if origin is None:
            return f"${{{name}}} is not set: its default"
        return f"${{{name}}} of {_ORIGINS.get(origin, origin)}"


def warnings_of(agents: Sequence[Agent], environ: Mapping[str, str]) -> list[str]:
    """Variables that are set and that no agent takes anything from."""
    from devall.cli.doctor_variables import unread

    used = frozenset[str]().union(*(agent.used for agent in agents))
    names = {agent.choice.provider for agent in agents}
    return list(unread(environ, used, names))


@dataclass(frozen=True, slots=True)
class Tried:
    """An endpoint that was tried, and the agents that would use it."""

    agents: tuple[Agent, ...]
    reached: Reached

    @property
    def notes(self) -> list[str]:
        """What is doubtful, though the endpoint answers."""
        return [
            f"it does not list the model {name}"
            for name in dict.fromkeys(agent.choice.name for agent in self.agents)
            if self.reached.lists(name) is False
        ]

    def to_json(self) -> dict[str, JsonValue]:
        """The endpoint as `--json` prints it."""
        first = self.agents[0]
        return {
            "endpoint": first.route.shown,
            "provider": first.choice.provider,
            "nodes": [agent.node for agent in self.agents],
            "seconds": round(self.reached.seconds, 3),
            "by": self.reached.by or None,
            "notes": self.notes,
            "error": error_object(self.reached.error),
        }


async def tried(agents: Sequence[Agent], environ: Mapping[str, str]) -> list[Tried]:
    """Try each endpoint once, all at the same time."""
    from devall.models.reach import reach

    groups: dict[tuple[str, str, str, str], list[Agent]] = {}
    for agent in agents:
        if agent.target is not None:
            groups.setdefault(agent.target, []).append(agent)
    found = await asyncio.gather(*(reach(group[0].choice, environ) for group in groups.values()))
    return [Tried(tuple(g), each) for g, each in zip(groups.values(), found, strict=True)]
