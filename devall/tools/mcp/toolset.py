"""The tools of one MCP server, for one node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from fnmatch import fnmatchcase

from devall.core.errors import AnswerNeeded, ToolNotFound
from devall.core.events import ToolProgress
from devall.core.messages import JsonValue
from devall.core.ports import HumanChannel, Scope
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.mcp.elicitation import Elicitation, Reply, answered
from devall.tools.mcp.link import McpTool, Place
from devall.tools.mcp.server import McpServer
from devall.tools.questions import ask_human, human_waits
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
        *,
        idempotent: Sequence[str] = (),
        human: HumanChannel | None = None,
    ) -> None:
        """Make a toolset; the server is not opened yet.

        Args:
            server: The run's server.
            tool_sources: Which tools, by the server's `meta.source`; None = those marked
                `mcp_tools` and all that are not marked.
            workspace: Where images and other data go.
            timeout: Seconds for one call, None = no bound.
            warn: Takes what a user should know.
            idempotent: Globs over the names of tools whose calls may be repeated where their
                outcome is unknown, beside those that the server itself marks so.
            human: Answers what the server asks during a call; None = it is declined.
        """
        self._server = server
        self._sources = UNASKED if tool_sources is None else frozenset(tool_sources)
        self._workspace = workspace
        self._timeout = timeout
        self._warn = warn
        self._idempotent = idempotent
        self._hidden: Collection[str] = ()
        self._human = human
        self._tools: dict[str, McpTool] = {}
        self._checks: dict[str, SchemaCheck] = {}
        self._promises: dict[str, SchemaCheck] = {}
        self._gone: set[str] = set()
        self._told: set[str] = set()
        self._changes = 0

    async def open(self) -> None:
        """Open the server, or find it open, and take its list of tools.

        Raises:
            SetupError: it cannot be started or reached.
        """
        self._take(await self._server.tools())

    async def refresh(self) -> bool:
        """Take over the tools of a server that has others now; whether it has.

        Raises:
            SetupError: the server is gone and cannot be opened again.
        """
        tools = await self._server.tools()
        if self._server.changes == self._changes:
            return False
        self._take(tools)
        return True

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
        if tool is None and name in self._gone:
            raise ToolNotFound(f"`{name}` is no longer available: {self._server.label} dropped it")
        if tool is None:
            raise ToolNotFound(f"{self._server.label} lists no tool `{name}`")
        self._checks[name].check_arguments(arguments)
        raw = await self._server.call(
            name,
            arguments,
            seconds=self._timeout,
            caller=_Call(name, call_id, scope, self._server.label, self._human, self._warn),
            is_repeatable=tool.is_repeatable
            or any(fnmatchcase(name, glob) for glob in self._idempotent),
        )
        from devall.tools.mcp.content import to_result

        result = to_result(raw, self._workspace, self._broken_promises(name, raw))
        return result.redacted(self._server.redact) if result.is_error else result

    async def aclose(self) -> None:
        """Nothing: the server belongs to the run."""

    def hidden(self) -> Collection[str]:
        """The tools that `tool_sources` leaves out."""
        return self._hidden

    def _take(self, tools: Sequence[McpTool]) -> None:
        """Offer these tools, as far as they are asked for."""
        self._changes = self._server.changes
        before = set(self._tools)
        self._tools = {}
        twice: list[str] = []
        for tool in tools:
            known = self._tools.get(tool.name)
            if tool.source in self._sources and known is None:
                self._tools[tool.name] = tool
            elif tool.source in self._sources and tool != known:
                twice.append(tool.name)
        self._hidden = {tool.name for tool in tools} - self._tools.keys()
        self._gone = (self._gone | before) - self._tools.keys()
        self._checks = {name: SchemaCheck(each.parameters) for name, each in self._tools.items()}
        self._promises = {
            name: SchemaCheck(each.output_schema)
            for name, each in self._tools.items()
            if each.output_schema is not None
        }
        if twice:
            names = ", ".join(f"`{name}`" for name in dict.fromkeys(twice))
            self._warn_once(
                "mcp_duplicate_tool",
                f"{self._server.label} lists more than one tool of a name ({names});"
                " the first one stands",
            )

    def _broken_promises(self, name: str, raw: object) -> Sequence[str]:
        """What of a result is not as the tool's `outputSchema` has it."""
        promise = self._promises.get(name)
        content = getattr(raw, "structured_content", None)
        if promise is None or getattr(raw, "is_error", False):
            return ()
        if content is None:
            self._warn_once(
                "mcp_output_schema",
                f"{self._server.label}: `{name}` has an outputSchema and gives no structured"
                " content; what it says is used",
            )
            return ()
        misfits = promise.misfits(content)
        if misfits:
            self._warn_once(
                "mcp_output_schema",
                f"{self._server.label}: what `{name}` gives does not fit its outputSchema:"
                f" {misfits[0]}",
            )
        return misfits

    def _warn_once(self, code: str, text: str) -> None:
        if text not in self._told:
            self._told.add(text)
            self._warn(code, text)


class _Call:
    """A node's call of a tool, as the server's side sees it."""

    def __init__(
        self,
        tool: str,
        call_id: str,
        scope: Scope,
        server: str,
        human: HumanChannel | None,
        warn: Warn,
    ) -> None:
        self._tool = tool
        self._call_id = call_id
        self._scope = scope
        self._server = server
        self._human = human
        self._warn = warn
        self._asked = 0

    def progress(self, progress: float, total: float | None, message: str) -> None:
        self._scope.emit(
            ToolProgress(
                path=self._scope.path,
                node=self._scope.node,
                call_id=self._call_id,
                tool=self._tool,
                progress=progress,
                total=total,
                message=message,
            )
        )

    @property
    def place(self) -> Place:
        return Place(self._tool, self._scope.node, self._scope.path)

    def held(self) -> AbstractContextManager[None]:
        return human_waits(self._scope)

    async def elicit(self, question: Elicitation, among: Sequence[Place] = ()) -> Reply:
        """A human's reply; a question that nobody can be asked is declined, and that is said.

        Where it may come from several nodes it is asked in the server's name.
        """
        is_from_one_node = len({place.path for place in among}) < 2
        asker = "" if is_from_one_node else self._server
        named = " or ".join(f"`{place.tool}` of {place.node}" for place in among)
        server = f"{self._server} (for {named}: it does not say)" if among else self._server

        async def ask(text: str) -> str:
            if self._human is None:
                raise AnswerNeeded([(asker or self._scope.path, text)])
            self._asked += 1
            name = f"{self._call_id}.{self._asked}"
            return await ask_human(self._human, self._scope, text, name, asker)

        try:
            return await answered(question, server, ask)
        except AnswerNeeded:
            self._warn(
                "elicitation_declined",
                f"{self._server} asked for a human's input during {named or f'`{self._tool}`'}"
                f" ({question.message}), and nobody can be asked: declined",
            )
            return Reply("decline")
