"""What a server writes beside the protocol: the last lines of it, and a file."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from devall.workspace import private_folder

KEPT = 200
"""Lines that are kept."""
SHOWN = 20
"""Lines that an error shows at most."""
WIDTH = 2000
"""Characters of a line that are kept."""


class ServerLog:
    """The lines of one server; all its lives share a file."""

    def __init__(self, file: Path | None, redact: Callable[[str], str]) -> None:
        """Make an empty log.

        Args:
            file: Where the lines go as well; None = nowhere.
            redact: Applied to every line before it is kept.
        """
        self._path = file
        self._redact = redact
        self._file: BinaryIO | None = None
        self._lines: deque[str] = deque(maxlen=KEPT)
        self._waiting: list[tuple[re.Pattern[str], asyncio.Future[None]]] = []

    def add(self, line: str) -> None:
        """Keep a line, and wake who waits for it."""
        for pattern, future in self._waiting:
            if not future.done() and pattern.search(line):
                future.set_result(None)
        shown = self._redact(line)
        self._lines.append(shown[:WIDTH])
        if self._path is not None:
            # A full disk must not take the server away.
            with contextlib.suppress(OSError):
                if self._file is None:
                    private_folder(self._path.parent)
                    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
                    self._file = os.fdopen(os.open(self._path, flags, 0o600), "ab", buffering=0)
                self._file.write(shown.encode("utf-8", "replace") + b"\n")

    async def wait_for(self, pattern: str) -> None:
        """Return once a line is found that the pattern fits, one that is kept included."""
        compiled = re.compile(pattern)
        if any(compiled.search(line) for line in self._lines):
            return
        entry = (compiled, asyncio.get_running_loop().create_future())
        self._waiting.append(entry)
        try:
            await entry[1]
        finally:
            self._waiting.remove(entry)

    def tail(self) -> str:
        """The last lines, for an error; empty if there are none."""
        return "\n".join(list(self._lines)[-SHOWN:])

    def close(self) -> None:
        """Close the file; a line that comes later opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None
