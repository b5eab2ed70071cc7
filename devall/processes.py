"""Child processes that do their work and end: in their own group, bounded, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from devall.watchdog import Watchdog

GRACE = 1.0
"""Seconds between TERM and KILL for what is left of a group."""


@dataclass(frozen=True, slots=True)
class ChildResult:
    """How a child process ended."""

    exit_code: int | None
    """Negative: ended by that signal; None: ended here, since its time was up."""
    stdout: bytes
    stderr: bytes
    was_cut: bool = False
    """Whether output beyond the bound was thrown away."""


async def run_child(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    max_output: int = 4 << 20,
    keep_end: bool = False,
) -> ChildResult:
    """Run a command to its end; its whole group is gone when this returns or is cancelled.

    What the program has left running in its group is ended as soon as the program has ended.
    All is gone as well where this process is killed meanwhile.

    Args:
        command: Program and arguments.
        cwd: Working directory.
        env: The whole environment.
        seconds: How long it may take.
        max_output: Bytes that are kept of each stream; the rest is read and dropped.
        keep_end: Whether the end of a stream that is too long is kept as well as its beginning,
            with a line between them that says how much is missing.

    Raises:
        FileNotFoundError: there is no such program, or no such folder.
        PermissionError: it must not be run.
    """
    loop = asyncio.get_running_loop()
    async with _watched() as watchdog:
        transport, child = await loop.subprocess_exec(
            lambda: _Child(loop, max_output, keep_end),
            *command,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        watchdog.add(transport.get_pid(), GRACE)
        try:
            return await _finished(transport, child, seconds)
        finally:
            transport.close()


async def _finished(
    transport: asyncio.SubprocessTransport, child: _Child, seconds: float
) -> ChildResult:
    pid = transport.get_pid()
    is_late = False
    try:
        async with asyncio.timeout(seconds):
            await asyncio.wait([child.exited])
    except TimeoutError:
        is_late = True
        await _end_group(pid, child)
    except BaseException:
        await asyncio.shield(_end_group(pid, child))
        raise
    finally:
        _signal_group(pid, signal.SIGKILL)
    # Whatever has left the group may hold the pipes open for ever.
    await asyncio.wait([child.drained], timeout=GRACE)
    out, err = child.kept[1], child.kept[2]
    return ChildResult(
        None if is_late else transport.get_returncode(),
        out.data,
        err.data,
        out.was_cut or err.was_cut,
    )


@asynccontextmanager
async def _watched() -> AsyncGenerator[Watchdog]:
    """A watchdog for the children of the block; what is left of them ends with it."""
    watchdog = Watchdog()
    watchdog.start()
    try:
        yield watchdog
    finally:
        await asyncio.shield(watchdog.aclose())


class _Child(asyncio.SubprocessProtocol):
    """What a child says, and when it ends."""

    def __init__(self, loop: asyncio.AbstractEventLoop, bound: int, keep_end: bool) -> None:
        self.kept = {1: _Kept(bound, keep_end), 2: _Kept(bound, keep_end)}
        self.exited: asyncio.Future[None] = loop.create_future()
        self.drained: asyncio.Future[None] = loop.create_future()
        self._open = {1, 2}

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        self.kept[fd].add(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        self._open.discard(fd)
        if not self._open and not self.drained.done():
            self.drained.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)


class _Kept:
    """The beginning of a stream, and its end if that is wanted."""

    def __init__(self, bound: int, keep_end: bool) -> None:
        self._tail_size = bound // 2 if keep_end else 0
        self._head_size = bound - self._tail_size
        self._head = bytearray()
        self._tail = bytearray()
        self._dropped = 0

    def add(self, data: bytes) -> None:
        room = self._head_size - len(self._head)
        self._head += data[:room]
        self._tail += data[room:]
        # Not at every chunk: each time, all that is kept of the end is moved.
        if len(self._tail) > 2 * self._tail_size:
            self._trim()

    @property
    def was_cut(self) -> bool:
        return self._dropped > 0 or len(self._tail) > self._tail_size

    @property
    def data(self) -> bytes:
        self._trim()
        if not self._dropped or not self._tail_size:
            return bytes(self._head + self._tail)
        return b"%s\n[... %d bytes left out ...]\n%s" % (self._head, self._dropped, self._tail)

    def _trim(self) -> None:
        more = len(self._tail) - self._tail_size
        if more > 0:
            del self._tail[:more]
            self._dropped += more


async def _end_group(pid: int, child: _Child) -> None:
    """TERM for the group, then KILL for what is left of it."""
    _signal_group(pid, signal.SIGTERM)
    await asyncio.wait([child.exited], timeout=GRACE)
    _signal_group(pid, signal.SIGKILL)
    await asyncio.wait([child.exited])


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
