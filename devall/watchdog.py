"""Ends the children of a process that is gone, however it went.

A process that is killed cannot end its children. So it starts this file as a program of its
own, in a session of its own, and tells it by a pipe which process groups there are. When the
pipe ends and groups are left, their owner is dead: they get SIGTERM, and SIGKILL after their
grace. (The kernel's parent-death signal reaches the direct child alone, and not what a wrapper
such as `npx` has started; and it takes code of ours between fork and exec, which threads
forbid.) The program uses the standard library only, and starts without `site`, so that it costs
some 10 ms.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

POLL = 0.02
"""Seconds between two looks at whether something is over."""


class Watchdog:
    """The watching program, started with the first group that is to be watched."""

    def __init__(self) -> None:
        self._program: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Have the program run; a group can be added from then on without delay."""
        if self._program is None:
            self._program = subprocess.Popen(  # noqa: S603 -- this very file
                [sys.executable, "-I", "-S", __file__],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
            )

    def add(self, group: int, grace: float) -> None:
        """Watch a process group; `grace` is the seconds between SIGTERM and SIGKILL."""
        self._tell(f"+ {group} {grace}\n")

    def remove(self, group: int) -> None:
        """Watch a group no longer: it is gone."""
        self._tell(f"- {group} 0\n")

    async def aclose(self) -> None:
        """End the program; groups that are still there are ended by it."""
        import asyncio

        program, self._program = self._program, None
        if program is None:
            return
        if program.stdin is not None:
            with contextlib.suppress(OSError):
                program.stdin.close()
        # Nobody tells when a program has ended that was not started by the event loop.
        while program.poll() is None:  # noqa: ASYNC110
            await asyncio.sleep(POLL / 4)

    def _tell(self, line: str) -> None:
        if self._program is not None and self._program.stdin is not None:
            # A watchdog that somebody killed must not keep the run from going on.
            with contextlib.suppress(OSError):
                self._program.stdin.write(line.encode())
                self._program.stdin.flush()


def has_members(group: int) -> bool:
    """Whether a process group has a member that is more than a zombie."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        processes = [each for each in Path("/proc").iterdir() if each.name.isdigit()]
    except OSError:  # no Linux: a zombie counts
        return True
    for process in processes:
        try:
            # pid (name) state parent group ...; the name may hold anything but its end.
            stat = (process / "stat").read_bytes()
            state, _, found = stat.rpartition(b")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if int(found) == group and state not in {b"Z", b"X"}:
            return True
    return False


def send(group: int, which: signal.Signals) -> None:
    """Signal a process group, if it is still there."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, which)


def _watch() -> None:
    """Read what is to be watched until the owner is gone, then end what is left."""
    for which in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(which, signal.SIG_IGN)
    groups: dict[int, float] = {}
    for line in sys.stdin.buffer:
        sign, group, grace = line.split()
        if sign == b"+":
            groups[int(group)] = float(grace)
        else:
            groups.pop(int(group), None)
    for group in groups:
        send(group, signal.SIGTERM)
    began = time.monotonic()
    while groups:
        for group, grace in list(groups.items()):
            if not has_members(group):
                del groups[group]
            elif time.monotonic() - began >= grace:
                send(group, signal.SIGKILL)
                del groups[group]
        time.sleep(POLL)


if __name__ == "__main__":
    _watch()
