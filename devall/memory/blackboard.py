"""A list that agents share, the newest item first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from devall.memory.base import Memory
from devall.memory.storage import Record, Records, as_memory


class Blackboard:
    """Keeps the newest items; whatever is asked, gives the newest of them."""

    def __init__(self, name: str, path: Path | None, max_items: int = 1000) -> None:
        """Take the place; nothing is opened yet.

        Args:
            name: The store's name in the workflow.
            path: The file; None = kept as long as this object lives.
            max_items: The newest so many are kept.
        """
        self.name = name
        self._records = Records(path)
        self._max_items = max_items

    async def open(self) -> None:
        """Look whether the file can be read.

        Raises:
            SetupError: it cannot.
        """
        await asyncio.to_thread(self._records.read)

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:  # noqa: ARG002
        """The newest items, whatever the query."""
        records = await asyncio.to_thread(self._records.read)
        return [as_memory(record) for record in reversed(records[-top_k:])]

    async def write(self, memory: Memory) -> None:
        """Add an item; the oldest goes where there are too many."""
        record: Record = {
            "id": memory.id,
            "source": memory.source,
            "text": memory.text,
            "at": memory.at,
        }
        keep = self._max_items
        await asyncio.to_thread(self._records.change, lambda known: [*known, record][-keep:])

    async def restore(self, memory: Memory) -> None:
        """Take the item in again where there is no file that holds it."""
        if self._records.path is None:
            await self.write(memory)

    async def aclose(self) -> None:
        """Nothing is open."""
