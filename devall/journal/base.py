"""What a journal is: the effects that have been done, by their logical path."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Protocol

from devall.core.messages import JsonValue
from devall.core.ports import StepKind


@dataclass(frozen=True, slots=True)
class StepRecord:
    """An effect that was done."""

    key: str
    """Logical path: `/writer@2/turn:3/tool:call_ab12`."""
    kind: StepKind
    fingerprint: str
    """Of the request that led to the value."""
    value: JsonValue


class Journal(Protocol):
    """The steps of one run; append-only."""

    async def find(self, key: str) -> StepRecord | None:
        """What was done under that key, if anything."""
        ...

    async def append(self, record: StepRecord) -> None:
        """Keep a step; when this returns it is kept."""
        ...

    async def aclose(self) -> None:
        """Let go of files and threads."""
        ...


def fingerprint(request: JsonValue) -> str:
    """A short hash of a request that is the same in every process."""
    text = json.dumps(request, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
