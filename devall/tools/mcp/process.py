"""A server's process: its pipes, its end, and the end of all that it has started."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import termios
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self, cast

from devall.watchdog import POLL, Watchdog, has_members, send

MAX_LINE = 64 * 1024 * 1024
"""Bytes of one line; a server that writes more without a newline is given up."""
LAST_WORDS = 0.2
"""Seconds that the pipes of a process which has ended get to run dry."""
LAST_ERRORS = 1.0
"""Seconds that its stderr gets where what it said last is to be told."""
KILLED = 2.0
"""Seconds after SIGKILL until a process group is given up."""

OnLine = Callable[[bytes], None]
"""Takes a line without its newline."""


class ServerProcess(asyncio.SubprocessProtocol):
    """One child in a process group of its own.

    Nothing here waits for the child to read: what is written is buffered, so that a call can
    be cancelled and the child be stopped however stuck it is.
    """

    def __init__(self, watchdog: Watchdog, on_stdout: OnLine, on_stderr: OnLine) -> None:
        self._watchdog = watchdog
        self._lines = {1: _Lines(on_stdout), 2: _Lines(on_stderr)}
        self._transport: asyncio.SubprocessTransport | None = None
        self._group = 0
        self._open_pipes = {1, 2}
        self._exited = asyncio.Event()
        self._drained = asyncio.Event()
        self._silent = asyncio.Event()
        self._stdin = -1
        """Another descriptor of the pipe to the child: its transport closes its own too soon
        to be asked what was read."""
        self._written = 0
        self._unread = 0

    @classmethod
    async def start(
        cls,
        command: str,
        args: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str],
        watchdog: Watchdog,
        grace: float,
        on_stdout: OnLine,
        on_stderr: OnLine,
    ) -> Self:
        """A process that runs.

        Args:
            command: The program, looked up on the child's own PATH.
            args: Its arguments.
            cwd: Its working directory, None = ours.
            env: Its whole environment.
            watchdog: Ends it where we cannot.
            grace: Seconds between two steps of its end.
            on_stdout: Takes its output.
            on_stderr: Takes its other output.

        Raises:
            OSError: it cannot be started.
        """
        if cwd is not None and not Path(cwd).is_dir():  # noqa: ASYNC240 -- once, and quick
            raise NotADirectoryError(f"there is no folder {cwd}")
        watchdog.start()
        loop = asyncio.get_running_loop()
        process = cls(watchdog, on_stdout, on_stderr)
        transport, _ = await loop.subprocess_exec(
            lambda: process,
            command,
            *args,
            cwd=cwd,
            env=env,
            start_new_session=True,
        )
        process._transport = transport
        process._group = transport.get_pid()
        pipe = transport.get_pipe_transport(0)
        assert pipe is not None
        with contextlib.suppress(ValueError, OSError):  # a child that has ended already
            process._stdin = os.dup(pipe.get_extra_info("pipe").fileno())
        watchdog.add(process.pid, grace)
        return process

    @property
    def pid(self) -> int:
        """Id of the child and of its process group."""
        return self._group

    @property
    def returncode(self) -> int | None:
        """As of `subprocess`: negative for a signal; None while it runs."""
        return self._transport.get_returncode() if self._transport else None

    @property
    def has_ended(self) -> bool:
        """Whether the child is gone, or has closed its stdout."""
        return self._drained.is_set() or self._exited.is_set()

    def has_read(self) -> bool:
        """Whether the child has taken any of its input, or had, where it is gone."""
        if self._stdin >= 0:
            self._unread = self._left_in_pipe()
        return self._unread < self._written

    def describe_end(self) -> str:
        """How the child ended, in words; empty while it runs."""
        code = self.returncode
        if code is None:
            return ""
        if code < 0:
            try:
                return f"was ended by {signal.Signals(-code).name}"
            except ValueError:
                return f"was ended by signal {-code}"
        return f"exited with code {code}"

    def write(self, data: bytes) -> None:
        """Give the child some input; nothing happens if it takes none any more."""
        pipe = self._transport.get_pipe_transport(0) if self._transport else None
        if pipe is not None and not pipe.is_closing():
            cast("asyncio.WriteTransport", pipe).write(data)
            self._written += len(data)

    async def ended(self) -> None:
        """Return once the child is gone or has closed its stdout, and all it said is heard."""
        await self._drained.wait()

    async def exited(self, seconds: float) -> bool:
        """Whether the child is gone, or goes within that time."""
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return self._exited.is_set()
        return True

    async def silent(self) -> None:
        """Return once all that a child said which is gone is heard, its stderr included.

        What it has started may hold its pipes open, and is not waited for.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(LAST_ERRORS):
                await self._silent.wait()

    async def stop(self, grace: float) -> None:
        """End the child and its whole group.

        Its stdin is closed; after `grace` seconds the group gets SIGTERM, after as many again
        SIGKILL. What the child has left behind when it went by itself is ended as well.
        """
        if self._transport is None:
            return
        stdin = self._transport.get_pipe_transport(0)
        if stdin is not None:
            stdin.close()
        self._close_stdin()
        await self.exited(grace)
        if has_members(self._group):
            send(self._group, signal.SIGTERM)
            if not await self._group_is_gone(grace):
                send(self._group, signal.SIGKILL)
                await self._group_is_gone(KILLED)
        await self.exited(LAST_WORDS)
        if not has_members(self._group):
            self._watchdog.remove(self._group)
        self._transport.close()

    def _close_stdin(self) -> None:
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1

    async def _group_is_gone(self, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        while has_members(self._group):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL)
        return True

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take output."""
        if not self._lines[fd].feed(data):
            send(self._group, signal.SIGKILL)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        """Note that the child has closed a pipe."""
        if fd in self._lines:
            self._lines[fd].end()
            self._open_pipes.discard(fd)
            if not self._open_pipes:
                self._silent.set()
            if fd == 1 or not self._open_pipes:
                self._drained.set()

    def process_exited(self) -> None:
        """Note the child's end; what it has started may hold its pipes open."""
        if self._stdin >= 0:
            self._unread = self._left_in_pipe()
            self._close_stdin()
        self._exited.set()
        asyncio.get_running_loop().call_later(LAST_WORDS, self._drained.set)

    def _left_in_pipe(self) -> int:
        """Bytes that the child has not read yet."""
        count = fcntl.ioctl(self._stdin, termios.FIONREAD, bytes(4))
        return int.from_bytes(count, sys.byteorder)


class _Lines:
    """Cuts a stream of bytes into lines."""

    def __init__(self, take: OnLine) -> None:
        self._take = take
        self._rest: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> bool:
        """Take some bytes; False when a line is too long."""
        head, *others = data.split(b"\n")
        self._rest.append(head)
        self._size += len(head)
        for each in others:
            self.end()
            self._rest = [each]
            self._size = len(each)
        return self._size <= MAX_LINE

    def end(self) -> None:
        """The line is complete."""
        line = b"".join(self._rest).rstrip(b"\r")
        self._rest = []
        self._size = 0
        if line:
            self._take(line)


def environment(own: Mapping[str, str], *, inherit: bool) -> dict[str, str]:
    """The environment of a child: ours, or what every program needs, and its own on top.

    The protocol is UTF-8, whatever the locale: Python programs are told so. The folder of the
    running interpreter ends the PATH, for machines that have no other `python`.
    """
    needed = ("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
    found = {name: v for name, v in os.environ.items() if inherit or name in needed}
    made = {"PYTHONIOENCODING": "utf-8", **found, **own}
    folders = [made.get("PATH", os.defpath), str(Path(sys.executable).parent)]
    return {**made, "PATH": os.pathsep.join(filter(None, folders))}
