"""Runs code that blocks, without ever holding up the end of the process."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_thread(work: Callable[[], T], name: str) -> T:
    """The value of a function that runs in a thread of its own, with the caller's context.

    Unlike `asyncio.to_thread` this leaves nothing to wait for: who is cancelled goes on at
    once, and a thread that never ends stops neither the event loop nor the process from ending.

    Args:
        work: What to run. Whatever it raises is raised here.
        name: The thread's name.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(value)  # pyright: ignore[reportArgumentType] -- of type T here
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError(f"raised StopIteration: {error}"))
        else:
            future.set_exception(error)

    def run() -> None:
        value: T | None = None
        failure: BaseException | None = None
        try:
            value = context.run(work)
        # It crosses to the waiting task, which raises it.
        except BaseException as error:  # noqa: BLE001
            failure = error
        # A closed loop has nobody left to tell.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, value, failure)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await future
