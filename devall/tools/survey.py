"""What each source of a node offers, asked one by one, so that one that fails hides no other."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from devall.config.tools import FunctionSource, McpLocalSource, McpRemoteSource, ToolSource
from devall.core.errors import SetupError
from devall.core.events import Event, Warned
from devall.plugins.functions import FunctionCatalog
from devall.tools.base import ToolSpec
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers
from devall.tools.mcp.server import McpServer

SHOWN = 3
"""How many functions stand for a source of more."""


@dataclass(frozen=True, slots=True)
class SourceReport:
    """What became of one source."""

    source: ToolSource
    label: str
    state: Literal["ready", "failed", "not asked"]
    tools: tuple[ToolSpec, ...] = ()
    """As the model would be offered them."""
    seconds: float = 0
    """Until its tools were known."""
    protocol: str = ""
    """The revision of the MCP protocol that is spoken; empty for functions."""
    oddities: tuple[str, ...] = ()
    """What a user should know though it works."""
    error: SetupError | None = None


@dataclass(frozen=True, slots=True)
class Survey:
    """What a node's sources are, each by itself and all together."""

    sources: tuple[SourceReport, ...]
    collision: SetupError | None = None
    """Set where tools of two sources have the same name."""

    @property
    def is_usable(self) -> bool:
        """Whether the node could begin, as far as the sources were asked."""
        failed = any(r.state == "failed" and r.source.required for r in self.sources)
        return not failed and self.collision is None


@dataclass(slots=True)
class Surveyor:
    """Asks the sources of nodes; servers that several nodes have are asked once."""

    functions: FunctionCatalog
    servers: McpServers
    """Its warnings must go to `take`."""
    warnings: list[str]
    connect: bool
    """Whether servers are started or reached at all."""

    async def survey(self, sources: Sequence[ToolSource], base: Path) -> Survey:
        """What the sources offer.

        Args:
            sources: Of one node.
            base: The folder of its workflow file.
        """
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._ask(source, base)) for source in sources]
        reports = [task.result() for task in tasks]
        ready = [report.source for report in reports if report.state == "ready"]
        try:
            async with self._manager(ready, base, []):
                pass
        except SetupError as error:
            return Survey(tuple(reports), error)
        return Survey(tuple(reports))

    async def _ask(self, source: ToolSource, base: Path) -> SourceReport:
        server = self._server(source, base)
        label = _label(source) if isinstance(source, FunctionSource) else ""
        if server is not None:
            label = server.label
        if server is not None and not self.connect:
            return SourceReport(source, label, "not asked")
        began = time.perf_counter()
        own: list[str] = []
        alone = source.model_copy(update={"required": True})
        try:
            async with self._manager([alone], base, own) as tools:
                found = tools.specs()
        except SetupError as error:
            return SourceReport(
                source,
                label,
                "failed",
                seconds=time.perf_counter() - began,
                oddities=self._about(label, own),
                error=error,
            )
        return SourceReport(
            source,
            label,
            "ready",
            found,
            time.perf_counter() - began,
            "" if server is None else server.protocol,
            self._about(label, own),
        )

    def _manager(
        self, sources: Sequence[ToolSource], base: Path, warnings: list[str]
    ) -> ToolManager:
        def take(event: Event) -> None:
            if isinstance(event, Warned):
                warnings.append(event.message)

        return ToolManager(
            sources, functions=self.functions, servers=self.servers, base=base, emit=take
        )

    def _server(self, source: ToolSource, base: Path) -> McpServer | None:
        match source:
            case McpRemoteSource():
                return self.servers.remote(source.config)
            case McpLocalSource():
                return self.servers.local(source.config, base)
            case FunctionSource():
                return None

    def _about(self, label: str, own: Sequence[str]) -> tuple[str, ...]:
        """The warnings that a source is the cause of, its own name taken out."""
        said = [*own, *(text for text in self.warnings if label in text)]
        return tuple(dict.fromkeys(text.removeprefix(label).strip(" :") for text in said))


def _label(source: FunctionSource) -> str:
    names = [tool.name for tool in source.config.tools]
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return f"functions {', '.join(names[:SHOWN])}{more}"
