"""A run that was kept, as the journal of its replay: everything is there, nothing is made."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import cast

from devall.core.errors import NotRecorded
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.journal.base import Journal, Step, StepRecord
from devall.journal.failures import failure_from_json

MOST_LINES = 60
"""Lines of a difference that are shown."""
MOST_COMPARED = 200
"""Recorded steps among which the nearest is looked for."""


class Recording:
    """Gives the values of recorded steps; a step that is not recorded is an error.

    Only steps that are wanted fresh (`since`) are made, and kept in the journal behind.
    """

    def __init__(
        self, records: Iterable[StepRecord], into: Journal | None = None, end: str = ""
    ) -> None:
        """A recording.

        Args:
            records: The steps, whole.
            into: Takes what the replay does, recorded steps included; None = nothing is made.
            end: How the recorded run ended, where it did not complete.
        """
        self._records = {record.key: record for record in records}
        self._into = into
        self._end = end

    async def find(self, step: Step, /) -> StepRecord | None:
        """The recorded step; None if it is to be made.

        Raises:
            RecordedFailure: it failed, and fails again.
            NotRecorded: it is not there, or came from another request.
        """
        if step.since and self._into is not None:
            return None
        known = self._records.get(step.key)
        if known is None or known.fingerprint != step.fingerprint:
            raise self._missing(step, known)
        match known.state:
            case "done":
                if self._into is not None:
                    await self._into.append(known)
                return known
            case "failed":
                raise failure_from_json(known.value)
            case _ if step.kind == "human":
                return known  # the question is open again
            case _:
                raise self._missing(step, None)

    async def begin(self, step: Step, /) -> None:
        """Keep it where the replay is kept."""
        if self._into is not None:
            await self._into.begin(step)

    async def append(self, record: StepRecord, /) -> None:
        """Keep it where the replay is kept."""
        if self._into is not None:
            await self._into.append(record)

    async def finish(self, status: str, result: JsonValue, /) -> None:
        """Keep it where the replay is kept."""
        if self._into is not None:
            await self._into.finish(status, result)

    async def aclose(self) -> None:
        """Let go of the journal behind."""
        if self._into is not None:
            await self._into.aclose()

    def _missing(self, step: Step, known: StepRecord | None) -> NotRecorded:
        if known is None and self._end and not self._like(step):
            return NotRecorded(step.key, end=self._end)
        nearest = known or self._nearest(step)
        if nearest is None:
            return NotRecorded(step.key, end=self._end)
        lines = list(
            difflib.unified_diff(
                as_lines(nearest.request),
                as_lines(step.request),
                f"recorded {nearest.key}",
                f"wanted {step.key}",
                n=2,
                lineterm="",
            )
        )
        if len(lines) > MOST_LINES:
            lines = [*lines[:MOST_LINES], f"... {len(lines) - MOST_LINES} lines more"]
        return NotRecorded(step.key, nearest.key, "\n".join(lines), end=self._end)

    def _like(self, step: Step) -> list[StepRecord]:
        """Recorded steps of that kind, those of the same node where it has any."""
        kind = [each for each in self._records.values() if each.kind == step.kind]
        node = node_of(step.key)
        return [each for each in kind if node_of(each.key) == node] or kind

    def _nearest(self, step: Step) -> StepRecord | None:
        wanted = "\n".join(as_lines(step.request))
        matcher = difflib.SequenceMatcher(b=wanted, autojunk=False)

        def likeness(record: StepRecord) -> float:
            matcher.set_seq1("\n".join(as_lines(record.request)))
            return matcher.quick_ratio()

        return max(self._like(step)[-MOST_COMPARED:], key=likeness, default=None)


def as_lines(value: JsonValue, indent: str = "") -> list[str]:
    """A request in lines that can be compared: a member a line, texts line by line."""
    lines: list[str] = []
    if isinstance(value, dict):
        for key, each in cast("dict[str, JsonValue]", value).items():
            lines += _member(f"{indent}{key}:", each, indent)
    elif isinstance(value, list | tuple):
        for each in cast("list[JsonValue]", value):
            lines += _member(f"{indent}-", each, indent)
    else:
        lines += _member(indent, value, indent)
    return lines


def _member(head: str, value: JsonValue, indent: str) -> list[str]:
    if isinstance(value, dict | list | tuple) and value:
        return [head, *as_lines(cast("JsonValue", value), f"{indent}  ")]
    if isinstance(value, str) and "\n" in value:
        return [head, *(f"{indent}  {line}" for line in value.split("\n"))]
    return [f"{head} {value}".rstrip()]
