"""One node and its sources of tools."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Self, assert_never
from urllib.parse import urlsplit

from devall.config.tools import FunctionSource, McpLocalSource, McpRemoteSource, ToolSource
from devall.core.errors import ToolError
from devall.core.events import Sink, Warned
from devall.core.messages import TextPart, ToolCall
from devall.core.ports import Scope
from devall.plugins.functions import FunctionCatalog
from devall.tools.arguments import parse_arguments
from devall.tools.base import ToolResult, Toolset, ToolSpec
from devall.tools.combined import CombinedToolset, Source
from devall.tools.filtered import FilteredToolset
from devall.tools.functions import FunctionToolset
from devall.tools.limited import LimitedToolset
from devall.tools.mcp.pool import McpServers
from devall.tools.mcp.toolset import McpToolset
from devall.tools.prefixed import PrefixedToolset
from devall.workspace import Workspace


class ToolManager:
    """The tools of one node: `async with ToolManager(...) as tools`.

    Entering opens every source, and fails before the first model call where one that is
    required cannot be used. A call's failure is a result for the model, never an exception.
    """

    def __init__(
        self,
        sources: Sequence[ToolSource],
        *,
        functions: FunctionCatalog,
        servers: McpServers,
        workspace: Workspace | None = None,
        base: Path,
        emit: Sink | None = None,
        node: str = "",
        path: str = "",
    ) -> None:
        """Bind a node to its sources; nothing is opened yet.

        Args:
            sources: As the workflow has them.
            functions: Where function tools are found.
            servers: The run's MCP servers, which outlive the node.
            workspace: The run's files and attachments.
            base: The folder of the workflow file.
            emit: Takes warnings.
            node: Id of the node, for warnings.
            path: Logical path of the node's run, for warnings.
        """
        self._functions = functions
        self._servers = servers
        self._workspace = workspace
        self._base = base
        self._emit = emit
        self._node = node
        self._path = path
        self._tools = CombinedToolset([self._source(each) for each in sources])

    async def __aenter__(self) -> Self:
        """Open all sources at once.

        Raises:
            SetupError: required sources cannot be used, or two tools have the same name.
        """
        await self._tools.open()
        for source, error in self._tools.left_out:
            self._warn(
                "tool_source_left_out",
                f"{source.label} cannot be used and is left out (`required: false`): {error}",
            )
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._tools.aclose()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is offered them, in the order of the sources."""
        return self._tools.offered

    async def call(self, call: ToolCall, scope: Scope) -> ToolResult:
        """What a call gives; a tool that is unknown, refuses or fails gives an error result.

        Args:
            call: As the model wrote it.
            scope: The node's run.
        """
        try:
            spec = self._tools.spec(call.name)
            arguments = parse_arguments(call.arguments, spec.parameters)
            return await self._tools.call(call.name, arguments, scope, call.id)
        except ToolError as error:
            hint = f" ({error.hint})" if error.hint else ""
            return ToolResult((TextPart(f"{error}{hint}"),), is_error=True)

    def _warn(self, code: str, message: str) -> None:
        if self._emit is not None:
            self._emit(Warned(code=code, message=message, node=self._node, path=self._path))

    def _source(self, source: ToolSource) -> Source:
        """The toolset of a source within its wrappers."""
        bare = self._toolset(source)
        toolset: Toolset = bare
        if source.include or source.exclude:
            toolset = FilteredToolset(toolset, source.include, source.exclude)
        toolset = LimitedToolset(toolset, source.max_result_chars, self._workspace)
        if source.prefix:
            toolset = PrefixedToolset(toolset, source.prefix)
        return Source(_label(source), toolset, source.required, _proposal(source))

    def _toolset(self, source: ToolSource) -> Toolset:
        match source:
            case FunctionSource():
                return FunctionToolset(
                    source.config.tools,
                    self._functions,
                    self._workspace,
                    source.timeout or source.config.timeout,
                )
            case McpRemoteSource():
                return McpToolset(
                    self._servers.remote(source.config),
                    source.config.tool_sources,
                    self._workspace,
                    source.timeout or source.config.timeout,
                    self._warn,
                )
            case McpLocalSource():
                return McpToolset(
                    self._servers.local(source.config, self._base),
                    source.config.tool_sources,
                    self._workspace,
                    source.timeout,
                    self._warn,
                )
            case _:
                assert_never(source)


def _label(source: ToolSource) -> str:
    """What a source is called in errors."""
    match source:
        case FunctionSource():
            names = ", ".join(tool.name for tool in source.config.tools[:3])
            more = ", ..." if len(source.config.tools) > 3 else ""
            return f"function source ({names}{more})"
        case McpRemoteSource():
            return f"mcp_remote {source.config.server}"
        case McpLocalSource():
            return f"mcp_local {' '.join((source.config.command, *source.config.args))}"
        case _:
            assert_never(source)


def _proposal(source: ToolSource) -> str:
    """A prefix that would tell a source's tools from another's."""
    match source:
        case FunctionSource():
            return source.config.tools[0].name.partition(":")[0] if source.config.tools else ""
        case McpRemoteSource():
            parts = urlsplit(source.config.server)
            host = (parts.hostname or "").removeprefix("www.").partition(".")[0]
            return host if host.isalpha() and host != "localhost" else "remote"
        case McpLocalSource():
            words = (*reversed(source.config.args), source.config.command)
            stems = (PurePosixPath(word).stem for word in words if not word.startswith("-"))
            return next((stem for stem in stems if stem), "local")
        case _:
            assert_never(source)
