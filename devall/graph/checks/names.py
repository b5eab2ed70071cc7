"""Rules about names that must be known elsewhere: functions, memory stores, tools."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Protocol, runtime_checkable

from devall.config.agents import PROVIDERS, THINKING_KINDS, AgentConfig, Params
from devall.config.edges import FunctionCondition, FunctionProcess
from devall.config.nodes import AgentNode
from devall.config.prefixes import prefix_of
from devall.config.tools import FunctionSource
from devall.core.diagnostics import Diagnostic
from devall.graph.checks.shape import Shape
from devall.loading.keys import SENT_PARAMS, nearest
from devall.loading.places import Path
from devall.plugins.functions import ALL, Kind, Trouble


class FunctionNames(Protocol):
    """What is known of functions by name, without importing any."""

    def check(self, kind: Kind, name: str) -> Trouble | None:
        """What is wrong with a name; None = it stands for a function."""
        ...


@runtime_checkable
class ToolNames(Protocol):
    """Tells which tools a name stands for; a catalogue may know that."""

    def tool_names(self, name: str) -> tuple[str, ...]:
        """The names of the tools that `module:All` or another name stands for."""
        ...


@runtime_checkable
class FunctionFiles(Protocol):
    """Tells which files of functions do not import; a catalogue may know that."""

    def warnings(self, kind: Kind) -> tuple[str, ...]:
        """The files of a kind that do not import, as `file:line: reason`."""
        ...


def check_functions(shape: Shape, functions: FunctionNames) -> Iterator[Diagnostic]:
    """Functions that edges and agents name, and that are not there."""
    for way in shape.ways:
        edge, path = way.edge, ("edges", way.index)
        if not way.is_sound:
            continue
        subject = f"edge {edge.from_} -> {edge.to}"
        if isinstance(edge.condition, FunctionCondition):
            at = (*path, "condition", "config", "name")
            name = edge.condition.config.name
            yield from _check_function(shape, functions, "edge", name, at, subject)
        if isinstance(edge.process, FunctionProcess):
            at = (*path, "process", "config", "name")
            name = edge.process.config.name
            yield from _check_function(shape, functions, "edge_processor", name, at, subject)
    found: list[Diagnostic] = []
    first: Path | None = None
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode):
            continue
        for source, at in _function_sources(node.config, number):
            first = first or at
            for index, tool in enumerate(source.config.tools):
                path = (*at, index, "name")
                subject = f"node {node.id}"
                found += _check_function(shape, functions, "tool", tool.name, path, subject)
    yield from found
    if first is not None and isinstance(functions, FunctionFiles):
        for broken in functions.warnings("tool"):
            if not any(broken in each.message for each in found):
                text = f"a file of tools does not import, and what it defines is missing: {broken}"
                yield shape.diagnostic("broken-functions", text, first)


def check_thinking(shape: Shape, functions: FunctionNames) -> Iterator[Diagnostic]:
    """Kinds of thinking that are neither ours nor the project's."""
    for number, node in enumerate(shape.nodes):
        thinking = node.config.thinking if isinstance(node, AgentNode) else None
        if thinking is None or thinking.type in THINKING_KINDS:
            continue
        trouble = functions.check("thinking", thinking.type)
        if trouble is None:
            continue
        near = nearest(thinking.type, THINKING_KINDS)
        known = ", ".join(THINKING_KINDS)
        hint = trouble.hint.replace("known: ", f"known: {known}, ", 1)
        if near:
            hint = f"did you mean `{near[0]}`?"
        yield shape.diagnostic(
            "unknown-thinking",
            f"node {node.id}: {trouble.message}",
            ("nodes", number, "config", "thinking", "type"),
            hint or f"known: {known}; others are functions of functions/thinking/",
            "error",
        )


def check_memory(shape: Shape) -> Iterator[Diagnostic]:
    """Stores that agents name, and that are not there; names that two stores have."""
    known: dict[str, int] = {}
    for index, store in enumerate(shape.loaded.config.memory):
        if store.name in known:
            yield shape.diagnostic(
                "duplicate-memory",
                f"there is a memory store `{store.name}` already",
                ("memory", index, "name"),
                "names of stores are unique",
                "error",
            )
        known.setdefault(store.name, index)
    if "memory" in shape.loaded.flaws.keys:
        return
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode):
            continue
        for index, attached in enumerate(node.config.memories):
            if attached.name in known:
                continue
            near = nearest(attached.name, known)
            hint = f"did you mean `{near[0]}`?" if near else f"known: {', '.join(known)}"
            if not known:
                hint = "the graph has no `memory`: define the store there"
            yield shape.diagnostic(
                "unknown-memory",
                f"node {node.id}: there is no memory store `{attached.name}`",
                ("nodes", number, "config", "memories", index, "name"),
                hint,
                "error",
            )


