"""Starts a program within limits and ends all that it has started; a program of its own.

A program that leaves its process group (a daemon does) would outlive whoever ends the group.
Here its descendants come back as children when their parents end, and are ended one and all.
It uses the standard library only, and starts without `site`, so that it costs some 10 ms.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path
from types import FrameType
from typing import NoReturn

_PR_SET_CHILD_SUBREAPER = 36
_PATIENCE = 0.5
"""Seconds that the program has for an end of its own after SIGTERM."""


class _Terminated(Exception):
    pass


def main(limits: dict[str, int], command: list[str]) -> NoReturn:
    """Run a command, and end as it has ended.

    Args:
        limits: Name of a resource (`RLIMIT_AS`) to its bound.
        command: Program and arguments.
    """
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, _terminated)
    child = os.fork()
    if child == 0:
        _become(limits, command)
    status = 0
    try:
        status = _wait(child)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
        status = _wait(child, _PATIENCE) or signal.SIGTERM
    _end_descendants()
    _end(status)


def _become(limits: dict[str, int], command: list[str]) -> NoReturn:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for name, bound in limits.items():
        which = getattr(resource, name)
        _, highest = resource.getrlimit(which)
        if highest != resource.RLIM_INFINITY:
            bound = min(bound, highest)  # noqa: PLW2901 -- an outer limit holds too
        resource.setrlimit(which, (bound, bound))
    try:
        os.execvp(command[0], command)  # noqa: S606 -- that is what this program is for
    except OSError as error:
        os.write(2, f"{command[0]} cannot be started: {error.strerror}\n".encode())
        os._exit(127)


def _wait(child: int, seconds: float | None = None) -> int:
    """The child's status, orphans reaped meanwhile; 0 if it goes on after so many seconds."""
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        try:
            pid, status = os.waitpid(-1, 0 if end is None else os.WNOHANG)
        except ChildProcessError:
            return 0
        if pid == child:
            return status
        if end is not None and pid == 0:
            if time.monotonic() > end:
                return 0
            time.sleep(0.01)


def _end_descendants() -> None:
    """Kill children until there are none: those of a killed one become children here."""
    while True:
        for pid in _children():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        try:
            pid, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if pid == 0:
            time.sleep(0.005)


def _children() -> list[int]:
    own = str(os.getpid()).encode()
    found: list[int] = []
    for each in Path("/proc").glob("[0-9]*/stat"):
        try:
            # pid (name) state parent ...; the name may hold anything but its end.
            parent = each.read_bytes().rpartition(b")")[2].split()[1]
        except (OSError, IndexError):
            continue
        if parent == own:
            found.append(int(each.parent.name))
    return found


def _end(status: int) -> NoReturn:
    if os.WIFSIGNALED(status):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        number = os.WTERMSIG(status)
        with contextlib.suppress(OSError):  # KILL has no other meaning than its own
            signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 1)


def _terminated(number: int, frame: FrameType | None) -> None:
    raise _Terminated


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), sys.argv[2:])
