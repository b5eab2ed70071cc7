"""What holds with HTTP servers in both protocol eras: redirects, changes, questions, retries."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import mcp_types
import pytest
from fastmcp import Context, FastMCP

from devall.core.errors import SetupError
from devall.core.messages import ToolCall
from devall.core.ports import Question
from devall.testing.scope import PlainScope
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]
ERAS = ["legacy", "modern"]


def call(name: str, **arguments: Any) -> ToolCall:
    return ToolCall("c1", name, json.dumps(arguments))


def source(url: str, **config: Any) -> dict[str, Any]:
    return {"type": "mcp_remote", "config": {"server": url, **config}}


TEXT = {"type": "object", "properties": {}}
Reply = tuple[int, dict[str, str], Any]


class HandMade:
    """A stateless HTTP server of the handshake era by hand."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, str, str]] = []
        """Path, method of the protocol, Authorization."""
        self.replies: Callable[[str, str, int], Reply | None] = lambda *_: None
        """Path, method of the protocol and how often it was asked for, to another reply."""
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                length = int(self.headers.get("content-length", 0))
                message = json.loads(self.rfile.read(length) or b"{}")
                method = message.get("method", "")
                key = self.headers.get("authorization", "")
                outer.seen.append((self.path, method, key))
                times = sum(m == method for _, m, _ in outer.seen)
                status, headers, body = outer.replies(self.path, method, times) or outer.usual(
                    method, message.get("id")
                )
                if isinstance(body, dict) and "id" in body:
                    body["id"] = message.get("id")
                data = b"" if body is None else json.dumps(body).encode()
                self.send_response(status)
                for name, value in {"content-type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def do_GET(self) -> None:
                outer.seen.append((self.path, "GET", self.headers.get("authorization", "")))
                self.send_response(405)
                self.send_header("content-length", "0")
                self.end_headers()

            do_DELETE = do_GET  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def usual(self, method: str, number: Any) -> Reply:
        if number is None:
            return 202, {}, None
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "hand", "version": "1"},
            },
            "tools/list": {"tools": [{"name": "t", "inputSchema": TEXT}]},
            "tools/call": {"content": [{"type": "text", "text": "called"}]},
        }
        if method in results:
            return 200, {}, {"jsonrpc": "2.0", "id": number, "result": results[method]}
        error = {"code": -32601, "message": "unknown"}
        return 200, {}, {"jsonrpc": "2.0", "id": number, "error": error}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.thread.join()

    def count(self, method: str) -> int:
        return sum(m == method for _, m, _ in self.seen)


@pytest.fixture
def hand_made() -> Iterator[Callable[[], HandMade]]:
    running: list[HandMade] = []

    def start() -> HandMade:
        running.append(HandMade())
        return running[-1]

    yield start
    for server in running:
        server.close()


# C5
@pytest.mark.parametrize("status", [307, 308])
async def test_a_redirect_to_the_same_origin_is_followed_and_said(
    manager_of: Managers, servers: McpServers, hand_made: Any, scope: Any, warned: Any, status: int
):
    server = hand_made()
    server.replies = lambda path, *_: (
        (status, {"location": "/mcp/"}, None) if path == "/mcp" else None
    )
    config = source(server.url + "/mcp", headers={"Authorization": "Bearer k"})
    async with manager_of(config, servers=servers) as tools:
        assert (await tools.call(call("t"), scope)).text == "called"
    assert len(warned) == 1
    assert f"redirects to {server.url}/mcp/" in warned[0]
    assert {key for path, _, key in server.seen if path == "/mcp/"} == {"Bearer k"}


async def test_a_redirect_to_another_origin_gets_no_request_and_no_key(
    manager_of: Managers, servers: McpServers, hand_made: Any
):
    other, server = hand_made(), hand_made()
    server.replies = lambda *_: (307, {"location": other.url + "/mcp"}, None)
    config = source(server.url + "/mcp", headers={"Authorization": "Bearer k"})
    with pytest.raises(SetupError) as caught:
        async with manager_of(config, servers=servers):
            raise AssertionError
    assert other.seen == []
    assert "307" in str(caught.value)
    assert "none is followed to another origin" in caught.value.hint


async def test_redirects_that_lead_on_and_on_are_followed_once(
    manager_of: Managers, servers: McpServers, hand_made: Any
):
    server = hand_made()
    server.replies = lambda path, *_: (307, {"location": path + "x"}, None)
    with pytest.raises(SetupError, match="307"):
        async with manager_of(source(server.url + "/mcp", transport="http"), servers=servers):
            raise AssertionError
    assert {path for path, _, _ in server.seen} == {"/mcp", "/mcpx"}


async def test_a_list_is_asked_for_again_after_half_a_second_unless_the_answer_is_final(
    manager_of: Managers, servers: McpServers, hand_made: Any, scope: Any
):
    def busy(_: str, method: str, times: int) -> Reply | None:
        if method != "tools/list" or times > 2:
            return None
        if times == 1:
            return 503, {"content-type": "text/plain"}, None
        error = {"code": -32603, "message": "warming up"}
        return 200, {}, {"jsonrpc": "2.0", "id": 0, "error": error}

    server = hand_made()
    server.replies = busy
    began = time.monotonic()
    async with manager_of(source(server.url + "/mcp"), servers=servers) as tools:
        assert (await tools.call(call("t"), scope)).text == "called"
    assert server.count("tools/list") == 3
    assert time.monotonic() - began >= 1

    final = hand_made()
    final.replies = lambda _, method, __: (401, {}, None) if method == "tools/list" else None
    with pytest.raises(SetupError, match="401") as caught:
        async with manager_of(source(final.url + "/mcp"), servers=servers):
            raise AssertionError
    assert "headers.Authorization" in caught.value.hint
    assert final.count("tools/list") == 1


