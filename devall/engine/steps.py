"""Effects as steps: done once, known by their logical path ever after."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

from devall.core.errors import AnswerNeeded, JournalError, RunError, SetupError, ToolInDoubt
from devall.core.messages import JsonValue
from devall.journal.base import Journal, Step, StepRecord, StepState
from devall.journal.failures import failure_to_json

Effect = Callable[[], Awaitable[JsonValue]]


async def take_step(
    journal: Journal, step: Step, call: Effect, in_doubt: Effect | None = None
) -> JsonValue:
    """The value of an effect: from the journal if it was done before, else by doing it.

    A recorded value counts only if it came from the same request: a workflow that was edited
    in between makes the effect anew.

    Args:
        journal: Where steps are kept.
        step: What is wanted.
        call: Makes the effect.
        in_doubt: Does what is right where the effect was begun in an earlier process and may
            have been done; None = it may be made again. That it begins is kept only if this
            is given.
    """
    known = await journal.find(step)
    if known is not None and known.state == "done":
        return known.value
    began = time.monotonic()
    is_fresh = in_doubt is not None and known is None
    if in_doubt is not None and known is not None:
        call = in_doubt
    elif in_doubt is not None:
        await journal.begin(step)
    try:
        value = await call()
    except (AnswerNeeded, SetupError):
        if is_fresh and step.kind != "human":
            # Whoever asks a human from within has not done what it was called for, nor has a
            # tool that could not be opened. What was in doubt before is so still.
            await journal.append(_record(step, None, began, "void"))
        raise
    except ToolInDoubt:
        raise
    except RunError as error:
        # Where it cannot be kept the run's end will say so: this error is the one that matters.
        with suppress(JournalError):
            await journal.append(_record(step, failure_to_json(error), began, "failed"))
        raise
    await journal.append(_record(step, value, began))
    return value


def _record(step: Step, value: JsonValue, began: float, state: StepState = "done") -> StepRecord:
    return StepRecord(
        step.key,
        step.kind,
        step.fingerprint,
        value,
        state,
        step.request,
        time.monotonic() - began,
        time.time(),
    )
