"""A session that one wrong tool, or a result in an odd form, cannot break."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any, cast

import mcp_types
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp_types import methods
from pydantic import ValidationError

PROBE = 2.0
"""Seconds at most for the answer to the discovery request, which handshake servers may pass
over."""
_LOOK = 0.05
"""Seconds between two looks at what a server has read."""
_HANDSHAKE_VERSION = "2025-11-25"
_DATA = 200
"""Characters of an unknown block's texts that are shown: what is longer may be base64."""

Say = Callable[[str], None]
"""Takes what is odd about the server, in words."""


class LenientSession(ClientSession):
    """A session that passes over what is wrong where the rest can be used."""

    def __init__(
        self,
        read_stream: Any,
        write_stream: Any,
        *,
        on_ignored_probe: Callable[[], None],
        probe: float,
        has_read: Callable[[], bool],
        say: Say,
        **options: Any,
    ) -> None:
        dispatcher = _LenientDispatcher(
            read_stream, write_stream, lambda: self.protocol_version, say
        )
        super().__init__(dispatcher=dispatcher, **options)
        self._on_ignored_probe = on_ignored_probe
        self._probe = probe
        self._has_read = has_read

    async def send_discover(self, version: str) -> dict[str, Any]:
        """The answer to the discovery request, for which the library would wait 10 s.

        The time begins when the server reads: one that still starts has not ignored anything.
        """
        limit = asyncio.timeout(None)
        begin = asyncio.create_task(self._begin(limit))
        try:
            async with limit:
                return await super().send_discover(version)
        except TimeoutError as error:
            self._on_ignored_probe()
            raise MCPError(mcp_types.REQUEST_TIMEOUT, "no answer to server/discover") from error
        finally:
            begin.cancel()

    async def _begin(self, limit: asyncio.Timeout) -> None:
        """Have the time for the discovery request begin."""
        while not self._has_read():  # noqa: ASYNC110 - a pipe does not tell
            await asyncio.sleep(_LOOK)
        limit.reschedule(asyncio.get_running_loop().time() + self._probe)

    async def validate_tool_result(self, name: str, result: mcp_types.CallToolResult) -> None:
        """Nothing: the tool has run, and its result is not lost for its form."""


class _LenientDispatcher(JSONRPCDispatcher[Any]):
    """Repairs lists and results on their way to the library, which would refuse them whole."""

    def __init__(
        self, read_stream: Any, write_stream: Any, version: Callable[[], str | None], say: Say
    ) -> None:
        super().__init__(read_stream, write_stream)
        self._version = version
        self._say = say

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Any = None, **more: Any
    ) -> dict[str, Any]:
        raw = await super().send_raw_request(method, params, opts, **more)
        version = self._version() or _HANDSHAKE_VERSION
        if method == "tools/list":
            return _mended_list(raw, version, self._say)
        if method == "tools/call" and not _fits(method, raw, version):
            return _mended_result(raw, version)
        return raw


def _fits(method: str, raw: Mapping[str, Any], version: str) -> bool:
    try:
        methods.validate_server_result(method, version, raw)
    except ValidationError:
        return False
    except (KeyError, ValueError):  # a revision without rules for it
        return True
    return True


def _mended_list(raw: dict[str, Any], version: str, say: Say) -> dict[str, Any]:
    """The list without its malformed tools."""
    tools = raw.get("tools")
    if not isinstance(tools, list):
        say(f"its list of tools is no list: {_shown(tools)}")
        return {**raw, "tools": []}
    cursor = raw.get("nextCursor")
    if cursor is not None and not isinstance(cursor, str):
        raw = {**raw, "nextCursor": str(cursor)}
    if cursor is None:
        raw = {key: value for key, value in raw.items() if key != "nextCursor"}
    given = cast("list[Any]", tools)
    good = [tool for tool in given if _is_good_tool({**raw, "tools": [tool]}, version)]
    if len(good) < len(given):
        names = [_tool_name(t, n) for n, t in enumerate(given, 1) if t not in good]
        say(f"lists tools in a form that the protocol does not have, left out: {', '.join(names)}")
    return {**raw, "tools": good}


def _is_good_tool(listing: dict[str, Any], version: str) -> bool:
    """Whether a list of this one tool would be accepted."""
    if not _fits("tools/list", listing, version):
        return False
    try:
        mcp_types.Tool.model_validate(listing["tools"][0], by_name=False)
    except ValidationError:
        return False
    return True


def _tool_name(tool: Any, number: int) -> str:
    name = cast("dict[str, Any]", tool).get("name") if isinstance(tool, dict) else None
    return f"`{name}`" if isinstance(name, str) and name else f"number {number}"


def _mended_result(raw: dict[str, Any], version: str) -> dict[str, Any]:
    """A result with all that the odd one said, in the protocol's form."""
    if raw.get("resultType") not in (None, "complete"):
        return raw
    mended: dict[str, Any] = {"content": _blocks(raw.get("content"), version)}
    error = raw.get("isError")
    mended["isError"] = error is True or (isinstance(error, str) and error.lower() == "true")
    structured = raw.get("structuredContent")
    if isinstance(structured, dict):
        mended["structuredContent"] = structured
    elif structured is not None:
        mended["content"].append(_text(json.dumps(structured, ensure_ascii=False)))
    others = raw.keys() - {"content", "isError", "structuredContent", "_meta", "resultType"}
    if "content" not in raw and structured is None and others:
        mended["content"].append(_text(_json({key: raw[key] for key in sorted(others)})))
    if version > _HANDSHAKE_VERSION:
        mended["resultType"] = "complete"
    return mended


def _blocks(content: Any, version: str) -> list[Any]:
    if content is None:
        return []
    if isinstance(content, str):
        return [_text(content)]
    blocks = cast("list[Any]", content) if isinstance(content, list) else [content]
    return [_block(each, version) for each in blocks]


def _block(block: Any, version: str) -> Any:
    alone: dict[str, Any] = {"content": [block]}
    if version > _HANDSHAKE_VERSION:
        alone["resultType"] = "complete"
    if _fits("tools/call", alone, version):
        return block
    if isinstance(block, dict):
        known = cast("dict[str, Any]", block)
        if known.get("type", "text") == "text" and isinstance(known.get("text"), str):
            return _text(known["text"])
        if known.get("type") in {"image", "audio"} and isinstance(known.get("data"), str):
            return {"type": known["type"], "data": known["data"], "mimeType": ""}
    return _text(block if isinstance(block, str) else _json(block))


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _json(value: Any) -> str:
    """JSON of a value whose long texts, which may be data, are cut."""

    def cut(each: Any) -> Any:
        match each:
            case str() if len(each) > _DATA and " " not in each:
                return f"({len(each)} characters)"
            case dict():
                return {key: cut(item) for key, item in cast("dict[Any, Any]", each).items()}
            case list():
                return [cut(item) for item in cast("list[Any]", each)]
            case _:
                return each

    return json.dumps(cut(value), ensure_ascii=False)


def _shown(value: Any) -> str:
    return repr(value)[:60]
