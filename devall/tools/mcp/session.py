"""A conversation with a server by fastmcp, the same for every kind of server."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import Callable, Mapping
from contextvars import Context, ContextVar
from functools import partial
from typing import Any, cast

import mcp_types
from fastmcp.client.client import Client
from fastmcp.client.logging import LogMessage
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from fastmcp.telemetry import suppress_fastmcp_telemetry
from mcp.client.session import ClientRequestContext, ClientSession
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types.version import LATEST_MODERN_VERSION

from devall.core.messages import JsonValue
from devall.tools.mcp.elicitation import Elicitation, Form, Reply, Visit
from devall.tools.mcp.lenient import PROBE, LenientSession
from devall.tools.mcp.link import WAITS, Caller, Listing, McpTool

LEGACY = "legacy"
AUTO = "auto"
MODES = {"auto": AUTO, "legacy": LEGACY, "modern": LATEST_MODERN_VERSION}
"""What the workflow's `protocol` is to fastmcp."""

DISCONNECT = 1.0
"""Seconds for a clean end of the conversation, twice at most."""
MOST_PAGES = 250
"""Pages of a list that are read at most."""
LISTEN_AGAIN = 1.0
"""Seconds after which a subscription that ended is asked for anew, doubled each time it fails."""
LISTEN_AGAIN_AT_MOST = 60.0
"""Seconds between two tries to subscribe, at most."""
SUBSCRIBE = 1.0
"""Seconds that the list of tools waits for the subscription to its changes."""
FINAL = frozenset(
    {
        mcp_types.INVALID_REQUEST,
        mcp_types.METHOD_NOT_FOUND,
        mcp_types.INVALID_PARAMS,
        mcp_types.PARSE_ERROR,
        mcp_types.CONNECTION_CLOSED,
        mcp_types.UNSUPPORTED_PROTOCOL_VERSION,
    }
)
"""Codes of errors that another request would only meet again."""

# Libraries report on their own what reaches the user as an error here. A handler that does
# nothing keeps Python from printing it where nobody has set up logging.
for _name in ("mcp", "client", "fastmcp"):
    logging.getLogger(_name).addHandler(logging.NullHandler())

_caller: ContextVar[Caller | None] = ContextVar("_caller", default=None)
"""Whose call a question of the server belongs to, where the protocol says so."""


def call_waits() -> contextlib.AbstractContextManager[None]:
    """A block during which no clock of the call goes on for which this task works, if any."""
    caller = _caller.get()
    return contextlib.nullcontext() if caller is None else caller.held()


