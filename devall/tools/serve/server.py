"""A server of the MCP protocol whose tools are offers of ours, by fastmcp."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, cast

import mcp_types
from fastmcp import FastMCP
from fastmcp.server.auth import AccessToken, TokenVerifier
from fastmcp.server.context import reset_transport, set_transport
from fastmcp.server.dependencies import get_context, get_http_request
from fastmcp.tools.base import Tool
from fastmcp.tools.base import ToolResult as Answer
from mcp.server.stdio import stdio_server
from pydantic import PrivateAttr

from devall.core.messages import JsonValue
from devall.tools.outside import Outside
from devall.tools.serve.content import to_blocks
from devall.tools.serve.offer import Offer
from devall.tools.serve.progress import Progress

_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def quieten_libraries() -> None:
    """For a process that does nothing but serve: what goes wrong is told to the client alone."""
    for name in ("mcp", "fastmcp", "uvicorn"):
        logging.getLogger(name).addHandler(logging.NullHandler())
        logging.getLogger(name).setLevel(logging.CRITICAL)


class Server(FastMCP[None]):
    """Offers tools; it runs over HTTP as any server of fastmcp does, and over pipes by `speak`."""

    def __init__(
        self,
        name: str,
        offers: Sequence[Offer],
        *,
        version: str,
        instructions: str = "",
        verifier: TokenVerifier | None = None,
    ) -> None:
        """Make a server that does not run yet.

        Args:
            name: What clients call it.
            offers: Its tools, in order.
            version: Of devall.
            instructions: What a model should know of the tools as a whole.
            verifier: Lets only those in who have the token; None = everybody.
        """
        super().__init__(
            name,
            instructions or None,
            version=version,
            auth=verifier,
            tools=[_OfferedTool.of(offer) for offer in offers],
            on_duplicate="error",
            # Clients get the schema as it was written; inlined, its `$defs` would be gone.
            dereference_schemas=False,
        )

    async def speak(self, lines: object, out: object) -> None:
        """Serve one client until its lines end.

        Args:
            lines: Iterates over lines of text, asynchronously.
            out: Takes text by `await write(text)`, and `await flush()`.
        """
        token = set_transport("stdio")
        try:
            async with (
                self._lifespan_manager(),
                stdio_server(cast("Any", lines), cast("Any", out)) as (received, sent),
            ):
                options = self._mcp_server.create_initialization_options()
                await self._mcp_server.run(received, sent, options)
        finally:
            reset_transport(token)


class OneToken(TokenVerifier):
    """Lets those in who have the one token."""

    def __init__(self, token: str) -> None:
        super().__init__()
        self._token = token.encode()

    async def verify_token(self, token: str) -> AccessToken | None:
        """The access that a token gives, None for a wrong one."""
        import hmac

        if not hmac.compare_digest(token.encode(), self._token):
            return None
        return AccessToken(token=token, client_id="devall", scopes=[])


class _OfferedTool(Tool):
    _offer: Offer = PrivateAttr()

    @classmethod
    def of(cls, offer: Offer) -> _OfferedTool:
        spec = offer.spec
        tool = cls(
            name=spec.name,
            description=spec.description or None,
            parameters=dict(spec.parameters),
            annotations=_annotations(spec.metadata),
        )
        tool._offer = offer
        return tool

    async def run(self, arguments: dict[str, Any]) -> Answer:
        """What the tool gives; a failure is an answer that says so."""
        progress = Progress(get_context().report_progress)
        scope = Outside(sink=progress.take)
        reply = await progress.during(self._offer.call(arguments, scope, _session()))
        return Answer(
            content=to_blocks(reply.result, reply.read),
            meta=dict(reply.metadata) or None,
            is_error=reply.result.is_error,
        )


def _session() -> str:
    """The session that the request belongs to, where the protocol has one.

    The newer protocol has none: without a session all requests are as of one client.
    """
    try:
        return get_http_request().headers.get("mcp-session-id", "")
    except RuntimeError:  # there is no HTTP
        return ""


def _annotations(metadata: Mapping[str, JsonValue]) -> mcp_types.ToolAnnotations | None:
    hints = {name: metadata[name] for name in _HINTS if isinstance(metadata.get(name), bool)}
    return mcp_types.ToolAnnotations.model_validate(hints) if hints else None
