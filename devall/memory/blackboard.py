"""A list that agents share, the newest item first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from devall.memory.base import Memory
from devall.memory.media import KeptMedia, RunFiles, media_folder
from devall.memory.storage import Record, Records, as_memory, as_record, merged


class Blackboard:
    """Keeps the newest items; whatever is asked, gives the newest of them."""

    def __init__(
        self,
        name: str,
        path: Path | None,
        max_items: int = 1000,
        *,
        files: RunFiles | None = None,
    ) -> None:
        """Take the place; nothing is opened yet.

        Args:
            name: The store's name in the workflow.
            path: The file; None = kept as long as this object lives.
            max_items: The newest so many are kept.
            files: The attachments of the run.
        """
        self.name = name
        self._records = Records(path)
        self._media = KeptMedia(media_folder(path), files)
        self._max_items = max_items

    async def open(self) -> None:
        """Look whether the file can be read.

        Raises:
            SetupError: it cannot.
        """
        await asyncio.to_thread(self._records.read)

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:  # noqa: ARG002
        """The newest items, whatever the query."""
        return await asyncio.to_thread(self._newest, top_k)

    async def write(self, memory: Memory) -> None:
        """Add an item; the oldest goes where there are too many."""
        keep = self._max_items

        def write() -> None:
            record = as_record(memory, self._media.keep(memory.media))
            self._records.change(lambda known: merged(known, record)[-keep:])

        await asyncio.to_thread(write)

    async def restore(self, memory: Memory) -> None:
        """Take the item in again where there is no file that holds it."""
        if self._records.path is None:
            await self.write(memory)

    async def aclose(self) -> None:
        """Nothing is open."""

    def _newest(self, top_k: int) -> list[Memory]:
        records: Sequence[Record] = self._records.read()[-top_k:]
        return [
            replace(as_memory(record), media=self._media.give(record.get("media")))
            for record in reversed(records)
        ]
