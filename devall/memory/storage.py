"""Records that outlive a run, in a file that several runs read and write at once."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from devall.core.errors import SetupError
from devall.core.messages import JsonValue
from devall.memory.base import Memory
from devall.memory.media import media_from_json
from devall.workspace import private_folder, write_private

Record = dict[str, JsonValue]
FORMAT = 1
LOCK_WAIT = 10.0
"""Seconds until a file that another process holds locked is given up."""
_POLL = 0.01


class Records:
    """A list of records, oldest first: in a file, or for this run only.

    The file is replaced as a whole, so that a reader never sees half of it; whoever changes
    it holds a lock on `NAME.lock` beside it from reading to writing, so that no record of
    another run is lost. Its methods block: call them in a thread.
    """

    def __init__(self, path: Path | None, patience: float = LOCK_WAIT) -> None:
        """Take the file's place; nothing is opened yet.

        Args:
            path: The file; None = kept as long as this object lives.
            patience: Seconds until a file that is locked is given up.
        """
        self.path = path
        self._patience = patience
        self._known: tuple[tuple[int, ...], Sequence[Record]] = ((), ())
        self._lock = threading.Lock()

    def read(self) -> Sequence[Record]:
        """All records; the file is read again only where it has changed.

        Raises:
            SetupError: the file cannot be read, or holds something else.
        """
        if self.path is None:
            return self._known[1]
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return ()
        seen = (found.st_mtime_ns, found.st_size, found.st_ino)
        known = self._known
        if known[0] != seen:
            known = self._known = (seen, _parsed(self.path))
        return known[1]

    def change(self, change: Callable[[Sequence[Record]], Sequence[Record]]) -> None:
        """Put in place what the function makes of the records.

        Raises:
            SetupError: the file cannot be read or written, or stays locked.
        """
        if self.path is None:
            with self._lock:
                self._known = ((), change(self._known[1]))
            return
        place = self.path.resolve()
        try:
            private_folder(place.parent)
            with _locked(place.with_name(f"{place.name}.lock"), self._patience):
                known = _parsed(place) if place.exists() else ()
                records = list(change(known))
                text = json.dumps({"version": FORMAT, "records": records}, ensure_ascii=False)
                write_private(place, text.encode("utf-8", "backslashreplace"))
        except OSError as error:
            raise SetupError(f"the memory file {self.path} cannot be written: {error}") from error


def _parsed(path: Path) -> Sequence[Record]:
    problem = "it is no memory file"
    try:
        value: JsonValue = json.loads(path.read_bytes())
    except OSError as error:
        raise SetupError(f"the memory file {path} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        value, problem = None, f"it is no JSON ({error})"
    if isinstance(value, dict):
        found = cast(Record, value)
        records = found.get("records")
        if found.get("version") == FORMAT and isinstance(records, list):
            listed = cast(list[JsonValue], records)
            if all(isinstance(record, dict) and "text" in record for record in listed):
                return cast(list[Record], listed)
    raise SetupError(
        f"the memory file {path} cannot be used: {problem}",
        hint="move it away, or name another file as `memory_path`",
    )


def as_memory(record: Record) -> Memory:
    """The memory that a record holds; its files are those of the store."""
    return Memory(
        record["text"],
        record.get("source", ""),
        record.get("asked", ""),
        record.get("at", 0),
        record.get("id", ""),
        media_from_json(record.get("media")),
    )


def as_record(memory: Memory, media: JsonValue) -> Record:
    """The record of a memory, whose files were kept as `media`; without what is empty."""
    record: Record = {
        "id": memory.id,
        "source": memory.source,
        "asked": memory.asked,
        "text": memory.text,
        "at": memory.at,
        "media": media,
    }
    return {key: value for key, value in record.items() if key == "text" or value}


def merged(known: Sequence[Record], record: Record) -> list[Record]:
    """The records with one more, which stands in the place of one with the same id."""
    same = record.get("id")
    if same:
        for place, other in enumerate(known):
            if other.get("id") == same:
                return [*known[:place], record, *known[place + 1 :]]
    return [*known, record]


@contextmanager
def _locked(path: Path, patience: float) -> Generator[None]:
    """A block that no other run, of this process or another, is in at the same time."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        end = time.monotonic() + patience
        while not _is_taken(handle):
            if time.monotonic() > end:
                raise SetupError(
                    f"{path} has been locked by another process for {patience:g} s",
                    hint="end that process, or name another file as `memory_path`",
                )
            time.sleep(_POLL)
        yield
    finally:
        os.close(handle)  # and with it the lock


if sys.platform == "win32":
    import msvcrt

    def _is_taken(handle: int) -> bool:
        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _is_taken(handle: int) -> bool:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
