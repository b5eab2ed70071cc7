"""Who writes a run, and whether that process is still there."""

from __future__ import annotations

import json
import os
import socket
from dataclasses import asdict, dataclass
from pathlib import Path

LEASE = 15.0
"""Seconds for which a run is its owner's without being heard of."""
RENEWAL = 3.0
"""Seconds after which an owner is heard of again."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process."""

    host: str
    pid: int
    born: str
    """Tells the process from a later one with the same number; empty where the system does not
    say."""

    def to_text(self) -> str:
        """What `owner_of` reads."""
        return json.dumps(asdict(self))

    def is_gone(self) -> bool:
        """Whether the process is certainly at work no more: ended, or stopped by a signal.

        One of another machine never is: only its lease tells.
        """
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        state, born = _of_process(self.pid)
        is_another = bool(self.born and born) and born != self.born
        return is_another or state in {"T", "t", "Z", "X"}


def this_process() -> Owner:
    """The process that asks."""
    return Owner(socket.gethostname(), os.getpid(), _of_process(os.getpid())[1])


def owner_of(text: str) -> Owner:
    """The owner that a journal names."""
    return Owner(**json.loads(text))


def _of_process(pid: int) -> tuple[str, str]:
    """The state and the time of birth of a process of this machine, as Linux tells them."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return "", ""
    fields = text.rpartition(")")[2].split()
    return fields[0], fields[19]
