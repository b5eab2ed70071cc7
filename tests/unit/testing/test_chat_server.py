"""The scripted chat server, spoken to by plain HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from devall.core.errors import UsageError
from devall.testing.chat_server import ChatServer, refused_url

HELLO = {"messages": [{"role": "user", "content": "hi"}]}


def ask(url: str, body: dict, path: str = "/chat/completions"):
    parts = urlsplit(url + path)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=5)
    try:
        connection.request("POST", parts.path, json.dumps(body), {"X-Test": "1"})
        response = connection.getresponse()
        return response.status, dict(response.getheaders()), response.read().decode()
    finally:
        connection.close()


def test_replies_come_in_order_and_then_are_made_up():
    with ChatServer({"m": ["one", {"text": "two"}]}) as server:
        texts = []
        for _ in range(3):
            _, _, text = ask(server.url, {"model": "m", **HELLO})
            texts.append(json.loads(text)["choices"][0]["message"]["content"])
        assert texts == ["one", "two", "m reply 3"]
        assert server.calls["m"][0] == {"model": "m", **HELLO}
        assert server.requests[0].headers["x-test"] == "1"
        assert server.unused() == {}


def test_a_case_s_script_is_taken_as_it_stands():
    script = {"about": "x", "task": "t", "replies": {"a": ["a1"]}, "human": {"H": ["yes"]}}
    with ChatServer(script) as server:
        assert "a1" in ask(server.url, {"model": "a"})[2]


def test_a_stream_ends_with_usage_only_where_it_was_asked_for():
    with ChatServer({"m": ["one two three", "one two three"]}) as server:
        plain = ask(server.url, {"model": "m", "stream": True})[2]
        counted = ask(
            server.url,
            {"model": "m", "stream": True, "stream_options": {"include_usage": True}},
        )[2]
    assert '"usage"' not in plain
    assert '"completion_tokens": 3' in counted
    assert plain.endswith("data: [DONE]\n\n")


def test_an_error_brings_its_status_and_object():
    with ChatServer({"m": [{"error": "rate_limit_exceeded", "retry_after": 7}]}) as server:
        status, headers, text = ask(server.url, {"model": "m"})
    assert status == 429
    assert headers["retry-after"] == "7"
    assert json.loads(text)["error"]["code"] == "rate_limit_exceeded"


def test_a_strict_server_refuses_calls_beyond_its_script():
    with ChatServer({"m": ["one"]}, strict=True) as server:
        ask(server.url, {"model": "m"})
        status, _, text = ask(server.url, {"model": "m"})
        assert status == 400
        assert "reply number 2 for model m" in text
        assert server.unexpected == 1


def test_a_protocol_that_is_not_spoken_is_no_path():
    with ChatServer(protocols=frozenset({"chat"})) as server:
        assert ask(server.url, {"model": "m"}, "/responses")[0] == 404
        assert ask(server.url, {"model": "m"})[0] == 200


def test_a_reply_may_depend_on_the_request():
    with ChatServer({"m": [lambda body: f"you said {body['messages'][0]['content']}"]}) as server:
        assert "you said hi" in ask(server.url, {"model": "m", **HELLO})[2]


@pytest.mark.parametrize(
    "script",
    [
        {"m": [{"txt": "x"}]},
        {"m": [{"fault": "none"}]},
        {"m": "text"},
        {"m": [{"tool_calls": [{}]}]},
    ],
    ids=["unknown key", "unknown fault", "no list", "call without name"],
)
def test_a_script_that_is_wrong_is_said_at_once(script):
    with pytest.raises(UsageError):
        ChatServer(script)


def test_a_child_process_reaches_it_by_its_environment():
    code = (
        "import os, urllib.request, json\n"
        "r = urllib.request.Request(os.environ['BASE_URL'] + '/chat/completions',"
        " json.dumps({'model': 'm'}).encode())\n"
        "print(urllib.request.urlopen(r).read().decode())\n"
    )
    with ChatServer() as server:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | server.env | {"NO_PROXY": "127.0.0.1"},
            capture_output=True,
            text=True,
            check=True,
        )
    assert "m reply 1" in done.stdout


async def test_a_client_that_goes_away_is_noticed():
    async with ChatServer({"m": [{"fault": "silence"}]}) as server:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 13\r\n\r\n")
        writer.write(b'{"model":"m"}')
        await server.until(lambda: server.active == 1)
        assert server.connections == 1
        writer.close()
        await server.until(lambda: server.abandoned == 1)
        await server.until(lambda: server.connections == 0 and server.active == 0)


async def test_leaving_the_block_closes_what_is_open():
    async with ChatServer({"m": [{"fault": "silence"}]}) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 13\r\n\r\n")
        writer.write(b'{"model":"m"}')
        await server.until(lambda: server.active == 1)
    with contextlib.suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()
    assert server.connections == 0


async def test_most_active_is_the_most_at_one_time():
    async with ChatServer({"m": [{"text": "x", "delay": 0.2}] * 3}) as server:
        await asyncio.gather(
            *(asyncio.to_thread(ask, server.url, {"model": "m"}) for _ in range(3))
        )
        assert server.most_active == 3
        assert server.active == 0


def test_nobody_listens_at_a_refused_url():
    with refused_url() as url, pytest.raises(ConnectionRefusedError):
        ask(url, {})


def test_until_gives_up():
    with ChatServer() as server, pytest.raises(TimeoutError):
        server.wait_until(lambda: False, 0.01)
