"""Effects as steps: done once, known by their logical path ever after."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from devall.core.messages import JsonValue
from devall.core.ports import StepKind
from devall.journal.base import Journal, StepRecord, fingerprint


async def take_step(
    journal: Journal,
    key: str,
    kind: StepKind,
    request: JsonValue,
    call: Callable[[], Awaitable[JsonValue]],
) -> JsonValue:
    """The value of an effect: from the journal if it was done before, else by doing it.

    A recorded value counts only if it came from the same request: a workflow that was edited
    in between makes the effect anew.
    """
    mark = fingerprint(request)
    known = await journal.find(key)
    if known is not None and known.fingerprint == mark:
        return known.value
    value = await call()
    await journal.append(StepRecord(key, kind, mark, value))
    return value
