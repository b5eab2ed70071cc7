"""Serves one client over stdin and stdout, which carry nothing but the protocol."""

from __future__ import annotations

import asyncio
import fcntl
import os
import queue
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Self

from devall.tools.serve.server import Server

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Pipes:
    """The descriptors of the protocol, which nothing else knows."""

    read: int
    write: int


@contextmanager
def protocol_pipes() -> Generator[Pipes]:
    """Takes stdin and stdout for the protocol.

    Within the block descriptor 0 holds nothing and descriptor 1 leads to stderr, so that neither
    a `print` in a tool nor a child process gets between the messages.
    """
    # Above the standard ones, each of which may be closed.
    pipes = Pipes(*(fcntl.fcntl(n, fcntl.F_DUPFD_CLOEXEC, 3) for n in (0, 1)))
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        os.dup2(nothing, 0)
        try:
            os.dup2(2, 1)
        except OSError:  # stderr may be closed
            os.dup2(nothing, 1)
        yield pipes
    finally:
        os.close(nothing)
        with suppress(OSError):
            os.dup2(pipes.read, 0)
            os.dup2(pipes.write, 1)
        # The descriptors stay: a thread may still wait at one of them.


async def serve_stdio(server: Server, pipes: Pipes) -> None:
    """Serve until the client closes its end; being cancelled ends it at once."""
    lines = _Lines(pipes.read)
    out = _Out(pipes.write, lines)
    try:
        await server.speak(lines, out)
    finally:
        out.end()


class _Lines:
    """Lines from a descriptor, read by a thread that need not end for the process to end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._received: asyncio.Queue[bytes | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="devall-stdin", daemon=True).start()

    def end(self) -> None:
        """No more lines: the client is gone."""
        self._received.put_nowait(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        line = await self._received.get()
        if line is None:
            raise StopAsyncIteration
        return line.decode("utf-8", "replace")

    def _read(self) -> None:
        rest = b""
        with suppress(OSError):
            while chunk := os.read(self._descriptor, _CHUNK):
                *whole, rest = (rest + chunk).split(b"\n") if b"\n" in chunk else (rest + chunk,)
                for line in whole:
                    self._post(line)
        if rest:
            self._post(rest)
        self._post(None)

    def _post(self, line: bytes | None) -> None:
        if line is None or line.strip():
            # A closed loop has nobody left to read.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._received.put_nowait, line)


class _Out:
    """Text to a descriptor, written by a thread: a client that reads slowly stops nothing."""

    def __init__(self, descriptor: int, lines: _Lines) -> None:
        self._descriptor = descriptor
        self._lines = lines
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]] | None]
        self._jobs = queue.SimpleQueue()
        threading.Thread(target=self._write, name="devall-stdout", daemon=True).start()

    async def write(self, text: str) -> None:
        """Returns when all is written; when the client is gone there is nobody to tell."""
        done: asyncio.Future[None] = self._loop.create_future()
        self._jobs.put((text.encode("utf-8", "replace"), done))
        await done

    def end(self) -> None:
        """Nothing more will be written."""
        self._jobs.put(None)

    async def flush(self) -> None:
        """Nothing is kept back."""

    def _write(self) -> None:
        while (job := self._jobs.get()) is not None:
            data, done = job
            try:
                rest = memoryview(data)
                while rest:
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError:
                self._post(self._lines.end)
            self._post(lambda done=done: done.done() or done.set_result(None))

    def _post(self, work: object) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(work)  # pyright: ignore[reportArgumentType]
