"""Files found again by likeness, a passage at a time; read only."""

from __future__ import annotations

import asyncio
import hashlib
import os
import stat
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from devall.config.memory import FileSource
from devall.core.errors import SetupError
from devall.memory.base import Memory
from devall.memory.embedding import EmbeddingModel
from devall.memory.file_index import Entry, FileIndex, Known
from devall.memory.passages import Passage, passages
from devall.memory.vectors import Vector, VectorTable

_AT_ONCE = 64
"""Passages that are held in memory, embedded and written at once."""


Tell = Callable[[int, int, int], None]
"""Takes how far the reading of changed files is: files that are done, files that there are to
read, passages that were found so far. It must return at once."""


Seen = tuple[str, int, int, str]
"""A file as a folder shows it: path, size, time of change in nanoseconds, encoding."""


@dataclass(frozen=True, slots=True)
class _Found:
    """A file that is wanted."""

    place: Path
    stamp: str
    encoding: str


@dataclass(slots=True)
class FileMemory:
    """Looks for passages in files; files that have changed are read again, before each look."""

    name: str
    sources: Sequence[FileSource]
    folder: Path
    """Where relative paths begin."""
    embedding: EmbeddingModel
    index: Path | None = None
    """Where passages and vectors are kept from run to run; None = they are not."""
    tell: Tell = lambda _done, _files, _passages: None
    _index: FileIndex | None = field(default=None, init=False)
    _fresh: tuple[Sequence[Seen], tuple[int, int]] | None = field(default=None, init=False)
    """The files and the index's version when it was found to be up to date."""
    _looked: float = field(default=0, init=False)
    """When the newest look at the files began."""
    _table: tuple[tuple[int, int], VectorTable, Sequence[int]] | None = field(
        default=None, init=False
    )
    """All vectors, the numbers of their passages, and the index's version when they were read."""
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def open(self) -> None:
        """Open the index, and read what has changed since it was written.

        Raises:
            SetupError: a source does not exist, a file of it cannot be read, or the index
                cannot be used.
            ModelError: the embedding model cannot be reached, or refuses.
        """
        async with self._lock:
            await self._refresh(await self._opened())

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:
        """The passages most like the query; `source` is their file.

        Nothing for a query without words.

        Raises:
            SetupError, ModelError: as for `open`.
        """
        if not query.strip():
            return ()
        asked = time.monotonic()
        # Those who ask at the same time wait for the endpoint together, not one after another.
        sought = await self.embedding.embed_query(query)
        async with self._lock:
            index = await self._opened()
            find = partial(self._looked_up, index, sought, top_k, threshold, asked)
            found = await asyncio.to_thread(find)
            if found is None:
                await self._refresh(index)
                if index.dimensions not in {0, len(sought)}:
                    # The model has another size under the same name.
                    await asyncio.to_thread(index.clear)
                    await self._refresh(index)
                found = await asyncio.to_thread(self._nearest, index, sought, top_k, threshold)
            return found

    async def write(self, memory: Memory) -> None:
        """Nothing: the files belong to the user."""

    async def restore(self, memory: Memory) -> None:
        """Nothing: the files belong to the user."""

    async def aclose(self) -> None:
        """Close the index."""
        if self._index is not None:
            index, self._index, self._fresh, self._table = self._index, None, None, None
            await asyncio.to_thread(index.close)

    async def _opened(self) -> FileIndex:
        if self._index is None:
            index = FileIndex(self.index, self.embedding.name)
            await asyncio.to_thread(index.open)
            self._index = index
        return self._index

    def _looked_up(
        self, index: FileIndex, sought: Vector, top_k: int, threshold: float, asked: float
    ) -> Sequence[Memory] | None:
        """What is nearest; None where something has changed that must be looked at first.

        A look at the files counts for all who asked before it began: the hundred units of a map
        that ask at once cost one look and not a hundred.
        """
        with index.unchanging():
            if self._fresh is None or self._fresh[1] != index.version:
                return None
            if self._looked < asked:
                began = time.monotonic()
                if self._fresh[0] != self._seen():
                    return None
                self._looked = began
            if index.dimensions not in {0, len(sought)}:
                return None
            return self._best(index, sought, top_k, threshold)

    def _nearest(
        self, index: FileIndex, sought: Vector, top_k: int, threshold: float
    ) -> Sequence[Memory]:
        with index.unchanging():
            return self._best(index, sought, top_k, threshold)

    def _best(
        self, index: FileIndex, sought: Vector, top_k: int, threshold: float
    ) -> Sequence[Memory]:
        table, numbers = self._vectors(index, len(sought))
        rows = table.nearest(sought, top_k, threshold)
        found = [index.passage(numbers[row]) for row in rows]
        return [Memory(passage.whole, path) for path, passage in found]

    def _vectors(self, index: FileIndex, dimensions: int) -> tuple[VectorTable, Sequence[int]]:
        version = index.version
        known = self._table
        if known is None or known[0] != version or known[1].dimensions != dimensions:
            self._table = None  # there is no room for both
            known = self._table = version, *index.rows(dimensions)
        return known[1], known[2]

    async def _refresh(self, index: FileIndex) -> None:
        """Bring the index up to date."""
        began = time.monotonic()
        seen = await asyncio.to_thread(self._seen)
        version, known = await asyncio.to_thread(lambda: (index.version, index.files()))
        wanted = {self._shown(each[0]): _found(each) for each in sorted(seen)}
        stale = {path: f for path, f in wanted.items() if _stamp(known, path) != f.stamp}
        gone = known.keys() - wanted.keys()
        if gone:
            await asyncio.to_thread(index.drop, gone)
        if stale:
            await _Reading(index, self.embedding, self.tell, known, stale).finish()
        if stale or gone:
            version = await asyncio.to_thread(lambda: index.version)
        self._fresh, self._looked = (seen, version), began

    def _seen(self) -> Sequence[Seen]:
        """The files of all sources as they are now.

        Of 200 files it takes as long as comparing 10,000 vectors of 384 numbers.

        Raises:
            SetupError: a source does not exist, or cannot be read.
        """
        found: list[Seen] = []
        for source in self.sources:
            root = self.folder / source.path
            try:
                status = root.stat()
                if stat.S_ISDIR(status.st_mode):
                    suffixes = tuple(source.file_types)
                    _walk(str(root), suffixes, source.recursive, source.encoding, found)
                else:
                    entry = str(root), status.st_size, status.st_mtime_ns, source.encoding
                    found.append(entry)
            except FileNotFoundError as error:
                raise SetupError(
                    f"memory {self.name}: {root} does not exist",
                    hint="correct `file_sources.path`; relative paths begin at the working folder",
                ) from error
            except OSError as error:
                raise SetupError(f"memory {self.name}: {root} cannot be read: {error}") from error
        return found

    def _shown(self, path: str) -> str:
        """The path as memories name it: from the folder on, where it is in there."""
        base = f"{self.folder}{os.sep}"
        short = path.removeprefix(base)
        return os.fsencode(short).decode("utf-8", "backslashreplace")


