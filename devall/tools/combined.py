"""Several sources as one toolset, under names that every provider accepts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from devall.core.errors import SetupError, ToolNotFound
from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.tools.base import ChangingToolset, HidingToolset, ToolResult, Toolset, ToolSpec
from devall.tools.filtered import not_available
from devall.tools.names import nearest, public_name

LISTED = 40
"""How many names an error for an unknown tool lists at most."""


@dataclass(frozen=True, slots=True)
class Source:
    """A toolset, and what it is called in errors."""

    label: str
    toolset: Toolset
    required: bool = True
    """False: the others work without it where it cannot be opened."""
    own_name: str = ""
    """The prefix to propose where its tools collide with another's."""
    is_auto: bool = False
    """Whether that is its prefix already."""


class CombinedToolset:
    """Opens all sources at once; each tool is offered under its public name."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        self._specs: dict[str, ToolSpec] = {}
        self._routes: dict[str, tuple[Toolset, str]] = {}
        """Public name to the toolset and the name it knows the tool by."""
        self._opened: tuple[Source, ...] = ()
        self._gone: set[str] = set()
        """Names that were offered once."""
        self.left_out: tuple[tuple[Source, SetupError], ...] = ()
        """Sources that could not be opened and are not required."""

    async def open(self) -> None:
        """Open every source; what was opened is closed again where one that is required fails.

        Raises:
            SetupError: required sources cannot be used (all are named), or two tools have the
                same name.
        """
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(_open(each)) for each in self._sources]
            outcomes = [task.result() for task in tasks]
            failed = [
                (source, outcome)
                for source, outcome in zip(self._sources, outcomes, strict=True)
                if isinstance(outcome, SetupError)
            ]
            _raise_for([(source, error) for source, error in failed if source.required])
            self.left_out = tuple(failed)
            opened = [
                (source, outcome)
                for source, outcome in zip(self._sources, outcomes, strict=True)
                if not isinstance(outcome, SetupError)
            ]
            self._opened = tuple(source for source, _ in opened)
            self._specs, self._routes = _merged(opened)
        except BaseException:
            await self.aclose()
            raise

    async def refresh(self) -> Sequence[str]:
        """Take over the tools of sources that have others now; troubles met, in words.

        Where a source cannot tell its tools, or two tools came to have one name, everything
        stays as it was.
        """
        troubles: list[str] = []
        has_changed = False
        for source in self._opened:
            if isinstance(source.toolset, ChangingToolset):
                try:
                    has_changed |= await source.toolset.refresh()
                except SetupError as error:
                    troubles.append(f"{source.label}: {error}")
        if has_changed:
            try:
                found = [(source, await source.toolset.specs()) for source in self._opened]
                specs, routes = _merged(found)
            except SetupError as error:
                troubles.append(str(error))
            else:
                self._gone = (self._gone | self._specs.keys()) - specs.keys()
                self._specs, self._routes = specs, routes
        return troubles

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools of all sources, in their order."""
        return self.offered

    @property
    def offered(self) -> tuple[ToolSpec, ...]:
        """The tools of all sources, in their order."""
        return tuple(self._specs.values())

    def spec(self, name: str) -> ToolSpec:
        """The tool of a public name.

        Raises:
            ToolNotFound: no source offers it, or not to this node; the nearest names are given.
        """
        found = self._specs.get(name)
        if found is None and name in self._gone:
            raise ToolNotFound(f"tool `{name}` is no longer available: its server dropped it")
        if found is None and name in self._hidden():
            raise ToolNotFound(not_available(name))
        if found is None:
            raise ToolNotFound(_unknown(name, tuple(self._specs)))
        return found

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool by its public name."""
        self.spec(name)
        toolset, inner = self._routes[name]
        return await toolset.call(inner, arguments, scope, call_id)

    def _hidden(self) -> set[str]:
        """Public names of tools that sources keep from this node."""
        return {
            public_name(name)
            for source in self._opened
            if isinstance(source.toolset, HidingToolset)
            for name in source.toolset.hidden()
        }

    async def aclose(self) -> None:
        """Close every source."""
        self._specs.clear()
        self._routes.clear()
        for source in self._sources:
            await source.toolset.aclose()


Specs = dict[str, ToolSpec]
Routes = dict[str, tuple[Toolset, str]]


def _merged(opened: Sequence[tuple[Source, Sequence[ToolSpec]]]) -> tuple[Specs, Routes]:
    """The tools by their public names, and where each of them leads.

    Raises:
        SetupError: two tools have one name.
    """
    owners: dict[str, Source] = {}
    merged: Specs = {}
    routes: Routes = {}
    for source, specs in opened:
        for spec in specs:
            name = public_name(spec.name)
            if name in owners:
                raise SetupError(
                    f"tool `{name}` is offered twice:"
                    f" by {owners[name].label} and by {source.label}",
                    hint=_proposal(name, source),
                )
            owners[name] = source
            merged[name] = replace(spec, name=name)
            routes[name] = (source.toolset, spec.name)
    return merged, routes


def _proposal(name: str, source: Source) -> str:
    proposed = source.own_name or "b"
    if source.is_auto:
        return (
            f"they have the same name of their own: write a prefix, as in `prefix: {proposed}2`,"
            " or `exclude` the tool"
        )
    return (
        f"give one of them a prefix, as in `prefix: {proposed}` (the tool is then"
        f" `{proposed}_{name}`), or all of them `prefix: auto`, or `exclude` it"
    )


async def _open(source: Source) -> Sequence[ToolSpec] | SetupError:
    try:
        await source.toolset.open()
        return await source.toolset.specs()
    except SetupError as error:
        return error


def _raise_for(failed: Sequence[tuple[Source, SetupError]]) -> None:
    if not failed:
        return
    if len(failed) == 1:
        source, error = failed[0]
        raise SetupError(f"{source.label}: {error}", hint=error.hint) from error
    lines = [
        f"  {source.label}: {error}" + (f" ({error.hint})" if error.hint else "")
        for source, error in failed
    ]
    raise SetupError(
        f"{len(failed)} tool sources cannot be used:\n" + "\n".join(lines),
        hint="a source with `required: false` is left out where it cannot be used",
    ) from failed[0][1]


def _unknown(name: str, known: Sequence[str]) -> str:
    text = f"there is no tool `{name}` for this node"
    near = nearest(name, known)
    if near:
        text += f"; did you mean {' or '.join(f'`{each}`' for each in near)}?"
    if not known:
        return f"{text}; it has no tools"
    more = f" and {len(known) - LISTED} more" if len(known) > LISTED else ""
    return f"{text} Available: {', '.join(known[:LISTED])}{more}"
