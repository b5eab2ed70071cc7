"""The way of messages to and from a server's process: its stdin and stdout."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import AsyncGenerator, Callable
from types import TracebackType
from typing import Any, Self

import anyio
import mcp_types
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from fastmcp.client.transports.base import ClientTransport, SessionKwargs, TransportOptions
from mcp.client.session import ClientSession
from mcp.shared.message import SessionMessage
from typing_extensions import Unpack


class PipeTransport(ClientTransport):
    """Carries messages between fastmcp and the pipes of a process that somebody else owns."""

    def __init__(self, on_noise: Callable[[bytes], None]) -> None:
        self._on_noise = on_noise
        self.write: Callable[[bytes], None] = lambda _: None
        # Not bounded: what is not read here would be kept in the pipe, and block the server.
        self._received: MemoryObjectSendStream[SessionMessage | Exception]
        self._receive: MemoryObjectReceiveStream[SessionMessage | Exception]
        self._received, self._receive = anyio.create_memory_object_stream(math.inf)

    def feed(self, line: bytes) -> None:
        """Take a line of the server's stdout."""
        message = _parse(line)
        if message is None:
            self._on_noise(line)
            return
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._received.send_nowait(SessionMessage(message))

    def end(self) -> None:
        """No more will come: every open request fails."""
        self._received.close()

    def release(self) -> None:
        """Let go of what was not read."""
        self._received.close()
        self._receive.close()

    @contextlib.asynccontextmanager
    async def connect_session(
        self,
        *,
        transport_options: TransportOptions | None = None,
        **session_kwargs: Unpack[SessionKwargs],
    ) -> AsyncGenerator[ClientSession, None]:
        """A session over the pipes."""
        options = transport_options or TransportOptions()
        async with (
            self._receive,
            options.session_class(self._receive, _Stdin(self), **session_kwargs) as session,
        ):
            yield session


class _Stdin:
    """The way to the server; it never blocks, so that a call can be cancelled at any moment."""

    def __init__(self, transport: PipeTransport) -> None:
        self._transport = transport

    async def send(self, item: SessionMessage, /) -> None:
        text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        self._transport.write(text.encode() + b"\n")

    async def aclose(self) -> None: ...

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc_val: BaseException | None,
        exc_tb: TracebackType | None,
    ) -> bool | None: ...


def _parse(line: bytes) -> mcp_types.JSONRPCMessage | None:
    """The message of a line, None where it holds none."""
    if not line.lstrip().startswith(b"{"):
        return None
    try:
        return mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValueError:
        pass
    text = line.decode("utf-8", "replace")
    try:
        return mcp_types.jsonrpc_message_adapter.validate_json(text, by_name=False)
    except ValueError:
        return _malformed(text)


def _malformed(text: str) -> mcp_types.JSONRPCMessage | None:
    """An error in place of an answer without the right form, so that nobody waits for it."""
    try:
        data: Any = json.loads(text)
    except (ValueError, RecursionError):
        return None
    number = data.get("id")
    is_answer = isinstance(number, int | str) and "method" not in data
    if isinstance(number, bool) or not is_answer or not data.keys() & {"result", "error"}:
        return None
    said = text if len(text) <= 200 else f"{text[:200]} ..."
    error = mcp_types.ErrorData(
        code=mcp_types.PARSE_ERROR, message=f"an answer that is not as the protocol has it: {said}"
    )
    return mcp_types.JSONRPCError(jsonrpc="2.0", id=number, error=error)
