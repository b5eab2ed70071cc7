"""A conversation with a server by fastmcp, the same for every kind of server."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import mcp_types
from fastmcp.client.client import Client
from fastmcp.client.logging import LogMessage
from fastmcp.client.transports.base import ClientTransport, TransportOptions
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import methods
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from devall.core.messages import JsonValue
from devall.tools.mcp.link import McpTool, OnProgress

LEGACY = "legacy"
AUTO = "auto"
MODES = {"auto": AUTO, "legacy": LEGACY, "modern": LATEST_MODERN_VERSION}
"""What the workflow's `protocol` is to fastmcp."""

PROBE = 2.0
"""Seconds for the answer to the discovery request, which handshake servers may pass over."""
DISCONNECT = 1.0
"""Seconds for a clean end of the conversation, twice at most."""

# Libraries report on their own what reaches the user as an error here. A handler that does
# nothing keeps Python from printing it where nobody has set up logging.
for _name in ("mcp", "client", "fastmcp"):
    logging.getLogger(_name).addHandler(logging.NullHandler())


class Conversation:
    """A fastmcp client for one link, and what is to be known about it."""

    def __init__(self, transport: ClientTransport, mode: str, log: Any = None) -> None:
        """Make a client that is not connected yet.

        Args:
            transport: How the server is reached.
            mode: One of `MODES`' values.
            log: Takes lines that the server sends as log notifications, None = nobody.
        """
        self.probe_was_ignored = False
        """Whether the server said nothing to the discovery request and shook hands after it."""
        session = partial(_LenientSession, on_ignored_probe=self._on_ignored_probe)

        async def on_log(message: LogMessage) -> None:
            if log is not None:
                log(f"[{message.level}] {message.data}")

        self._client = _Client(
            transport,
            mode=mode,
            init_timeout=0,
            log_handler=on_log,
            session=cast("type[ClientSession]", session),
        )
        self._stack = contextlib.AsyncExitStack()

    @property
    def is_legacy(self) -> bool:
        """Whether an older revision of the protocol, that of the handshake, was agreed on."""
        return self._client.initialize_result is not None

    async def open(self) -> Sequence[McpTool]:
        """Agree on a protocol and list the tools.

        Raises:
            Exception: whatever the library raises.
        """
        await self._stack.enter_async_context(self._client)
        return [_as_tool(tool) for tool in await self._client.list_tools()]

    async def close(self) -> None:
        """End the conversation.

        Raises:
            Exception: whatever the library raises.
        """
        await self._stack.aclose()

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], on_progress: OnProgress
    ) -> mcp_types.CallToolResult:
        """The server's result; one that reports a failure is a result as well.

        Raises:
            Exception: whatever the library raises.
        """

        async def tell(progress: float, total: float | None, message: str | None) -> None:
            on_progress(progress, total, message or "")

        return await self._client.call_tool_mcp(name, dict(arguments), progress_handler=tell)

    def _on_ignored_probe(self) -> None:
        self.probe_was_ignored = True


class _Client(Client[ClientTransport]):
    def __init__(
        self, transport: ClientTransport, *, session: type[ClientSession], **options: Any
    ) -> None:
        super().__init__(transport, **options)
        self._transport_options = TransportOptions(session_class=session)
        # fastmcp's own bound, which is else the same for every client of the process.
        self._disconnect_timeout = DISCONNECT


class _LenientSession(ClientSession):
    """A session that one wrong tool, or a tool's wrong word about its output, cannot break."""

    def __init__(
        self,
        read_stream: Any,
        write_stream: Any,
        *,
        on_ignored_probe: Callable[[], None],
        **options: Any,
    ) -> None:
        dispatcher = _LenientDispatcher(read_stream, write_stream, lambda: self.protocol_version)
        super().__init__(dispatcher=dispatcher, **options)
        self._on_ignored_probe = on_ignored_probe

    async def send_discover(self, version: str) -> dict[str, Any]:
        """The answer to the discovery request, for which the library would wait 10 s."""
        try:
            async with asyncio.timeout(PROBE):
                return await super().send_discover(version)
        except TimeoutError as error:
            self._on_ignored_probe()
            raise MCPError(mcp_types.REQUEST_TIMEOUT, "no answer to server/discover") from error

    async def validate_tool_result(self, name: str, result: mcp_types.CallToolResult) -> None:
        """Nothing: the tool has run, and its result is not lost for its form."""


class _LenientDispatcher(JSONRPCDispatcher[Any]):
    """Leaves malformed tools out of a list, where the library would refuse the list."""

    def __init__(
        self, read_stream: Any, write_stream: Any, version: Callable[[], str | None]
    ) -> None:
        super().__init__(read_stream, write_stream)
        self._version = version

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **more: Any
    ) -> dict[str, Any]:
        raw = await super().send_raw_request(method, params, opts, **more)
        tools = raw.get("tools")
        if method == "tools/list" and isinstance(tools, list):
            version = self._version() or "2025-11-25"
            raw["tools"] = [
                tool for tool in cast("list[Any]", tools) if _is_valid(raw, tool, version)
            ]
        return raw


def _is_valid(listing: dict[str, Any], tool: Any, version: str) -> bool:
    """Whether a list with this tool alone would be accepted."""
    try:
        methods.validate_server_result("tools/list", version, {**listing, "tools": [tool]})
        mcp_types.Tool.model_validate(tool, by_name=False)
    except ValidationError:
        return False
    except (KeyError, ValueError):
        return True
    return True


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
    )