class Conversation:
    """A fastmcp client for one link, and what is to be known about it.

    Of what a server may ask of its client, questions to a human are answered; sampling and
    roots, which the protocol has deprecated, are not offered.
    """

    def __init__(
        self,
        transport: ClientTransport,
        mode: str,
        *,
        log: Callable[[str], None],
        say: Callable[[str], None],
        probe: float = PROBE,
        has_read: Callable[[], bool] = lambda: True,
        may_list_again: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make a client that is not connected yet.

        Args:
            transport: How the server is reached.
            mode: One of `MODES`' values.
            log: Takes lines that the server sends as log notifications.
            say: Takes what is odd about the server.
            probe: Seconds for the answer to the discovery request, once it is read.
            has_read: Whether the server has read anything yet.
            may_list_again: Asked when a list could not be had: False leaves what to do to the
                one who opened the conversation.
        """
        self.probe_was_ignored = False
        """Whether the server said nothing to the discovery request and shook hands after it."""
        self.on_changed: Callable[[], None] = lambda: None
        self._is_undiscovered = mode not in {AUTO, LEGACY}
        self._probe = probe
        self._say = say
        self._may_list_again = may_list_again
        self._callers: list[Caller] = []
        """Of the calls under way."""
        session = partial(
            LenientSession,
            on_ignored_probe=self._on_ignored_probe,
            probe=probe,
            has_read=has_read,
            say=say,
        )

        async def on_log(message: LogMessage) -> None:
            name = f" {message.logger}" if message.logger else ""
            log(f"[{message.level}{name}] {_as_line(message.data)}")

        self._client = _Client(
            transport,
            mode=mode,
            init_timeout=0,
            log_handler=on_log,
            message_handler=self._on_message,
            session=cast("type[ClientSession]", session),
            elicit=self._on_elicitation,
        )
        self._stack = contextlib.AsyncExitStack()
        self._listening: asyncio.Task[None] | None = None
        self._has_listed = False
        """Whether a list was asked for that a change may have overtaken."""

    @property
    def is_legacy(self) -> bool:
        """Whether an older revision of the protocol, that of the handshake, was agreed on."""
        return self._client.initialize_result is not None

    @property
    def protocol(self) -> str:
        """The revision of the protocol that was agreed on; empty before."""
        return self._client.protocol_version or ""

    async def open(self, known: Listing | None = None) -> Listing:
        """Agree on a protocol and list the tools, or take over a list that is known.

        Raises:
            Exception: whatever the library raises.
        """
        await self._stack.enter_async_context(self._client)
        if not self._is_undiscovered and self._tells_changes():
            await self._subscribe(wait=known is None)
        listing = known or await self.list()
        # What it can do is not known; and a login has come to an end with the first request.
        if self._is_undiscovered:
            await self._subscribe(wait=False)
        if known is None:
            return listing
        # The library learns from the list which arguments go into headers.
        self._client.session._absorb_tool_listing(listing.raw, complete=True)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
        return listing

    async def close(self) -> None:
        """End the conversation.

        Raises:
            Exception: whatever the library raises.
        """
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.wait({self._listening}, timeout=DISCONNECT)
        await self._stack.aclose()

    async def list(self) -> Listing:
        """All tools, page by page; a request that fails is made three times more.

        Raises:
            Exception: whatever the library raised last.
        """
        self._has_listed = True
        tools: list[mcp_types.Tool] = []
        first: mcp_types.ListToolsResult | None = None
        cursor: str | None = None
        seen: set[str] = set()
        for _ in range(MOST_PAGES):
            page = await self._page(cursor)
            first = first or page
            tools += page.tools
            cursor = page.next_cursor
            if cursor is None:
                break
            if cursor in seen:
                self._say("gives the same cursor twice; what came until then is its list of tools")
                break
            seen.add(cursor)
        else:
            self._say(f"lists tools without end; {MOST_PAGES} pages are read")
        assert first is not None
        says = "ttl_ms" in first.model_fields_set
        raw = first.model_copy(update={"tools": tools, "next_cursor": None})
        ttl = first.ttl_ms / 1000 if says else None
        return Listing(tuple(map(_as_tool, tools)), ttl, raw)

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], caller: Caller
    ) -> mcp_types.CallToolResult:
        """The server's result for a call; one that reports a failure is a result as well.

        Raises:
            Exception: whatever the library raises.
        """

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            caller.progress(progress, total, message or "")

        async def call() -> mcp_types.CallToolResult:
            # The tool's span is the call's; that of mcp itself, where it makes one, lies in it.
            with suppress_fastmcp_telemetry():
                return await self._client.call_tool_mcp(
                    name, dict(arguments), progress_handler=tell
                )

        _caller.set(caller)
        self._callers.append(caller)
        try:
            return await call()
        except MCPError as error:
            if error.code != mcp_types.URL_ELICITATION_REQUIRED:
                raise
            # Pages that a human has to open first; the call itself has not begun.
            for visit in _visits(error):
                if (await caller.elicit(visit)).action != "accept":
                    raise
            return await call()
        finally:
            self._callers.remove(caller)

    async def _page(self, cursor: str | None) -> mcp_types.ListToolsResult:
        for wait in (*WAITS, None):
            try:
                return await self._client.list_tools_mcp(cursor=cursor)
            except MCPError as error:
                if wait is None or error.code in FINAL or not self._may_list_again():
                    raise
                await asyncio.sleep(wait)
        raise AssertionError

    def _tells_changes(self) -> bool:
        """Whether the server says that it tells subscribers of other tools."""
        capabilities = self._client.server_capabilities
        tools = capabilities.tools if capabilities else None
        return not self.is_legacy and tools is not None and bool(tools.list_changed)

    async def _subscribe(self, *, wait: bool) -> None:
        """Begin to hear of changes, which the newer protocol tells to subscribers alone.

        Args:
            wait: Whether the subscription should stand before the list is asked for: a change
                before it is in the list then, and one after it is told.
        """
        subscribed = asyncio.Event()
        self._listening = asyncio.create_task(
            self._listen(subscribed),
            name="devall-mcp-listen",
            context=Context(),  # what it is answered is no answer to what is asked here
        )
        if wait:
            await _first_of(subscribed, self._listening, min(SUBSCRIBE, self._probe))

    async def _listen(self, subscribed: asyncio.Event) -> None:
        wait = LISTEN_AGAIN
        now = asyncio.get_running_loop().time
        while True:
            began = now()
            try:
                async with listen(self._client.session, tools_list_changed=True) as events:
                    if not events.honored.tools_list_changed:
                        return
                    if self._has_listed:
                        self.on_changed()  # what was said before is unknown
                    subscribed.set()
                    async for _ in events:
                        self.on_changed()
            except SubscriptionLost:
                pass
            # A server that does not tell changes, or is away: its tools stay as they were.
            except Exception as error:  # noqa: BLE001
                if not subscribed.is_set() or _is_final(error):
                    return
            self._has_listed = True
            wait = LISTEN_AGAIN if now() - began > wait else wait
            await asyncio.sleep(wait)
            wait = min(2 * wait, LISTEN_AGAIN_AT_MOST)

    async def _on_message(self, message: object) -> None:
        if isinstance(message, mcp_types.ToolListChangedNotification) and self.is_legacy:
            self.on_changed()

    async def _on_elicitation(
        self, context: ClientRequestContext, params: mcp_types.ElicitRequestParams
    ) -> mcp_types.ElicitResult:
        """The reply to a question that a server asks during a call."""
        del context
        question: Elicitation
        if isinstance(params, mcp_types.ElicitRequestURLParams):
            question = Visit(params.message, params.url)
        else:
            question = Form(params.message, dict(params.requested_schema))
        reply = await self._reply(question)
        content = dict(reply.content) if reply.action == "accept" and reply.content else None
        return mcp_types.ElicitResult(action=reply.action, content=content)

    async def _reply(self, question: Elicitation) -> Reply:
        """What a human says, asked for the call that the question belongs to.

        The older protocol tells it by the stream on which the question comes, and only over
        streamable HTTP. Where nothing tells, all calls under way wait for the human.
        """
        caller, callers = _caller.get(), list(self._callers)
        if caller is not None:
            return await caller.elicit(question)
        if not callers:
            return Reply("decline")
        *others, newest = callers
        with contextlib.ExitStack() as stack:
            for each in others:
                stack.enter_context(each.held())
            return await newest.elicit(question, [each.place for each in callers] if others else ())

    def _on_ignored_probe(self) -> None:
        self.probe_was_ignored = True


class _Client(Client[ClientTransport]):
    def __init__(
        self,
        transport: ClientTransport,
        *,
        session: type[ClientSession],
        elicit: Any,
        **options: Any,
    ) -> None:
        super().__init__(transport, **options)
        self._transport_options = TransportOptions(session_class=session)
        # fastmcp's own bound, which is else the same for every client of the process.
        self._disconnect_timeout = DISCONNECT
        # Past fastmcp's handler, which makes a class of every form and fails for odd ones.
        self._session_kwargs["elicitation_callback"] = elicit


async def _first_of(event: asyncio.Event, task: asyncio.Task[None], seconds: float) -> None:
    """Return once the event is set or the task is over, or the time is."""
    waiting = asyncio.create_task(event.wait())
    try:
        await asyncio.wait({waiting, task}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        waiting.cancel()


def _is_final(error: Exception) -> bool:
    return (
        isinstance(error, MCPError)
        and error.code in FINAL
        and error.code != mcp_types.CONNECTION_CLOSED
    )


def _visits(error: MCPError) -> list[Visit]:
    data = mcp_types.ElicitationRequiredErrorData.model_validate(error.error.data)
    return [Visit(each.message, each.url) for each in data.elicitations]


def _as_line(data: object) -> str:
    return data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)


def _as_tool(tool: mcp_types.Tool) -> McpTool:
    hints = (
        tool.annotations.model_dump(by_alias=True, exclude_none=True) if tool.annotations else {}
    )
    meta = tool.meta or {}
    source = meta.get("source")
    return McpTool(
        name=tool.name,
        description=tool.description or tool.title or "",
        parameters=tool.input_schema,
        annotations={key: value for key, value in hints.items() if isinstance(value, bool)},
        source=source if isinstance(source, str) else None,
        output_schema=tool.output_schema,
    )
