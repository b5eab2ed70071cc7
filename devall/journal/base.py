"""What a journal is: the effects of a run that were begun and done, by their logical path."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from devall.core.messages import JsonValue
from devall.core.ports import StepKind

StepState = Literal["begun", "done", "void", "failed"]
"""`begun`: whether it was done is not known; `void`: it was begun, and certainly not done;
`failed`: it ended with an error, which is the value, and whoever goes on makes it anew."""


@dataclass(frozen=True, slots=True)
class Step:
    """An effect that is wanted."""

    key: str
    """Logical path: `/writer@2/turn:3/tool:call_ab12`."""
    kind: StepKind
    request: JsonValue
    """What decides the result."""
    fingerprint: str
    """Of the request."""
    since: int = 0
    """Records of earlier epochs do not count: what they came from was changed since then."""


@dataclass(frozen=True, slots=True)
class StepRecord:
    """An effect that was begun or done."""

    key: str
    kind: StepKind
    fingerprint: str
    value: JsonValue
    state: StepState = "done"
    request: JsonValue = None
    """None where the reader has no use for it."""
    seconds: float = 0
    """How long the effect took."""
    at: float = 0
    """When it was written: seconds since the epoch of the clock."""
    epoch: int = 0
    """Which process's turn at the run it was, from 1; 0: not kept beyond the process."""


class Journal(Protocol):
    """The steps of one run; append-only."""

    async def find(self, step: Step, /) -> StepRecord | None:
        """What the journal holds for the step: done, or begun and no more.

        Raises:
            RunError: the journal is a recording that must hold it, and does not.
        """
        ...

    async def begin(self, step: Step, /) -> None:
        """Keep that an effect is about to be made, which must not be made twice.

        Raises:
            JournalError: it cannot be kept.
        """
        ...

    async def append(self, record: StepRecord, /) -> None:
        """Keep a step; when this returns it is kept.

        Raises:
            JournalError: it cannot be kept.
        """
        ...

    async def finish(self, status: str, result: JsonValue, /) -> None:
        """Keep how the run ended; the journal takes no more steps.

        Args:
            status: As an `Outcome` has it.
            result: The object of `devall run --json`.

        Raises:
            JournalError: it cannot be kept.
        """
        ...

    async def aclose(self) -> None:
        """Let go of files and threads."""
        ...


_encoder = json.JSONEncoder(sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def canonical(request: JsonValue) -> str:
    """The text of a request that is the same in every process."""
    return _encoder.encode(request)


def fingerprint(request: JsonValue, redact: Callable[[JsonValue], JsonValue] | None = None) -> str:
    """A short hash of a request that is the same in every process.

    Args:
        request: What decides an effect's result.
        redact: Takes secrets out first: a run that goes on from what was written has no others.
    """
    text = canonical(request if redact is None else redact(request))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]
