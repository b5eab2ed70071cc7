"""Items found again by likeness, each with its vector."""

from __future__ import annotations

import asyncio
import base64
import sys
from array import array
from collections.abc import Sequence
from pathlib import Path

from devall.memory.base import Memory
from devall.memory.embedding import EmbeddingModel, Vector, likeness
from devall.memory.storage import Record, Records, as_memory


class SimpleMemory:
    """Keeps what was asked and answered; gives what is most like a query."""

    def __init__(self, name: str, path: Path | None, embedding: EmbeddingModel) -> None:
        """Take the place; nothing is opened yet.

        Args:
            name: The store's name in the workflow.
            path: The file; None = kept as long as this object lives.
            embedding: Makes the vectors.
        """
        self.name = name
        self._records = Records(path)
        self._embedding = embedding
        self._made: dict[str, Vector] = {}
        """Vectors made here for items that another model had written, by the item's id."""

    async def open(self) -> None:
        """Look whether the file can be read.

        Raises:
            SetupError: it cannot.
        """
        await asyncio.to_thread(self._records.read)

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:
        """The items most like the query; of equals the newest first."""
        records = await asyncio.to_thread(self._records.read)
        if not records:
            return []
        await self._adopt(records)
        sought = await self._embedding.embed_query(query)
        best = await asyncio.to_thread(self._ranked, records, sought, threshold)
        return [as_memory(record) for record in best[:top_k]]

    async def write(self, memory: Memory) -> None:
        """Add an item with its vector."""
        [vector] = await self._embedding.embed_texts([_embedded(memory)])
        record: Record = {
            "id": memory.id,
            "source": memory.source,
            "asked": memory.asked,
            "text": memory.text,
            "at": memory.at,
            "model": self._embedding.name,
            "vector": encoded(vector),
        }
        await asyncio.to_thread(self._records.change, lambda known: [*known, record])

    async def restore(self, memory: Memory) -> None:
        """Take the item in again where there is no file that holds it."""
        if self._records.path is None:
            await self.write(memory)

    async def aclose(self) -> None:
        """Nothing is open."""

    async def _adopt(self, records: Sequence[Record]) -> None:
        """Make vectors for items that another embedding model has written."""
        foreign = [r for r in records if not self._is_own(r) and r.get("id") not in self._made]
        if foreign:
            texts = [_embedded(as_memory(record)) for record in foreign]
            for record, vector in zip(
                foreign, await self._embedding.embed_texts(texts), strict=True
            ):
                self._made[record.get("id", "")] = vector

    def _ranked(self, records: Sequence[Record], sought: Vector, threshold: float) -> list[Record]:
        found: list[tuple[float, int]] = []
        for place, record in enumerate(records):
            vector = (
                decoded(record["vector"])
                if self._is_own(record)
                else self._made.get(record.get("id", ""), array("f"))
            )
            score = likeness(sought, vector)
            if score >= threshold:
                found.append((score, place))
        return [records[place] for _, place in sorted(found, reverse=True)]

    def _is_own(self, record: Record) -> bool:
        return record.get("model") == self._embedding.name and "vector" in record


def encoded(vector: Vector) -> str:
    """The vector as text: 32-bit little-endian numbers in base64."""
    if sys.byteorder == "big":
        vector = array("f", vector)
        vector.byteswap()
    return base64.b64encode(vector.tobytes()).decode()


def decoded(text: str) -> Vector:
    """The vector that `encoded` wrote."""
    vector = array("f", base64.b64decode(text))
    if sys.byteorder == "big":
        vector.byteswap()
    return vector


def _embedded(memory: Memory) -> str:
    """What an item is found by."""
    return f"{memory.asked}\n{memory.text}" if memory.asked else memory.text
