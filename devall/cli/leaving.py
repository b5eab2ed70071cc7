"""The end of the process: nothing that it has started outlives it."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress

GRACE = 1.0
"""Seconds between TERM and KILL for what is left."""


def end_children() -> None:
    """End what this process has started and left running, such as by a function in a thread.

    Linux only; elsewhere nothing is known of children.
    """
    for number in (signal.SIGTERM, signal.SIGKILL):
        deadline = time.monotonic() + GRACE
        left = _children()
        for pid in left:
            _send(pid, number)
        while left and time.monotonic() < deadline:
            for pid in left:
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
            time.sleep(0.01)
            left = _children()
        if not left:
            return


def _send(pid: int, number: signal.Signals) -> None:
    """To the child, and to its group where it leads one."""
    with suppress(ProcessLookupError, PermissionError):
        if os.getpgid(pid) == pid:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def _children() -> list[int]:
    """The children of all threads of this process."""
    found: list[int] = []
    with suppress(OSError):
        for thread in os.scandir("/proc/self/task"):
            with open(f"{thread.path}/children", "rb") as file:  # noqa: PTH123 -- pathlib is slow
                found += map(int, file.read().split())
    return found