# C3
@pytest.mark.parametrize(
    ("status", "said"), [(401, "401 Unauthorized"), (503, "503"), (500, "500")]
)
async def test_a_refused_call_keeps_status_and_the_session_lives_on(
    manager_of: Managers,
    servers: McpServers,
    hand_made: Any,
    scope: Any,
    status: int,
    said: str,
):
    server = hand_made()
    server.replies = lambda _, method, times: (
        (status, {}, {"why": "because"}) if method == "tools/call" and times == 1 else None
    )
    async with manager_of(source(server.url + "/mcp"), servers=servers) as tools:
        refused = await tools.call(call("t"), scope)
        assert refused.is_error
        assert said in refused.text
        assert "because" in refused.text
        assert (await tools.call(call("t"), scope)).text == "called"
    assert server.count("tools/call") == 2  # never repeated by itself
    assert server.count("initialize") == 1


# C1: a 404 proves that the call was not begun
async def test_a_404_on_a_call_means_one_new_session_and_one_repeat(
    manager_of: Managers, servers: McpServers, hand_made: Any, scope: Any
):
    server = hand_made()
    server.replies = lambda _, method, times: (
        (404, {}, None) if method == "tools/call" and times == 1 else None
    )
    async with manager_of(source(server.url + "/mcp"), servers=servers) as tools:
        assert (await tools.call(call("t"), scope)).text == "called"
        assert (server.count("initialize"), server.count("tools/call")) == (2, 2)
        server.replies = lambda _, method, __: (404, {}, None) if method == "tools/call" else None
        gone = await tools.call(call("t"), scope)
        assert gone.is_error
        assert "404" in gone.text
    assert server.count("tools/call") == 4


async def test_cache_ttl_is_by_server_headers_and_timeout(manager_of: Managers, hand_made: Any):
    server = hand_made()

    async def lists(**config: Any) -> int:
        before = server.count("tools/list")
        async with (
            McpServers() as servers,
            manager_of(source(server.url + "/mcp", **config), servers=servers) as tools,
        ):
            assert len(tools.specs()) == 1
        return server.count("tools/list") - before

    one = {"headers": {"A": "1", "B": "2"}, "cache_ttl": 60}
    assert await lists(**one) == 1
    assert await lists(**one) == 0
    assert await lists(headers={"b": "2", "a": "1"}, cache_ttl=60) == 0
    assert await lists(headers={"A": "1", "B": "3"}, cache_ttl=60) == 1
    assert await lists(**one, timeout=9) == 1
    assert await lists(headers={"A": "1", "B": "2"}) == 1


# C4
@pytest.mark.parametrize("era", ERAS)
async def test_a_calls_time_is_honoured_to_half_a_second(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any, era: str
):
    server = await live(interactive())
    async with manager_of(source(server.url, protocol=era, timeout=1), servers=servers) as tools:
        began = time.monotonic()
        result = await tools.call(call("wait"), scope)
        assert "outcome unknown" in result.text
        assert 1 <= time.monotonic() - began < 2


def interactive() -> FastMCP:
    mcp = FastMCP("interactive")

    @mcp.tool
    async def who(ctx: Context) -> str:
        found = await ctx.elicit("Who are you?", response_type=str)
        return f"{found.action} {getattr(found, 'data', '')}".strip()

    @mcp.tool
    async def wait() -> None:
        await asyncio.sleep(3)

    @mcp.tool
    async def grow(ctx: Context) -> str:
        @mcp.tool
        def grown() -> str:
            return "grown called"

        await ctx.send_notification(mcp_types.ToolListChangedNotification())
        return "grown"

    return mcp


class Person:
    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> str:
        self.asked.append(question)
        return self.answer


# The newer form, a result that asks, is played by modern_server.py.
async def test_a_servers_question_reaches_the_human(
    manager_of: Managers, servers: McpServers, live: Any, scope: Any, warned: Any
):
    server = await live(interactive())
    person = Person("Ada")
    config = source(server.url, protocol="legacy")
    async with manager_of(config, servers=servers, human=person) as tools:
        assert (await tools.call(call("who"), scope)).text == "accept Ada"
    assert "Who are you?" in person.asked[0].text
    async with manager_of(config, servers=servers, emit=warned.take) as tools:
        assert (await tools.call(call("who"), scope)).text == "decline"
    assert "declined" in warned[-1]


async def test_over_http_questions_at_once_reach_the_callers_they_belong_to(
    manager_of: Managers, servers: McpServers, live: Any
):
    server = await live(interactive())
    people = {node: Person(f"I am {node}") for node in "ABC"}

    async def ask(node: str) -> str:
        config = source(server.url, protocol="legacy")
        async with manager_of(config, servers=servers, human=people[node]) as tools:
            return (await tools.call(call("who"), PlainScope(node, f"/{node}@1"))).text

    found = await asyncio.gather(*map(ask, people))
    assert found == [f"accept I am {node}" for node in people]
    assert [person.asked[0].node for person in people.values()] == list(people)


# D9
async def test_changed_tools_of_an_http_server_are_taken_over(
    manager_of: Managers,
    servers: McpServers,
    live: Any,
    scope: Any,
):
    server = await live(interactive())
    async with manager_of(source(server.url, protocol="legacy"), servers=servers) as tools:
        assert (await tools.call(call("grow"), scope)).text == "grown"
        for _ in range(100):
            await tools.refresh()
            if "grown" in [spec.name for spec in tools.specs()]:
                break
            await asyncio.sleep(0.05)
        assert (await tools.call(call("grown"), scope)).text == "grown called"
