"""Cases run side by side, each with a result that says what was not as expected."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from devall.core.diagnostics import Position
from devall.engine.result import RunResult
from devall.telemetry.redaction import Redactor
from devall.testing.cases.playing import Played, play
from devall.testing.cases.reading import Case, read_case
from devall.testing.cases.verdict import Unmet

Updated = Literal["expectations", "recording"]
"""What of a case was written anew."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something that is not as the case expects it."""

    what: str
    """The expectation by its keys: `answer.equals`, `recording`."""
    message: str
    """What is wrong, in one sentence."""
    difference: str
    """Lines that name what was wanted and what came; may be empty."""
    position: Position
    """Where the case says it; the node in the workflow whose request was not recorded."""

    def __str__(self) -> str:
        lines = [f"{self.what}: {self.message} ({self.position})"]
        lines += [f"  {line}" for line in self.difference.splitlines()]
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class CaseResult:
    """A case that was run."""

    name: str
    file: Path
    failures: tuple[Failure, ...]
    """What is not as expected; empty: it passed."""
    seconds: float
    run: RunResult = field(repr=False)
    """How the run of the workflow went."""
    updated: tuple[Updated, ...] = ()
    """What was written anew."""

    @property
    def is_passed(self) -> bool:
        """Whether everything is as expected."""
        return not self.failures

    def check(self) -> None:
        """Make sure that it passed.

        Raises:
            AssertionError: it did not; its text says all that is not as expected.
        """
        assert self.is_passed, "\n".join([f"case {self.name}:", *map(str, self.failures)])


async def run_case(case: Case | Path | str) -> CaseResult:
    """Run a case: nothing is called but what the case leaves to be called.

    ```python
    async def test_poem():
        (await run_case("tests/workflows/poem")).check()
    ```

    Args:
        case: The folder of a `case.yaml`, or such a file.

    Raises:
        UsageError: there is no such case.
        ConfigError: its file is wrong.
        asyncio.CancelledError: the task was cancelled.
    """
    known = case if isinstance(case, Case) else read_case(Path(case))
    began = time.perf_counter()
    played = await play(known)
    return result_of(known, played, time.perf_counter() - began)


async def run_cases(
    cases: Sequence[Case],
    *,
    at_once: int,
    on_done: Callable[[CaseResult], None] = lambda _: None,
    run: Callable[[Case], Awaitable[CaseResult]] = run_case,
) -> list[CaseResult]:
    """Run cases side by side; their results in the order of the cases.

    Args:
        cases: The cases.
        at_once: How many run at one time.
        on_done: Told of each as it ends.
        run: Runs one.

    Raises:
        asyncio.CancelledError: the task was cancelled; every run was ended in order.
    """
    gate = asyncio.Semaphore(at_once)

    async def one(case: Case) -> CaseResult:
        async with gate:
            result = await run(case)
        on_done(result)
        return result

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(case)) for case in cases]
    return [task.result() for task in tasks]


def result_of(
    case: Case, played: Played, seconds: float, updated: tuple[Updated, ...] = ()
) -> CaseResult:
    """The result of a case that was played."""
    return CaseResult(
        case.name,
        case.file,
        tuple(_failure(case, each, played.redactor) for each in played.unmet),
        seconds,
        played.result,
        updated,
    )


def _failure(case: Case, found: Unmet, redactor: Redactor) -> Failure:
    difference = "\n".join(found.difference)
    return Failure(
        found.what,
        redactor.text(found.message),
        redactor.text(difference),
        found.position or case.place(found.path),
    )
