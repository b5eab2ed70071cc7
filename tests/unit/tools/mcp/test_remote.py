from __future__ import annotations

import asyncio
import gc
import json
import ssl
import time
from collections.abc import Callable
from typing import Any

import pytest
from fastmcp import Context, FastMCP
from fastmcp.server.dependencies import get_http_headers
from fastmcp.utilities.types import Image

from devall.core.errors import SetupError
from devall.core.events import ToolProgress
from devall.core.messages import MediaPart, ToolCall
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 3000


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


def source(url: str, **config: Any) -> dict[str, Any]:
    return {"type": "mcp_remote", "config": {"server": url, **config}}


def make_server() -> FastMCP:
    mcp = FastMCP("test")

    @mcp.tool(annotations={"readOnlyHint": True})
    def add(a: int, b: int) -> int:
        """Add up."""
        return a + b

    @mcp.tool
    async def nap(seconds: float, ctx: Context) -> str:
        await ctx.report_progress(1, 2, "half")
        await asyncio.sleep(seconds)
        return "slept"

    @mcp.tool
    def boom() -> str:
        raise ValueError("disk full")

    @mcp.tool
    def picture() -> list[Any]:
        return ["see:", Image(data=PNG, format="png")]

    @mcp.tool
    def big() -> str:
        return "x" * 2_000_000

    @mcp.tool
    def key() -> str:
        return get_http_headers(include={"authorization"}).get("authorization", "")

    @mcp.tool(meta={"source": "mcp_tools"})
    def marked() -> str: ...

    @mcp.tool(meta={"source": "other"})
    def foreign() -> str: ...

    return mcp


async def test_tools_are_listed_and_called(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any
):
    server = await live(make_server())
    config = source(server.url, headers={"Authorization": "Bearer k"})
    async with manager_of(config, servers=servers) as tools:
        names = [s.name for s in tools.specs()]
        assert names == ["add", "nap", "boom", "picture", "big", "key", "marked"]
        meta = tools.specs()[0].metadata
        assert (meta["source"], meta["mode"], meta["readOnlyHint"]) == ("mcp", "remote", True)
        assert server.url in meta["server"]
        assert (await tools.call(call("add", a=2, b=3), scope)).text == "5"
        assert (await tools.call(call("key"), scope)).text == "Bearer k"
        failed = await tools.call(call("boom"), scope)
        assert failed.is_error
        assert "disk full" in failed.text


def contexts() -> set[int]:
    # `isinstance` would ask proxies of objects that are gone.
    return {id(each) for each in gc.get_objects() if issubclass(type(each), ssl.SSLContext)}


async def test_certificates_are_read_once_for_all_servers_of_the_process(
    manager_of: Managers, servers: McpServers, live: Any
):
    server = await live(make_server())
    async with manager_of(source(server.url), servers=servers):
        before = contexts()
        others = [source(server.url, headers={"x": str(n)}) for n in range(3)]
        others = [each | {"prefix": f"p{n}"} for n, each in enumerate(others)]
        async with manager_of(*others, servers=servers) as tools:
            assert len(tools.specs()) == 3 * 7
            assert contexts() <= before


async def test_tool_sources_choose_by_the_servers_mark(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any
):
    server = await live(make_server())
    config = source(server.url, tool_sources=["other"])
    async with manager_of(config, servers=servers) as tools:
        assert [s.name for s in tools.specs()] == ["foreign"]
        result = await tools.call(call("add", a=1, b=2), scope)
    assert result.is_error
    assert "not available to this node" in result.text


@pytest.mark.parametrize("protocol", ["auto", "legacy", "modern"])
async def test_each_protocol_carries_big_results_images_and_progress(
    manager_of: Managers,
    servers: McpServers,
    live: Any,
    scope: Any,
    workspace: Any,
    protocol: str,
):
    server = await live(make_server())
    config = source(server.url, protocol=protocol) | {"max_result_chars": 3_000_000}
    async with manager_of(config, servers=servers) as tools:
        assert len((await tools.call(call("big"), scope)).text) == 2_000_000
        result = await tools.call(call("picture"), scope)
        media = [part for part in result.parts if isinstance(part, MediaPart)]
        assert [m.mime_type for m in media] == ["image/png"]
        assert workspace.read_attachment(media[0].attachment) == PNG
        assert result.text.startswith("see:")
        assert len(result.text) < 300
        await tools.call(call("nap", seconds=0), scope)
    (event,) = scope.events
    assert isinstance(event, ToolProgress)
    assert (event.progress, event.total) == (1, 2)


async def test_sse_only_servers_are_found_by_themselves(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any, warned: list[str]
):
    server = await live(make_server(), path="/sse", transport="sse")
    async with manager_of(source(server.url), servers=servers) as tools:
        assert (await tools.call(call("add", a=2, b=3), scope)).text == "5"
    assert "transport: sse" in warned[0]


