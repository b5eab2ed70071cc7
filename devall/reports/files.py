"""Files that reports are written to: whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path


def write_report(path: Path, text: str, mode: int | None = None) -> None:
    """Write a report; missing folders are made, and nobody ever reads half of one.

    Args:
        path: The file.
        text: What it is to hold.
        mode: Who may read it; None: as the process makes files.

    Raises:
        OSError: it cannot be written.
    """
    data = text.encode("utf-8", "backslashreplace")
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists() and not path.is_file():  # a pipe or a device; a folder is refused here
        path.write_bytes(data)
        return
    place = path.resolve()  # what a link points to, and not the link, is replaced
    unfinished = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        unfinished.touch(0o666 if mode is None else mode)
        unfinished.write_bytes(data)
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)


def append(path: Path, text: str) -> None:
    """Add text to the end of a file.

    Raises:
        OSError: it cannot be written.
    """
    with path.open("ab") as file:
        file.write(text.encode("utf-8", "backslashreplace"))
