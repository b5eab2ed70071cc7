"""The tools of one MCP server, for one node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from devall.core.errors import ToolNotFound
from devall.core.events import ToolProgress
from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.mcp.link import McpTool
from devall.tools.mcp.server import McpServer
from devall.tools.schemas import SchemaCheck
from devall.workspace import Workspace

UNASKED = frozenset({None, "mcp_tools"})
"""What `meta.source` may be where a workflow names no `tool_sources`."""

Warn = Callable[[str, str], None]
"""Takes a code and a message."""


class McpToolset:
    """What a node sees of a server that others may use as well; closing it closes nothing."""

    def __init__(
        self,
        server: McpServer,
        tool_sources: Sequence[str] | None = None,
        workspace: Workspace | None = None,
        timeout: float | None = None,
        warn: Warn = lambda _code, _message: None,
    ) -> None:
        """Make a toolset; the server is not opened yet.

        Args:
            server: The run's server.
            tool_sources: Which tools, by the server's `meta.source`; None = those marked
                `mcp_tools` and all that are not marked.
            workspace: Where images and other data go.
            timeout: Seconds for one call, None = no bound.
            warn: Takes what a user should know.
        """
        self._server = server
        self._sources = UNASKED if tool_sources is None else frozenset(tool_sources)
        self._workspace = workspace
        self._timeout = timeout
        self._warn = warn
        self._tools: dict[str, McpTool] = {}
        self._checks: dict[str, SchemaCheck] = {}

    async def open(self) -> None:
        """Open the server, or find it open, and take its list of tools.

        Raises:
            SetupError: it cannot be started or reached.
        """
        tools = await self._server.tools()
        self._tools.clear()
        for tool in tools:
            if tool.source not in self._sources:
                continue
            if self._tools.setdefault(tool.name, tool) is not tool:
                self._warn(
                    "mcp_duplicate_tool",
                    f"{self._server.label} lists tool `{tool.name}` twice; the first one stands",
                )
        self._checks = {name: SchemaCheck(each.parameters) for name, each in self._tools.items()}

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools, in the server's order."""
        return [
            ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=tool.parameters,
                metadata={
                    "source": "mcp",
                    "server": self._server.address,
                    "mode": self._server.mode,
                    "original_name": tool.name,
                    **tool.annotations,
                },
            )
            for tool in self._tools.values()
        ]

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run one tool.

        Raises:
            ToolArguments: the arguments do not fit the schema that the server declares.
            ToolFailed: the server refused the call, failed, or is gone.
            ToolTimeout: it did not answer in time.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ToolNotFound(f"{self._server.label} lists no tool `{name}`")
        self._checks[name].check_arguments(arguments)

        def on_progress(progress: float, total: float | None, message: str) -> None:
            scope.emit(
                ToolProgress(
                    path=scope.path,
                    node=scope.node,
                    call_id=call_id,
                    tool=name,
                    progress=progress,
                    total=total,
                    message=message,
                )
            )

        raw = await self._server.call(
            name, arguments, seconds=self._timeout, on_progress=on_progress
        )
        from devall.tools.mcp.content import to_result

        return to_result(raw, self._workspace)

    async def aclose(self) -> None:
        """Nothing: the server belongs to the run."""