def check_providers(shape: Shape) -> Iterator[Diagnostic]:
    """Providers that do not ship with the package: a program that embeds it may bring others."""
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode) or node.config.provider in PROVIDERS:
            continue
        near = nearest(node.config.provider, PROVIDERS)
        asked = f"did you mean `{near[0]}`? " if near else ""
        yield shape.diagnostic(
            "unknown-provider",
            f"node {node.id}: there is no provider `{node.config.provider}`",
            ("nodes", number, "config", "provider"),
            f"{asked}known: {', '.join(PROVIDERS)}; `--provider` gives the node another one",
        )


def check_params(shape: Shape) -> Iterator[Diagnostic]:
    """Settings of models that look like well-known ones, misspelt: they would be sent as they are.

    The endpoint may know more than the well-known ones, so only a close likeness counts.
    """
    own = Params.model_fields.keys() | SENT_PARAMS
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode):
            continue
        for key in sorted(node.config.params.sent.keys() - own):
            near = difflib.get_close_matches(key.lower(), sorted(own), 1, 0.85)
            if near:
                yield shape.diagnostic(
                    "unknown-param",
                    f"node {node.id}: `{key}` is sent to the model as it stands",
                    ("nodes", number, "config", "params", key),
                    f"did you mean `{near[0]}`?",
                )


def check_tools(shape: Shape, functions: FunctionNames) -> Iterator[Diagnostic]:
    """Tools of one agent that have the same name, as far as it can be told beforehand."""
    for number, node in enumerate(shape.nodes):
        if not isinstance(node, AgentNode):
            continue
        seen: dict[str, tuple[Path, str]] = {}
        for source, at in _function_sources(node.config, number):
            prefix = prefix_of(source)
            for index, tool in enumerate(source.config.tools):
                for own in _names(tool.name, functions):
                    if not _is_offered(own, source):
                        continue
                    prefix = prefix_of(source)
                    name = f"{prefix}_{own}" if prefix else own
                    first = seen.setdefault(name, ((*at, index), tool.name))
                    if first[0] == (*at, index):
                        continue
                    is_same = first[0][:-1] == at and not _are_different(first[1], tool.name)
                    yield shape.diagnostic(
                        "duplicate-tool",
                        f"node {node.id}: two tools are called `{name}`",
                        (*at, index, "name"),
                        "leave one of them out"
                        if is_same
                        else "give one source a `prefix`, or all of them `prefix: auto`",
                        "warning" if is_same else "error",
                    )


def tool_names(config: AgentConfig, functions: FunctionNames) -> set[str] | None:
    """The names that an agent's tools have for its model; None = they are not all known here."""
    found: set[str] = set()
    for source in config.tooling:
        if not isinstance(source, FunctionSource):
            return None
        prefix = prefix_of(source)
        for tool in source.config.tools:
            names = _names(tool.name, functions)
            if not names:
                return None
            found.update(
                f"{prefix}_{name}" if prefix else name
                for name in names
                if _is_offered(name, source)
            )
    return found


def _check_function(
    shape: Shape, functions: FunctionNames, kind: Kind, name: str, path: Path, subject: str
) -> Iterator[Diagnostic]:
    trouble = functions.check(kind, name)
    if trouble is not None:
        message = f"{subject}: {trouble.message}"
        yield shape.diagnostic("unknown-function", message, path, trouble.hint, "error")


def _function_sources(
    config: AgentConfig, number: int
) -> Iterator[tuple[FunctionSource, tuple[str | int, ...]]]:
    for index, source in enumerate(config.tooling):
        if isinstance(source, FunctionSource):
            yield source, ("nodes", number, "config", "tooling", index, "config", "tools")


def _names(name: str, functions: FunctionNames) -> tuple[str, ...]:
    """The tools' own names, as far as they are known."""
    module, colon, attribute = name.partition(":")
    if attribute == ALL:
        return functions.tool_names(name) if isinstance(functions, ToolNames) else ()
    return (attribute.rpartition(".")[2] if colon else module,)


def _is_offered(name: str, source: FunctionSource) -> bool:
    included = not source.include or any(fnmatchcase(name, each) for each in source.include)
    return included and not any(fnmatchcase(name, each) for each in source.exclude)


def _are_different(first: str, second: str) -> bool:
    """Whether two names of one source are certainly those of two functions."""
    one, other = first.partition(":"), second.partition(":")
    return bool(one[1] and other[1]) and one[0] != other[0]
