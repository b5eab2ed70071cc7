"""A journal that lives as long as the process."""

from __future__ import annotations

from devall.core.messages import JsonValue
from devall.journal.base import Step, StepRecord


class MemoryJournal:
    """Steps of one run in a dictionary."""

    def __init__(self) -> None:
        self._records: dict[str, StepRecord] = {}

    async def find(self, step: Step, /) -> StepRecord | None:
        """What was done under that key for the same request, if anything."""
        known = self._records.get(step.key)
        if known is None or known.fingerprint != step.fingerprint or known.state != "done":
            return None
        return known

    async def begin(self, step: Step, /) -> None:
        """Nothing outlives the process: there is nobody who would have to know."""

    async def append(self, record: StepRecord, /) -> None:
        """Keep a step."""
        self._records[record.key] = record

    async def finish(self, status: str, result: JsonValue, /) -> None:
        """There is nobody who would have to know."""

    async def aclose(self) -> None:
        """Nothing to let go of."""

    @property
    def records(self) -> tuple[StepRecord, ...]:
        """All steps, in the order in which they ended."""
        return tuple(self._records.values())
