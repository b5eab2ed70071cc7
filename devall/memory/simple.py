"""Items found again by likeness, each with its vector."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from devall.memory.base import Memory
from devall.memory.embedding import EmbeddingModel
from devall.memory.media import KeptMedia, RunFiles, media_folder
from devall.memory.storage import Record, Records, as_memory, as_record, merged
from devall.memory.vectors import Vector, VectorTable, decoded, encoded


class SimpleMemory:
    """Keeps what was asked and answered; gives what is most like a query.

    Each item has its vector with the model's name and the number of dimensions. Vectors of
    another model, or of another size, are never compared: they are made anew for this run.
    """

    def __init__(
        self,
        name: str,
        path: Path | None,
        embedding: EmbeddingModel,
        *,
        files: RunFiles | None = None,
    ) -> None:
        """Take the place; nothing is opened yet.

        Args:
            name: The store's name in the workflow.
            path: The file; None = kept as long as this object lives.
            embedding: Makes the vectors.
            files: The attachments of the run.
        """
        self.name = name
        self._records = Records(path)
        self._embedding = embedding
        self._media = KeptMedia(media_folder(path), files)
        self._made: dict[str, Vector] = {}
        """Vectors made here for texts that the file has none of this model for."""
        self._table: tuple[Sequence[Record], VectorTable] | None = None
        """The vectors of the records that were read last."""
        self._adopting = asyncio.Lock()

    async def open(self) -> None:
        """Look whether the file can be read.

        Raises:
            SetupError: it cannot.
        """
        await asyncio.to_thread(self._records.read)

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:
        """The items most like the query; of equals the newest first.

        Raises:
            ModelError: the embedding model cannot be reached, or refuses.
        """
        records = await asyncio.to_thread(self._records.read)
        if not records:
            return []
        sought = await self._embedding.embed_query(query)
        async with self._adopting:
            table = await self._vectors(records, len(sought))
        best = await asyncio.to_thread(table.nearest, sought, top_k, threshold)
        return await asyncio.to_thread(self._given, [records[row] for row in best])

    async def write(self, memory: Memory) -> None:
        """Add an item with its vector.

        Raises:
            SetupError: the file cannot be written.
            ModelError: the embedding model cannot be reached, or refuses.
        """
        [vector] = await self._embedding.embed_texts([_embedded(memory)])

        def write() -> None:
            record = as_record(memory, self._media.keep(memory.media)) | {
                "model": self._embedding.name,
                "dimensions": len(vector),
                "vector": encoded(vector),
            }
            self._records.change(lambda known: merged(known, record))

        await asyncio.to_thread(write)

    async def restore(self, memory: Memory) -> None:
        """Take the item in again where there is no file that holds it."""
        if self._records.path is None:
            await self.write(memory)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _vectors(self, records: Sequence[Record], dimensions: int) -> VectorTable:
        """The vectors of all records, in their order."""
        known = self._table
        if known is not None and known[0] is records and known[1].dimensions == dimensions:
            return known[1]
        own = await asyncio.to_thread(lambda: [self._own(record, dimensions) for record in records])
        missing = list(
            dict.fromkeys(
                text
                for record, vector in zip(records, own, strict=True)
                if vector is None
                and len(self._made.get(text := _text_of(record), ())) != dimensions
            )
        )
        if missing:
            vectors = await self._embedding.embed_texts(missing)
            self._made |= zip(missing, vectors, strict=True)
        rows = (
            (self._made[_text_of(record)] if vector is None else vector).tobytes()
            for record, vector in zip(records, own, strict=True)
        )
        table = VectorTable(rows, len(records), dimensions)
        self._table = records, table
        return table

    def _own(self, record: Record, dimensions: int) -> Vector | None:
        """The record's vector, if it can be compared with those of this model."""
        if record.get("model") != self._embedding.name:
            return None
        vector = decoded(record.get("vector"))
        return vector if vector is not None and len(vector) == dimensions else None

    def _given(self, records: Sequence[Record]) -> list[Memory]:
        return [
            replace(as_memory(record), media=self._media.give(record.get("media")))
            for record in records
        ]


def _text_of(record: Record) -> str:
    return _embedded(as_memory(record))


def _embedded(memory: Memory) -> str:
    """What an item is found by."""
    names = " ".join(part.name for part in memory.media if part.name)
    return "\n".join(filter(None, (memory.asked, memory.text, names)))
