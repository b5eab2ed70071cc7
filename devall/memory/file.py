"""Files found again by likeness, a passage at a time; read only."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from devall.config.memory import FileSource
from devall.core.errors import SetupError
from devall.memory.base import Memory
from devall.memory.embedding import EmbeddingModel
from devall.memory.vectors import Vector, decoded, encoded, likeness
from devall.workspace import private_folder, write_private

PASSAGE = 1000
"""Characters of a passage at most."""
OVERLAP = 100
"""Characters that a passage shares with the one before it, where a paragraph is cut."""
_INDEX_FORMAT = 1


@dataclass(frozen=True, slots=True)
class _File:
    """A file as it was indexed."""

    stamp: str
    """Size and time of change; another one means that it must be read again."""
    passages: tuple[tuple[str, Vector], ...]


@dataclass(slots=True)
class FileMemory:
    """Looks for passages in files; files that have changed are read again."""

    name: str
    sources: Sequence[FileSource]
    folder: Path
    """Where relative paths begin."""
    embedding: EmbeddingModel
    index: Path | None = None
    """Where the vectors are kept from run to run."""
    _files: dict[str, _File] = field(default_factory=dict[str, _File], init=False)
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def open(self) -> None:
        """Read the index and what has changed since it was written.

        Raises:
            SetupError: a source does not exist, or a file of it cannot be read.
        """
        if self.index is not None and not self._files:
            self._files = await asyncio.to_thread(_read_index, self.index, self.embedding.name)
        await self._refresh()

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:
        """The passages most like the query; `source` is their file."""
        await self._refresh()
        sought = await self.embedding.embed_query(query)
        scored = [
            (likeness(sought, vector), path, text)
            for path, file in self._files.items()
            for text, vector in file.passages
        ]
        best = sorted((s for s in scored if s[0] >= threshold), key=lambda s: -s[0])
        return [Memory(text, path) for _, path, text in best[:top_k]]

    async def write(self, memory: Memory) -> None:
        """Nothing: the files belong to the user."""

    async def restore(self, memory: Memory) -> None:
        """Nothing: the files belong to the user."""

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _refresh(self) -> None:
        async with self._lock:
            wanted = await asyncio.to_thread(lambda: dict(self._found()))
            known = self._files
            files: dict[str, _File] = {}
            for path, (place, stamp, encoding) in wanted.items():
                if path in known and known[path].stamp == stamp:
                    files[path] = known[path]
                    continue
                texts = await asyncio.to_thread(_read_passages, place, encoding)
                vectors = await self.embedding.embed_texts(texts)
                files[path] = _File(stamp, tuple(zip(texts, vectors, strict=True)))
            is_changed = files != known
            self._files = files
            if is_changed and self.index is not None:
                await asyncio.to_thread(_write_index, self.index, self.embedding.name, files)

    def _found(self) -> Iterator[tuple[str, tuple[Path, str, str]]]:
        """The files that are wanted now: shown path, place, stamp, encoding."""
        for source in self.sources:
            root = self.folder / source.path
            if not root.exists():
                raise SetupError(
                    f"memory {self.name}: {root} does not exist",
                    hint="correct `file_sources.path`; relative paths begin at the working folder",
                )
            pattern = "**/*" if source.recursive else "*"
            places = [root] if root.is_file() else sorted(root.glob(pattern))
            suffixes = tuple(source.file_types)
            for place in places:
                if place == root or (place.is_file() and _is_wanted(place, root, suffixes)):
                    status = place.stat()
                    stamp = f"{status.st_size}:{status.st_mtime_ns}"
                    shown = place.relative_to(self.folder) if _is_in(place, self.folder) else place
                    yield str(shown), (place, stamp, source.encoding)


def passages(text: str) -> list[str]:
    """The text in pieces of at most `PASSAGE` characters: whole paragraphs where they fit."""
    found: list[str] = []
    current = ""
    for paragraph in filter(None, (p.strip() for p in text.split("\n\n"))):
        if current and len(current) + len(paragraph) + 2 <= PASSAGE:
            current += f"\n\n{paragraph}"
            continue
        if current:
            found.append(current)
        while len(paragraph) > PASSAGE:
            found.append(paragraph[:PASSAGE])
            paragraph = paragraph[PASSAGE - OVERLAP :]  # noqa: PLW2901 - what is left of it
        current = paragraph
    return [*found, current] if current else found


def _is_in(place: Path, folder: Path) -> bool:
    return place.is_relative_to(folder)


def _is_wanted(place: Path, root: Path, suffixes: tuple[str, ...]) -> bool:
    if any(part.startswith(".") for part in place.relative_to(root).parts):
        return False
    return not suffixes or place.name.endswith(suffixes)


def _read_passages(place: Path, encoding: str) -> list[str]:
    """The passages of a file; none where it holds binary data."""
    try:
        data = place.read_bytes()
        return [] if b"\0" in data[:4096] else passages(data.decode(encoding, "replace"))
    except (OSError, LookupError) as error:
        raise SetupError(f"{place} cannot be read as {encoding}: {error}") from error


def _read_index(index: Path, model: str) -> dict[str, _File]:
    """What the index holds for this embedding model; nothing where it is none of ours."""
    try:
        data: Any = json.loads(index.read_bytes())
        if (data["version"], data["model"]) != (_INDEX_FORMAT, model):
            return {}
        files = cast(Mapping[str, Any], data["files"])
        return {
            path: _File(
                f["stamp"], tuple((text, decoded(v) or Vector("f")) for text, v in f["passages"])
            )
            for path, f in files.items()
        }
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def _write_index(index: Path, model: str, files: Mapping[str, _File]) -> None:
    data = {
        "version": _INDEX_FORMAT,
        "model": model,
        "files": {
            path: {"stamp": f.stamp, "passages": [(text, encoded(v)) for text, v in f.passages]}
            for path, f in files.items()
        },
    }
    try:
        private_folder(index.parent)
        write_private(index, json.dumps(data, ensure_ascii=False).encode("utf-8", "replace"))
    except OSError as error:
        raise SetupError(f"the index {index} cannot be written: {error}") from error
