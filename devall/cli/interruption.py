"""Ctrl-C and SIGTERM: the first ends the run in order, a second Ctrl-C ends the process at once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

from devall.core.errors import RunCancelled

T = TypeVar("T")

_SHOW_CURSOR = "\x1b[?25h"


class Interruption:
    """Turns signals into the cancelling of one task, with the signal's name as the message.

    The handlers are Python's own and not the event loop's: those run when the loop does, so
    that code which blocks the loop could not be interrupted at all.
    """

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._first = ""
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def signal(self) -> str:
        """The signal that came first; empty: none has."""
        return self._first

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of the work; threads that never end are not waited for.

        Raises:
            RunCancelled: a signal came, and the work has not made a result of it.
        """
        loop = self._loop = asyncio.new_event_loop()
        before = {number: signal.getsignal(number) for number in _signals()}
        try:
            task = self._task = loop.create_task(work)
            for number in before:
                signal.signal(number, self._on_signal)
            return loop.run_until_complete(task)
        except asyncio.CancelledError:
            raise RunCancelled(self._first or "SIGINT") from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            _cancel_rest(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
            loop.close()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        name = "SIGINT" if number == signal.SIGINT else "SIGTERM"
        if self._first:
            if name == "SIGINT":
                end_at_once(130)
            return
        self._first = name
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        assert self._task is not None
        word = "interrupted" if self._first == "SIGINT" else "terminated"
        self._task.cancel(self._first)
        self._say(f"{word}: ending the run (Ctrl-C ends it at once)")


def end_at_once(code: int) -> None:
    """End this process, and with it whatever child is left, without any clean-up."""
    try:
        if sys.stderr.isatty():
            sys.stderr.write(_SHOW_CURSOR + "\n")
            sys.stderr.flush()
    except (AttributeError, OSError, ValueError):
        pass
    os._exit(code)


def _signals() -> list[signal.Signals]:
    """What ends a run. SIGHUP counts unless it is ignored on purpose, as under nohup."""
    found = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        found.append(hangup)
    return found


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.wait(rest, timeout=1))