async def test_each_timeout_is_the_calls_own(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any
):
    server = await live(make_server())
    async with manager_of(
        source(server.url, timeout=5) | {"timeout": 0.3}, servers=servers
    ) as tools:
        began = time.monotonic()
        result = await tools.call(call("nap", seconds=4), scope)
        assert result.is_error
        assert "unknown" in result.text
        assert time.monotonic() - began < 2
        assert (await tools.call(call("add", a=1, b=1), scope)).text == "2"


async def test_a_restarted_server_is_used_again(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any
):
    for protocol in ("legacy", "modern"):
        server = await live(make_server())
        config = source(server.url, protocol=protocol)
        async with manager_of(config, servers=servers) as tools:
            assert (await tools.call(call("add", a=1, b=1), scope)).text == "2"
            await server.stop()
            await server.start()
            assert (await tools.call(call("add", a=1, b=2), scope)).text == "3"
            assert (await tools.call(call("add", a=1, b=3), scope)).text == "4"


async def test_a_call_while_the_server_is_down_fails_and_the_next_one_works(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any
):
    server = await live(make_server())
    async with manager_of(source(server.url, timeout=1), servers=servers) as tools:
        await server.stop()
        result = await tools.call(call("add", a=1, b=1), scope)
        assert result.is_error
        assert server.url in result.text
        await server.start()
        assert (await tools.call(call("add", a=1, b=2), scope)).text == "3"


@pytest.mark.parametrize(
    ("status", "body", "kind", "said", "hint"),
    [
        (401, b'{"error": "no key"}', "application/json", "401 Unauthorized", "Authorization"),
        (403, b"", "text/plain", "403 Forbidden", "Authorization"),
        (404, b"<h1>Not here</h1>", "text/html", "404 Not Found", "path"),
        (200, b"<html>Welcome</html>", "text/html", "200 OK: <html>Welcome", "MCP server?"),
        (503, b"down for repair", "text/plain", "503 Service Unavailable: down", "log"),
        (307, b"", "text/plain", "307", "redirects"),
    ],
)
async def test_an_http_refusal_keeps_status_and_first_bytes(
    manager_of: Managers,
    servers: McpServers,
    http_server: Any,
    status: int,
    body: bytes,
    kind: str,
    said: str,
    hint: str,
):
    headers = {"location": "http://127.0.0.1:9/other"} if status == 307 else {}
    url = http_server(status, body, kind, headers)
    with pytest.raises(SetupError) as caught:
        async with manager_of(source(url, timeout=2), servers=servers):
            raise AssertionError
    assert said in str(caught.value)
    assert url in str(caught.value)
    assert hint in caught.value.hint


async def test_what_is_final_is_asked_once_and_what_may_pass_again(
    manager_of: Managers, servers: McpServers, http_server: Any
):
    for status, least, most in [(401, 1, 3), (503, 4, 20)]:
        seen: list[tuple[str, str]] = []
        url = http_server(status, seen=seen)
        with pytest.raises(SetupError):
            async with manager_of(source(url, timeout=3), servers=servers):
                raise AssertionError
        assert least <= len(seen) <= most


async def test_nobody_listening_and_nobody_answering_name_the_url(
    manager_of: Managers, servers: McpServers
):
    with pytest.raises(SetupError) as caught:
        async with manager_of(source("http://127.0.0.1:9/mcp", timeout=1), servers=servers):
            raise AssertionError
    assert "http://127.0.0.1:9/mcp cannot be reached" in str(caught.value)
    assert "is the server running" in caught.value.hint

    async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    mute = await asyncio.start_server(never, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{mute.sockets[0].getsockname()[1]}/mcp"
    began = time.monotonic()
    with pytest.raises(SetupError, match="did not answer within 1 s"):
        async with manager_of(source(url, timeout=1), servers=servers):
            raise AssertionError
    assert time.monotonic() - began < 4
    await servers.aclose()
    mute.close()


async def test_a_server_that_comes_up_late_is_waited_for(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any
):
    server = await live(make_server())
    await server.stop()
    opening = asyncio.create_task(manager_of(source(server.url), servers=servers).__aenter__())
    await asyncio.sleep(0.2)
    await server.start()
    tools = await opening
    assert (await tools.call(call("add", a=1, b=2), scope)).text == "3"


async def test_one_session_serves_all_nodes_of_the_same_configuration(
    manager_of: Managers, servers: McpServers, live: Any
):
    mcp = make_server()
    listed = 0

    async def count(context: Any, call_next: Any) -> Any:
        nonlocal listed
        listed += context.method == "tools/list"
        return await call_next(context)

    mcp.add_middleware(count)
    server = await live(mcp)
    managers = [manager_of(source(server.url), servers=servers) for _ in range(5)]
    await asyncio.gather(*(m.__aenter__() for m in managers))
    assert listed == 1


async def test_several_sources_that_fail_are_all_named(
    manager_of: Managers, servers: McpServers, http_server: Any
):
    urls = [http_server(401), http_server(404)]
    with pytest.raises(SetupError) as caught:
        async with manager_of(*(source(u, timeout=2) for u in urls), servers=servers):
            raise AssertionError
    assert all(url in str(caught.value) for url in urls)
