"""A real HTTP server on a free loopback port that plays a script as a chat endpoint.

It speaks Chat Completions (`POST /v1/chat/completions`), the Responses API
(`POST /v1/responses`) and Anthropic's Messages API (`POST /v1/messages`), streamed and whole,
lists its models (`GET /v1/models`), makes vectors by spelling (`POST /v1/embeddings`, where a
reply of the script counts if it is an error or a whole body), and misbehaves where the script says so. Paths of Azure
(`/openai/deployments/NAME/chat/completions`, `/openai/v1/...`) are known as well.

```python
script = {
    "poet": [
        {"tool_calls": [{"name": "rand_num", "arguments": {"a": 1, "b": 9}}]},
        "A poem about 7.",
        {"error": "rate_limit_exceeded", "retry_after": 2},
        {"text": "slow", "delay": 0.5},
        {"fault": "half_stream", "text": "never whole"},
    ]
}
async with ChatServer(script) as server:  # in the test's own event loop
    ...  # BASE_URL = server.url, any key
    server.calls["poet"][0]["messages"]  # bodies of the requests, by model, in order
with ChatServer(script) as server:  # in a thread, for tests of child processes
    run(..., env=os.environ | server.env)  # BASE_URL and API_KEY
```

A model name without a script, or with its list used up, is answered `<model> reply <n>`
(with `strict=True`: status 400, and `server.unexpected` counts it). See `Reply` in
`devall.testing.script` for what a reply may hold; a mapping with `replies` (a case's
`script.yaml`) is taken too. Beside `calls` there are

- `requests`: every request with path, headers and body, unknown paths included;
- `active`: requests being answered now; `most_active`: the most at one time;
- `connections`: open now; `connections_made`: opened in all;
- `abandoned`: requests whose client went away before the answer was whole (cancellation);
- `await server.until(lambda: server.active == 1)`, in a thread `server.wait_until(...)`;
- `unused()`: scripted replies that nobody asked for.

`refused_url()` is the URL of a port that refuses connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from types import ModuleType, TracebackType
from typing import Self, cast

from devall.core.messages import JsonValue
from devall.testing import chat_wire, messages_wire
from devall.testing.embedding_wire import embeddings
from devall.testing.script import Playback, Reply, ScriptLike

_REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 429: "Too Many Requests"}


@dataclass(frozen=True, slots=True)
class Recorded:
    """A request as it came; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, JsonValue]
    at: float
    """`time.monotonic()` when it was read."""
    query: str = ""
    """Of the URL, as it came."""
    method: str = "POST"

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model", ""))


