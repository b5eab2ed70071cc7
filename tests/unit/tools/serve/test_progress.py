from __future__ import annotations

import asyncio
from typing import Any

from devall.core.events import ToolProgress, Warned
from devall.tools.serve.progress import WAITING, Progress

Heard = list[tuple[float, float | None, str]]


def report(progress: float, total: float | None = None, message: str = "") -> ToolProgress:
    return ToolProgress(
        node="", call_id="c", tool="t", progress=progress, total=total, message=message
    )


def listener(heard: Heard) -> Any:
    async def hear(progress: float, total: float | None, message: str) -> None:
        heard.append((progress, total, message))

    return hear


async def test_reports_arrive_in_order_before_the_value_and_always_grow():
    heard: Heard = []
    progress = Progress(listener(heard))

    async def work() -> str:
        for value in (1, 1, 0, 2, float("nan"), 3):
            progress.take(report(value, 3, f"at {value}"))
        progress.take(Warned(code="c", message="no progress"))
        return "done"

    assert await progress.during(work()) == "done"
    numbers = [number for number, _, _ in heard]
    assert numbers == sorted(set(numbers))
    assert [round(number, 3) for number in numbers] == [1, 1, 1, 2, 3]
    assert [message for _, _, message in heard] == ["at 1", "at 1", "at 0", "at 2", "at 3"]


async def test_silence_is_broken_by_signs_of_life_that_look_like_no_progress():
    heard: Heard = []
    progress = Progress(listener(heard), beat=0.05)
    go_on = asyncio.Event()

    async def work() -> None:
        while len(heard) < 2:
            await asyncio.sleep(0.01)
        progress.take(report(1, 2))
        while len(heard) < 4:
            await asyncio.sleep(0.01)
        go_on.set()

    await progress.during(work())
    numbers = [number for number, _, _ in heard]
    assert numbers == sorted(set(numbers))
    assert 1 in numbers
    assert all(number < 0.1 or 1 <= number < 1.1 for number in numbers)
    assert "still at work" in heard[0][2]


async def test_a_client_that_is_gone_does_not_spoil_the_work():
    async def gone(_progress: float, _total: float | None, _message: str) -> None:
        raise ConnectionError("gone")

    progress = Progress(gone)

    async def work() -> str:
        for value in range(3):
            progress.take(report(value))
            await asyncio.sleep(0)
        return "done"

    assert await progress.during(work()) == "done"


async def test_a_client_that_never_reads_neither_holds_up_the_work_nor_fills_the_memory():
    async def stuck(_progress: float, _total: float | None, _message: str) -> None:
        await asyncio.Event().wait()

    progress = Progress(stuck)

    async def work() -> str:
        for value in range(10 * WAITING):
            progress.take(report(value))
        return "done"

    assert await asyncio.wait_for(progress.during(work()), 8) == "done"
    assert progress._reports.qsize() <= WAITING + 1
    assert len(asyncio.all_tasks()) == 1 or await _settled()


async def _settled() -> bool:
    await asyncio.sleep(0.05)
    return len(asyncio.all_tasks()) == 1


async def test_work_that_fails_or_is_cancelled_leaves_no_task():
    progress = Progress(listener([]))

    async def fail() -> None:
        raise ValueError("no")

    results = await asyncio.gather(progress.during(fail()), return_exceptions=True)
    assert isinstance(results[0], ValueError)
    task = asyncio.create_task(progress.during(asyncio.sleep(60)))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert await _settled()
