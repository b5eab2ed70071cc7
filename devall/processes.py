"""Child processes that do their work and end: in their own group, bounded, never left behind."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PR_SET_PDEATHSIG = 1
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
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=dict(env),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
        preexec_fn=die_with_parent(),
    )
    assert process.stdout is not None
    assert process.stderr is not None
    reading = asyncio.gather(
        _read(process.stdout, max_output), _read(process.stderr, max_output), process.wait()
    )
    exit_code: int | None = None
    try:
        async with asyncio.timeout(seconds):
            (out, cut_out), (err, cut_err), exit_code = await asyncio.shield(reading)
    except TimeoutError:
        await _end_group(process)
        (out, cut_out), (err, cut_err), _ = await reading
    except BaseException:
        await asyncio.shield(_end_group(process))
        reading.cancel()
        raise
    finally:
        _signal_group(process.pid, signal.SIGKILL)
    return ChildResult(exit_code, out, err, cut_out or cut_err)


async def _read(stream: asyncio.StreamReader, bound: int) -> tuple[bytes, bool]:
    kept = bytearray()
    cut = False
    while chunk := await stream.read(_CHUNK):
        room = bound - len(kept)
        kept += chunk[:room]
        cut = cut or len(chunk) > room
    return bytes(kept), cut


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


def die_with_parent() -> Callable[[], None] | None:
    """What a child must do before its program starts so that it never outlives this process.

    Linux only (`prctl(PR_SET_PDEATHSIG)`); elsewhere None.
    """
    if not sys.platform.startswith("linux"):
        return None
    # Looked up here: a child between fork and exec must not load libraries.
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    parent = os.getpid()

    def before_exec() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return before_exec
