"""The list of a run's attachments: what each one is, and who made it."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

FILE_NAME = "manifest.json"
_END = b"\n]\n"


@dataclass(frozen=True, slots=True)
class Maker:
    """Who made an attachment."""

    kind: Literal["user", "node", "tool"] = "node"
    """`user`: it was given with the task; `node`: a node's own work; `tool`: a call of one."""
    node: str = ""
    tool: str = ""


_maker: ContextVar[Maker | None] = ContextVar("maker", default=None)


@contextmanager
def made_by(maker: Maker) -> Generator[None]:
    """A block whose attachments are of one maker."""
    token = _maker.set(maker)
    try:
        yield
    finally:
        _maker.reset(token)


def current_maker() -> Maker:
    """Who makes what is made now."""
    return _maker.get() or Maker()


class Manifest:
    """A JSON list with one attachment a line; valid after each addition, which costs the same.

    The same content by another maker or under another name is a line of its own.
    """

    def __init__(self, folder: Path, redact: Callable[[bytes], bytes] | None = None) -> None:
        """A manifest in a folder; nothing is read yet.

        Args:
            folder: That of the attachments; it is there when the first one is added.
            redact: Takes secrets out of a line before it is written.
        """
        self._place = folder / FILE_NAME
        self._redact = redact
        self._lines: dict[bytes, None] | None = None
        self._lock = threading.Lock()

    def add(
        self, attachment: str, *, name: str, mime_type: str, size: int, sha256: str, maker: Maker
    ) -> None:
        """Note an attachment; one that is noted already stays as it is.

        Args:
            attachment: The file's name in the folder.
            name: What it was called; may be empty.
            mime_type: What it holds.
            size: Bytes.
            sha256: Of its bytes, in hexadecimal.
            maker: Who made it.
        """
        entry = {
            "attachment": attachment,
            "name": name,
            "mime_type": mime_type,
            "size": size,
            "sha256": sha256,
            "made_by": maker.kind,
            "node": maker.node,
            "tool": maker.tool,
        }
        line = json.dumps(entry, ensure_ascii=False).encode("utf-8", "backslashreplace")
        if self._redact is not None:
            line = self._redact(line)
        with self._lock:
            if self._lines is None:
                self._lines = dict.fromkeys(_lines_of(self._place))
            if line not in self._lines:
                self._append(line)
                self._lines[line] = None

    def _append(self, line: bytes) -> None:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        handle = os.open(self._place, flags, 0o600)
        with os.fdopen(handle, "r+b") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - len(_END)))
            if size and file.read() == _END:
                file.seek(size - len(_END))
                file.write(b",\n" + line + _END)
                return
            # New, or a process was killed while it wrote the last line.
            file.seek(0)
            file.truncate()
            file.write(b"[\n" + b",\n".join([*(self._lines or ()), line]) + _END)


def read_manifest(folder: Path) -> list[dict[str, str | int]]:
    """What the manifest of a folder of attachments holds; a torn last line is left out."""
    return [json.loads(line) for line in _lines_of(folder / FILE_NAME)]


def _lines_of(place: Path) -> list[bytes]:
    try:
        data = place.read_bytes()
    except FileNotFoundError:
        return []
    found: list[bytes] = []
    for line in data.splitlines():
        text = line.rstrip(b",")
        try:
            is_entry = isinstance(json.loads(text), dict)
        except ValueError:
            continue
        if is_entry:
            found.append(text)
    return found
