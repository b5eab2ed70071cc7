"""A journal that lives as long as the process."""

from __future__ import annotations

from devall.journal.base import StepRecord


class MemoryJournal:
    """Steps of one run in a dictionary."""

    def __init__(self) -> None:
        self._records: dict[str, StepRecord] = {}

    async def find(self, key: str) -> StepRecord | None:
        """What was done under that key, if anything."""
        return self._records.get(key)

    async def append(self, record: StepRecord) -> None:
        """Keep a step."""
        self._records[record.key] = record

    async def aclose(self) -> None:
        """Nothing to let go of."""

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """All steps, in the order in which they ended."""
        return tuple(self._records.values())