class _Reading:
    """Reads files into an index, some passages at a time."""

    def __init__(
        self,
        index: FileIndex,
        embedding: EmbeddingModel,
        tell: Tell,
        known: Mapping[str, Known],
        files: Mapping[str, _Found],
    ) -> None:
        self._index = index
        self._embedding = embedding
        self._tell = tell
        self._known = known
        self._files = files
        self._held: list[tuple[int, Passage, bytes | None]] = []
        """File, passage, and its vector where it is known from before."""
        self._whole: list[int] = []
        """Files that are whole once what is held is written."""
        self._done = 0
        self._passages = 0

    async def finish(self) -> None:
        """Read them all."""
        restamped: dict[str, str] = {}
        for path, found in self._files.items():
            data = await asyncio.to_thread(_read, found.place)
            digest = hashlib.sha256(f"{found.encoding}\0".encode() + data).hexdigest()
            if path in self._known and self._known[path].digest == digest:
                restamped[path] = found.stamp
            else:
                await self._take(path, found, digest, data)
            self._done += 1
        await self._write()
        if restamped:
            await asyncio.to_thread(self._index.restamp, restamped)

    async def _take(self, path: str, found: _Found, digest: str, data: bytes) -> None:
        """Cut a file; what is too much to hold is written."""
        index = self._index
        before = await asyncio.to_thread(index.vectors, path) if path in self._known else {}
        number = await asyncio.to_thread(index.begin, path, found.stamp, digest)
        text = _text(found, data)
        del data
        for passage in passages(text, path):
            if len(self._held) >= _AT_ONCE:
                await self._write()
            self._held.append((number, passage, before.get(passage.whole)))
            self._passages += 1
        self._whole.append(number)

    async def _write(self) -> None:
        new = [passage.whole for _, passage, vector in self._held if vector is None]
        made = iter(await self._embedding.embed_texts(new) if new else ())
        entries = [
            Entry(number, passage, vector if vector is not None else next(made).tobytes())
            for number, passage, vector in self._held
        ]
        await asyncio.to_thread(self._index.add, entries, self._whole)
        self._held, self._whole = [], []
        self._tell(self._done, len(self._files), self._passages)


def _stamp(known: Mapping[str, Known], path: str) -> str:
    return known[path].stamp if path in known else ""


def _found(seen: Seen) -> _Found:
    path, size, changed, encoding = seen
    return _Found(Path(path), f"{size}:{changed}:{encoding}", encoding)


def _walk(
    folder: str, suffixes: tuple[str, ...], is_deep: bool, encoding: str, found: list[Seen]
) -> None:
    """Add the regular files of a folder that are not hidden; links to folders are not followed."""
    with os.scandir(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            if entry.is_dir(follow_symlinks=False):
                if is_deep:
                    _walk(entry.path, suffixes, is_deep, encoding, found)
            elif not suffixes or name.endswith(suffixes):
                try:
                    status = entry.stat()
                except FileNotFoundError:  # gone just now, or a link that leads nowhere
                    continue
                if stat.S_ISREG(status.st_mode):
                    found.append((entry.path, status.st_size, status.st_mtime_ns, encoding))


def _read(place: Path) -> bytes:
    """The content of a file; nothing where it has gone just now."""
    try:
        return place.read_bytes()
    except FileNotFoundError:
        return b""
    except OSError as error:
        raise SetupError(f"{place} cannot be read: {error}") from error


def _text(found: _Found, data: bytes) -> str:
    """What a file says; nothing where it holds binary data."""
    try:
        is_binary = b"\0" in data[:4096] and "16" not in found.encoding
        return "" if is_binary else data.decode(found.encoding, "replace")
    except LookupError as error:
        raise SetupError(f"{found.place} cannot be read as {found.encoding}: {error}") from error