class ChatServer:
    """A scripted chat endpoint; `async with` in this event loop, `with` in a thread."""

    def __init__(
        self,
        script: ScriptLike | None = None,
        *,
        strict: bool = False,
        protocols: frozenset[chat_wire.Protocol] = frozenset({"chat", "responses", "messages"}),
        lists_models: bool = True,
    ) -> None:
        """Parse the script; nothing listens yet.

        Args:
            script: Replies by model name, or a case's `script.yaml`.
            strict: Whether a call beyond the script is answered with status 400.
            protocols: What is spoken; the paths of the others do not exist.
            lists_models: Whether there is a list of models.

        Raises:
            UsageError: something in the script is no reply.
        """
        self._playback = Playback.of(script, strict=strict)
        self._protocols = protocols
        self._lists_models = lists_models
        self.requests: list[Recorded] = []
        self.active = 0
        self.most_active = 0
        self.connections_made = 0
        self.abandoned = 0
        self.unexpected = 0
        self.port = 0
        self.live: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def calls(self) -> dict[str, list[dict[str, JsonValue]]]:
        """The bodies of the requests, by model name, in order."""
        return self._playback.calls

    @property
    def url(self) -> str:
        """What goes into `BASE_URL`."""
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def env(self) -> dict[str, str]:
        """The environment that sends a workflow here."""
        return {"BASE_URL": self.url, "API_KEY": "scripted-key"}

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self.live)

    def unused(self) -> dict[str, int]:
        """How many replies of each model were not asked for."""
        return self._playback.unused()

    async def until(self, predicate: Callable[[], bool], seconds: float = 5) -> None:
        """Wait until something is true of this server.

        Raises:
            TimeoutError: it was not in that time.
        """
        async with asyncio.timeout(seconds):
            while not predicate():  # noqa: ASYNC110 - any predicate, also of other threads
                await asyncio.sleep(0.002)

    def wait_until(self, predicate: Callable[[], bool], seconds: float = 5) -> None:
        """`until` for a test that has no event loop.

        Raises:
            TimeoutError: it was not in that time.
        """
        end = time.monotonic() + seconds
        while not predicate():
            if time.monotonic() > end:
                raise TimeoutError("the scripted server did not get there in time")
            time.sleep(0.002)

    async def __aenter__(self) -> Self:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        tasks = [c.task for c in self.live if c.task is not None]
        for connection in list(self.live):
            connection.abort()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.until(lambda: not self.live)
        await self._server.wait_closed()

    def __enter__(self) -> Self:
        loop = self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="chat-server", daemon=True)
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self.__aenter__(), loop).result()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._loop is not None
        assert self._thread is not None
        asyncio.run_coroutine_threadsafe(self.__aexit__(kind, error, trace), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def answer(self, request: Recorded) -> tuple[Reply, chat_wire.Asked]:
        """Note the request and choose its reply."""
        self.requests.append(request)
        path = _AZURE.sub("/v1", request.path)
        if self._lists_models and request.method == "GET" and path == "/v1/models":
            return self._listing(), chat_wire.Asked("", 0, {}, "chat")
        if path == "/v1/embeddings":
            return self._embeddings(request), chat_wire.Asked(request.model, 0, {}, "chat")
        for protocol, ending in _PATHS.items():
            if path == f"/v1{ending}" and protocol in self._protocols:
                break
        else:
            body = {"error": {"message": f"no {request.path} here", "code": None}}
            missing = chat_wire.Asked(request.model, 0, request.body, "chat")
            return Reply(status=404, body=body), missing
        reply = self._playback.next(request.model, request.body)
        number = len(self.calls[request.model])
        asked = chat_wire.Asked(request.model, number, request.body, protocol)
        if reply is None:
            self.unexpected += 1
            text = f"the script has no reply number {number} for model {request.model}"
            return Reply(text, status=400, error="unexpected_call"), asked
        return reply, asked

    def _embeddings(self, request: Recorded) -> Reply:
        """The script's next reply where that is an error or a whole body, else vectors."""
        written = self._playback.next(request.model, request.body) or Reply()
        is_other = written.error or written.fault or written.body or written.status != 200
        return written if is_other else replace(written, body=embeddings(request.body))

    def _listing(self) -> Reply:
        """The models of the script."""
        names = list(self._playback.replies)
        return Reply(body={"object": "list", "data": [{"id": n, "object": "model"} for n in names]})


_PATHS: Mapping[chat_wire.Protocol, str] = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "messages": "/messages",
}
_AZURE = re.compile(r"^/openai(/deployments/[^/]+|/v1)?(?=/)")


