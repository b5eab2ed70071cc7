"""One node and its sources of tools."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self, assert_never, overload

from devall.config.prefixes import own_name, prefix_of
from devall.config.tools import (
    AUTO_PREFIX,
    DEFAULT_SECONDS,
    FunctionSource,
    InDoubt,
    McpLocalSource,
    McpRemoteSource,
    ToolSource,
)
from devall.core.errors import ToolError, ToolTimeout
from devall.core.events import Sink, Warned
from devall.core.messages import NOTHING, JsonValue, Message, TextPart, ToolCall
from devall.core.ports import HumanChannel, Scope
from devall.manifest import Maker, made_by
from devall.plugins.functions import FunctionCatalog
from devall.plugins.project import functions_for
from devall.telemetry.redaction import Redactor, environment_secrets
from devall.tools import slices
from devall.tools.arguments import parse_arguments
from devall.tools.base import ToolResult, Toolset, ToolSpec
from devall.tools.combined import CombinedToolset, Source
from devall.tools.context import MORE_TIME
from devall.tools.doubt import MarkedToolset, policy_of, settle
from devall.tools.filtered import FilteredToolset
from devall.tools.functions import FunctionToolset
from devall.tools.judged import JudgedToolset
from devall.tools.limited import LimitedToolset
from devall.tools.mcp.pool import McpServers
from devall.tools.mcp.toolset import McpToolset
from devall.tools.outside import FolderWorkspace, Outside, SourceLike, read_sources
from devall.tools.prefixed import PrefixedToolset
from devall.workspace import Workspace


class ToolManager:
    """The tools of one node: `async with ToolManager(...) as tools`.

    Outside of any workflow the sources suffice: `ToolManager([{"type": "mcp_remote", ...}])`;
    `await tools.list()` tells the tools, `await tools.call(name, arguments)` calls one.

    Entering opens every source, and fails before the first model call where one that is
    required cannot be used. A call's failure is a result for the model, never an exception.
    """

    def __init__(
        self,
        sources: SourceLike | Sequence[SourceLike],
        *,
        functions: FunctionCatalog | None = None,
        servers: McpServers | None = None,
        workspace: Workspace | Path | str | None = None,
        base: Path | None = None,
        emit: Sink | None = None,
        human: HumanChannel | None = None,
        node: str = "",
        path: str = "",
        environment: Mapping[str, str] | None = None,
        in_doubt: InDoubt | None = None,
    ) -> None:
        """Bind a node to its sources; nothing is opened yet.

        Args:
            sources: As the workflow has them: configurations, or mappings with the same keys.
            functions: Where function tools are found; None = the `functions` folder upwards of
                `base`, then those that ship.
            servers: The run's MCP servers, which outlive the node; None = own ones, closed with
                the manager.
            workspace: The run's files and attachments; a path is the folder that tools work in;
                None = tools have no files.
            base: The folder of the workflow file; None = the working directory.
            emit: Takes warnings, and what tools report meanwhile.
            human: Answers what an MCP server asks during a call; None = it is declined.
            node: Id of the node, for warnings.
            path: Logical path of the node's run, for warnings.
            environment: Where function tools find their settings and keys; None = the
                environment of devall.
            in_doubt: What is done with calls that an interrupted run leaves in doubt; None =
                what their source says.

        Raises:
            UsageError: a mapping is no source.
        """
        self._base = base or Path.cwd()
        self._functions = functions or functions_for(self._base / "workflow.yaml")
        self._environment = os.environ if environment is None else environment
        self._own_servers = None
        if servers is None:
            servers = self._own_servers = McpServers(emit=emit, redact=self._redactor.text)
        self._servers = servers
        self._workspace = (
            FolderWorkspace(Path(workspace)) if isinstance(workspace, Path | str) else workspace
        )
        self._emit = emit
        self._human = human
        self._node = node
        self._path = path
        self._in_doubt: InDoubt | None = in_doubt
        self._opening = asyncio.Lock()
        self._is_open = False
        self._outside = Outside(node, path, emit)
        known = read_sources(sources)
        self._has_servers = any(not isinstance(each, FunctionSource) for each in known)
        self._tools = CombinedToolset([self._source(each) for each in known])

    async def __aenter__(self) -> Self:
        """Open all sources at once.

        Raises:
            SetupError: required sources cannot be used, or two tools have the same name.
        """
        await self.ready()
        return self

    async def ready(self) -> None:
        """Open all sources at once, unless they are open.

        Raises:
            SetupError: required sources cannot be used, or two tools have the same name.
        """
        async with self._opening:
            if not self._is_open:
                await self._open()
                self._is_open = True

    async def _open(self) -> None:
        try:
            await self._tools.open()
        except BaseException:
            await self._close_servers()
            raise
        for source, error in self._tools.left_out:
            self._warn(
                "tool_source_left_out",
                f"{source.label} cannot be used and is left out (`required: false`): {error}",
            )

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what was opened."""
        self._is_open = False
        try:
            await self._tools.aclose()
        finally:
            await self._close_servers()

    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as the model is offered them, in the order of the sources."""
        return self._tools.offered

    @property
    def may_change(self) -> bool:
        """Whether the tools may be others from one turn to the next: some are of a server."""
        return self._has_servers

    async def refresh(self) -> None:
        """Take over the tools of servers that have others now, between two turns of an agent.

        A server that does not tell its tools keeps those it had.
        """
        for trouble in await self._tools.refresh():
            self._warn("tools_not_refreshed", f"the tools stay as they were: {trouble}")

    def beside(self, messages: Sequence[Message]) -> tuple[ToolSpec, ...]:
        """Tools that a conversation calls for by what stands in it, beside those of the sources."""
        if self._has_own(slices.NAME) or not slices.is_wanted(messages):
            return ()
        return (slices.SPEC,)

    async def list(self) -> tuple[ToolSpec, ...]:
        """The tools, as `specs` has them."""
        return self.specs()

    @overload
    async def call(self, call: ToolCall, scope: Scope) -> ToolResult: ...

    @overload
    async def call(self, call: str, scope: Mapping[str, JsonValue] = ..., /) -> ToolResult: ...

    @overload
    async def call(self, call: str, *, arguments: Mapping[str, JsonValue]) -> ToolResult: ...

    async def call(
        self,
        call: ToolCall | str,
        scope: Scope | Mapping[str, JsonValue] = NOTHING,
        *,
        arguments: Mapping[str, JsonValue] = NOTHING,
    ) -> ToolResult:
        """What a call gives; a tool that is unknown, refuses or fails gives an error result.

        Args:
            call: As the model wrote it; or the tool's name, outside of a run.
            scope: The node's run; or the arguments, outside of a run.
            arguments: The arguments, outside of a run.
        """
        if isinstance(call, str):
            given = scope if isinstance(scope, Mapping) and scope else arguments
            call = ToolCall("call", call, json.dumps(dict(given), default=str))
            scope = self._outside
        assert not isinstance(scope, Mapping)
        try:
            if call.name == slices.NAME and not self._has_own(slices.NAME):
                given = parse_arguments(call.arguments, slices.SPEC.parameters)
                return slices.read(self._workspace, given)
            spec = self._tools.spec(call.name)
            parsed = parse_arguments(call.arguments, spec.parameters)
            with made_by(Maker("tool", scope.node, call.name)):
                result = await self._tools.call(call.name, parsed, scope, call.id)
        except ToolError as error:
            hint = error.hint or (MORE_TIME if isinstance(error, ToolTimeout) else "")
            text = f"{error} ({hint})" if hint else str(error)
            result = ToolResult((TextPart(text),), is_error=True)
        return result.redacted(self._redactor.text) if result.is_error else result

    async def settle(self, call: ToolCall, spec: ToolSpec, scope: Scope) -> ToolResult | None:
        """What a call gives that an interrupted run left in doubt; None: make it again.

        Raises:
            ToolInDoubt: the policy is to fail.
            AnswerNeeded: a human has to decide, and nobody can be asked.
        """
        return await settle(self._in_doubt or policy_of(spec), call, scope, self._human)

    @cached_property
    def _redactor(self) -> Redactor:
        """Hides the keys that a function may have put into what it raised."""
        return Redactor(environment_secrets(self._environment))

    def _has_own(self, name: str) -> bool:
        return any(spec.name == name for spec in self._tools.offered)

    async def _close_servers(self) -> None:
        if self._own_servers is not None:
            await self._own_servers.aclose()

    def _warn(self, code: str, message: str) -> None:
        if self._emit is not None:
            self._emit(Warned(code=code, message=message, node=self._node, path=self._path))

    def _source(self, source: ToolSource) -> Source:
        """The toolset of a source within its wrappers."""
        bare = self._toolset(source)
        toolset: Toolset = bare
        if source.include or source.exclude:
            toolset = FilteredToolset(toolset, source.include, source.exclude)
        if source.error_when:
            toolset = JudgedToolset(toolset, source.error_when)
        if source.idempotent or source.in_doubt != "fail":
            toolset = MarkedToolset(toolset, source.idempotent, source.in_doubt)
        toolset = LimitedToolset(toolset, source.max_result_chars, self._workspace)
        if prefix := prefix_of(source):
            toolset = PrefixedToolset(toolset, prefix)
        is_auto = source.prefix == AUTO_PREFIX
        return Source(_label(source), toolset, source.required, own_name(source), is_auto)

    def _toolset(self, source: ToolSource) -> Toolset:
        match source:
            case FunctionSource():
                return FunctionToolset(
                    source.config.tools,
                    self._functions,
                    self._workspace,
                    source.timeout or source.config.timeout,
                    self._human,
                    self._environment,
                )
            case McpRemoteSource():
                return McpToolset(
                    self._servers.remote(source.config),
                    source.config.tool_sources,
                    self._workspace,
                    source.timeout or source.config.timeout,
                    self._warn,
                    idempotent=source.idempotent,
                    human=self._human,
                )
            case McpLocalSource():
                return McpToolset(
                    self._servers.local(source.config, self._base),
                    source.config.tool_sources,
                    self._workspace,
                    source.timeout or DEFAULT_SECONDS,
                    self._warn,
                    idempotent=source.idempotent,
                    human=self._human,
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
