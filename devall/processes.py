"""Child processes that do their work and end: in their own group, bounded, never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from devall.watchdog import Watchdog

_CHUNK = 1 << 16
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
) -> ChildResult:
    """Run a command to its end; its whole group is gone when this returns or is cancelled.

    It is gone as well where this process is killed meanwhile.

    Args:
        command: Program and arguments.
        cwd: Working directory.
        env: The whole environment.
        seconds: How long it may take.
        max_output: Bytes that are kept of each stream; the rest is read and dropped.

    Raises:
        FileNotFoundError: there is no such program, or no such folder.
        PermissionError: it must not be run.
    """
    async with _watched() as watchdog:
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        watchdog.add(process.pid, GRACE)
        return await _finished(process, seconds, max_output)


async def _finished(
    process: asyncio.subprocess.Process, seconds: float, max_output: int
) -> ChildResult:
    assert process.stdout is not None
    assert process.stderr is not None
    out, err = _Kept(max_output), _Kept(max_output)
    work = asyncio.gather(out.read(process.stdout), err.read(process.stderr), process.wait())
    exit_code: int | None = None
    try:
        async with asyncio.timeout(seconds):
            *_, exit_code = await asyncio.shield(work)
    except TimeoutError:
        await _end_group(process)
        # Whatever has left the group may hold the pipes open for ever.
        await asyncio.wait({work}, timeout=GRACE)
    except BaseException:
        await asyncio.shield(_end_group(process))
        raise
    finally:
        work.cancel()
        _signal_group(process.pid, signal.SIGKILL)
        # Its pipes may be held open by others; there is no public way to let go of our ends.
        cast("Any", process)._transport.close()  # noqa: SLF001
    return ChildResult(exit_code, bytes(out.data), bytes(err.data), out.was_cut or err.was_cut)


@asynccontextmanager
async def _watched() -> AsyncGenerator[Watchdog]:
    """A watchdog for the children of the block; what is left of them ends with it."""
    watchdog = Watchdog()
    watchdog.start()
    try:
        yield watchdog
    finally:
        await asyncio.shield(watchdog.aclose())


@dataclass(slots=True)
class _Kept:
    """What a stream has said so far, up to a bound."""

    bound: int
    data: bytearray = field(default_factory=bytearray)
    was_cut: bool = False

    async def read(self, stream: asyncio.StreamReader) -> None:
        while chunk := await stream.read(_CHUNK):
            room = self.bound - len(self.data)
            self.data += chunk[:room]
            self.was_cut = self.was_cut or len(chunk) > room


async def _end_group(process: asyncio.subprocess.Process) -> None:
    """TERM for the group, then KILL for what is left of it."""
    _signal_group(process.pid, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), GRACE)
    _signal_group(process.pid, signal.SIGKILL)
    await process.wait()


def _signal_group(pid: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)