class _Connection(asyncio.Protocol):
    """One connection: requests one after the other, each answered by a task."""

    def __init__(self, server: ChatServer) -> None:
        self._server = server
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self.task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.live.add(self)
        self._server.connections_made += 1

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's name
        self._server.live.discard(self)
        if self.task is not None:
            self._server.abandoned += 1
            self.task.cancel()

    def abort(self) -> None:
        """Break the connection off."""
        if self._transport is not None:
            self._transport.abort()

    def data_received(self, data: bytes) -> None:
        self._received += data
        self._begin()

    def _begin(self) -> None:
        """Take the next request, where it is whole and the last one is answered."""
        head, found, rest = self._received.partition(b"\r\n\r\n")
        if self.task is not None or not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {
            name.strip().lower(): value.strip()
            for name, _, value in (line.partition(":") for line in lines)
        }
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            return
        self._received = rest[length:]
        method, target, _ = first.split(" ")
        path, _, query = target.partition("?")
        body = json.loads(rest[:length] or b"{}")
        request = Recorded(path, headers, body, time.monotonic(), query, method)
        server = self._server
        server.active += 1
        server.most_active = max(server.most_active, server.active)
        self.task = asyncio.get_running_loop().create_task(self._answer(request))
        self.task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._server.active -= 1
        self.task = None
        if not task.cancelled() and (error := task.exception()) is not None:
            self.abort()
            raise error
        if self._transport is not None and not self._transport.is_closing():
            self._begin()

    async def _answer(self, request: Recorded) -> None:
        reply, asked = self._server.answer(request)
        if reply.delay:
            await asyncio.sleep(reply.delay)
        status = chat_wire.error_status(reply)
        match reply.fault:
            case "silence":
                await asyncio.get_running_loop().create_future()
            case "close":
                self._hang_up()
            case "html":
                self._whole(reply, status, chat_wire.HTML, "text/html; charset=utf-8")
            case "empty_body":
                self._whole(reply, status, "")
            case _ if reply.body is not None:
                text = reply.body if isinstance(reply.body, str) else json.dumps(reply.body)
                self._whole(reply, status, text)
            case _ if status >= 400:
                self._whole(reply, status, json.dumps(_wire(asked).error_body(reply)))
            case _ if asked.is_stream and reply.fault != "plain_json":
                await self._stream(reply, asked, status)
            case _:
                self._whole(reply, status, json.dumps(_wire(asked).whole(reply, asked)))

    def _hang_up(self) -> None:
        self.task = None
        self.abort()

    def _head(self, reply: Reply, status: int, headers: Mapping[str, str]) -> None:
        sent = {**headers, **reply.headers}
        if reply.retry_after is not None:
            sent["retry-after"] = str(reply.retry_after)
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        self._write(f"HTTP/1.1 {status} {_REASONS.get(status, 'Scripted')}\r\n{lines}\r\n")

    def _write(self, text: str) -> None:
        assert self._transport is not None
        self._transport.write(text.encode())

    def _whole(self, reply: Reply, status: int, text: str, mime: str = "application/json") -> None:
        self._head(reply, status, {"content-type": mime, "content-length": str(_size(text))})
        self._write(text)

    async def _stream(self, reply: Reply, asked: chat_wire.Asked, status: int) -> None:
        events = list(_wire(asked).events(reply, asked))
        half = reply.fault in {"half_stream", "early_end", "stall", "broken_json", "stream_error"}
        if half:
            events = events[: max(1, len(events) // 2)]
        if reply.fault == "broken_json":
            events.append('event: content_block_delta\ndata: {"id": "chatcmpl\n\n')
        if reply.fault == "stream_error":
            error = _wire(asked).error_body(reply)
            events.append(chat_wire.event(error, "error" if asked.protocol == "messages" else ""))
        mime = "text/event-stream; charset=utf-8"
        self._head(reply, status, {"content-type": mime, "transfer-encoding": "chunked"})
        if reply.pause:
            for piece in events:
                self._chunk(piece)
                await asyncio.sleep(reply.pause)
        else:
            self._chunk(*events)
        match reply.fault:
            case "half_stream":
                await asyncio.sleep(0.01)
                self._hang_up()
            case "stall":
                await asyncio.get_running_loop().create_future()
            case _:
                self._write("0\r\n\r\n")

    def _chunk(self, *pieces: str) -> None:
        self._write("".join(f"{_size(piece):x}\r\n{piece}\r\n" for piece in pieces))


def _wire(asked: chat_wire.Asked) -> ModuleType:
    """How the protocol that was asked in is written."""
    return messages_wire if asked.protocol == "messages" else chat_wire


def _size(text: str) -> int:
    return len(text.encode())


@contextlib.contextmanager
def refused_url() -> Generator[str]:
    """The URL of a port that refuses connections, and stays so within the block."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1"
