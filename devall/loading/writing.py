"""Texts that take the place of files: whole or not at all."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def replace_text(path: Path, text: str) -> None:
    """Write a file, new or in place of one, whose permissions stay; nobody reads half of it.

    Raises:
        OSError: it cannot be written.
    """
    place = path.resolve()  # what a link points to, and not the link, is replaced
    unfinished = place.with_name(f".{place.name}.{os.getpid()}.part")
    try:
        unfinished.write_bytes(text.encode("utf-8"))
        if place.exists():
            shutil.copymode(place, unfinished)
        unfinished.replace(place)
    finally:
        unfinished.unlink(missing_ok=True)
