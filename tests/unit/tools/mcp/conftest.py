"""Real MCP servers, good and bad, over stdio and HTTP."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import threading
import time
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn

from devall.core.events import Event, Warned
from devall.tools.mcp.pool import McpServers

RAW = str(Path(__file__).parent / "raw_server.py")
ODD = str(Path(__file__).parent / "odd_server.py")


@pytest.fixture
def raw_source() -> Callable[..., dict[str, Any]]:
    """The source of a raw server: `raw_source("silent", startup_timeout=1)`."""

    def make(*faults: str, **config: Any) -> dict[str, Any]:
        args = ["-I", "-S", RAW, *faults]
        return {
            "type": "mcp_local",
            "config": {"command": sys.executable, "args": args, **config},
        }

    return make


@pytest.fixture
def odd_source() -> Callable[..., dict[str, Any]]:
    """The source of an odd server: `odd_source("names", "flaky_list=2", cache_ttl=5)`."""

    def make(*faults: str, **config: Any) -> dict[str, Any]:
        args = ["-I", "-S", ODD, *faults]
        config = {"startup_timeout": 20, "protocol": "legacy", **config}
        return {"type": "mcp_local", "config": {"command": sys.executable, "args": args, **config}}

    return make


@pytest.fixture
def watch() -> SimpleNamespace:
    """Ways to look at processes."""
    return SimpleNamespace(is_alive=is_alive, children_of=children_of, until=until)


def is_alive(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


def children_of(pid: int) -> set[int]:
    """All that descend from a process, or were started by what has descended from it."""
    parents: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if each.name.isdigit():
            try:
                stat = (each / "stat").read_bytes()
            except OSError:
                continue
            fields = stat.rpartition(b")")[2].split()
            if fields[0] not in {b"Z", b"X"}:
                parents[int(each.name)] = int(fields[1])
    found: set[int] = set()
    size = -1
    while size != len(found):
        size = len(found)
        found |= {child for child, parent in parents.items() if parent in found | {pid}}
    return found


async def until(check: Callable[[], bool], seconds: float = 8) -> bool:
    """Whether something becomes true within some seconds."""
    deadline = time.monotonic() + seconds
    while not check():
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(0.02)
    return True


class Warnings(list[str]):
    """The messages of the warnings that a pool emits."""

    def take(self, event: Event) -> None:
        assert isinstance(event, Warned)
        self.append(event.message)


@pytest.fixture
def warned() -> Warnings:
    return Warnings()


@pytest.fixture
async def servers(warned: Warnings, tmp_path: Path) -> AsyncIterator[McpServers]:
    """A pool; after the test no process, task or thread of it is left."""
    children, tasks = children_of(os.getpid()), asyncio.all_tasks()
    async with McpServers(emit=warned.take, logs=tmp_path / "servers") as pool:
        yield pool
    assert children_of(os.getpid()) <= children
    own = asyncio.current_task()
    assert await until(lambda: asyncio.all_tasks() - {own} <= tasks, 2)
    assert await until(lambda: not [t for t in threading.enumerate() if "waitpid" in t.name], 2)


@pytest.fixture
def http_server() -> Iterator[Callable[..., str]]:
    """Starts servers that answer everything the same way: `http_server(status, body, ...)`."""
    running: list[ThreadingHTTPServer] = []

    def start(
        status: int = 200,
        body: bytes = b"",
        kind: str = "text/plain",
        headers: dict[str, str] | None = None,
        seen: list[tuple[str, str]] | None = None,
    ) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("content-length", 0)))
                if seen is not None:
                    seen.append((self.command, self.path))
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_DELETE = do_POST  # noqa: N815

            def log_message(self, *_: Any) -> None: ...

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        running.append(server)
        return f"http://127.0.0.1:{server.server_port}/mcp"

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


class LiveServer:
    """A FastMCP server over HTTP in a thread, which can be stopped and started again."""

    def __init__(self, make_app: Callable[[], Any], path: str) -> None:
        self._make_app = make_app
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self._port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}{path}"

    async def start(self) -> None:
        config = uvicorn.Config(
            self._make_app(), port=self._port, log_level="critical", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, daemon=True)
        self._thread.start()
        assert await until(lambda: self._server.started)

    async def stop(self) -> None:
        self._server.should_exit = self._server.force_exit = True
        assert await until(lambda: not self._thread.is_alive())


@pytest.fixture
async def live() -> AsyncIterator[Callable[..., Any]]:
    """Starts FastMCP servers over HTTP: `await live(mcp, transport="sse")`."""
    running: list[LiveServer] = []

    async def start(mcp: Any, path: str = "/mcp", **options: Any) -> LiveServer:
        server = LiveServer(lambda: mcp.http_app(path=path, **options), path)
        await server.start()
        running.append(server)
        return server

    yield start
    for server in running:
        await server.stop()
    with warnings.catch_warnings():
        # The SDK's server leaves streams of a connection open that was cut.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
