"""Questions to the person at the terminal: what human nodes ask, and the task."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncGenerator, Callable

from devall.cli.streams import clean, is_terminal, write_note
from devall.cli.views import View
from devall.core.errors import AnswerNeeded
from devall.core.ids import node_of
from devall.core.ports import Question
from devall.telemetry.redaction import Redactor

_MOST_LINES = 40
"""Lines shown of each input; the rest is in the run's log."""


class TerminalHuman:
    """Asks the person at the terminal, one question at a time.

    Lines are read by the event loop: a thread that sits in `input()` could not be stopped.
    """

    def __init__(self, view: View, redactor: Redactor | None = None) -> None:
        self._view = view
        self._redactor = redactor or Redactor()
        self._turn = asyncio.Lock()

    async def ask(self, question: Question, /) -> str:
        """What the person types; a line that ends in a backslash goes on with the next one.

        Raises:
            AnswerNeeded: the terminal was closed (Ctrl-D).
        """
        async with self._turn:
            with self._view.paused():
                write_note(self._redactor.text(as_asked(question)))
                answer = await read_answer("answer> ")
        if answer is None:
            raise AnswerNeeded([(question.path, question.text)])
        return answer


def can_ask() -> bool:
    """Whether a person sees what is asked, and can type."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


def as_asked(question: Question) -> str:
    """The question with what belongs to it, for people."""
    node = node_of(question.path)
    # Another than the node may ask in its midst: a server that several nodes use.
    is_the_nodes = node.rpartition("/")[2] == question.node.rpartition("/")[2]
    lines = ["", f"── {node if is_the_nodes else question.node} asks ──"]
    for message in question.inputs:
        shown = clean(message.text).splitlines()
        if message.source:
            lines.append(f"{message.source}:")
        lines += [f"  {line}" for line in shown[:_MOST_LINES]]
        if len(shown) > _MOST_LINES:
            lines.append(f"  … {len(shown) - _MOST_LINES} more lines")
    if question.text:
        lines += ["", question.text]
    return "\n".join(lines)


async def read_answer(prompt: str) -> str | None:
    """What is typed at the terminal, without its line end; None at its end."""
    _show(prompt)
    said: list[str] = []
    async with _terminal_lines() as next_line:
        while True:
            line = await next_line()
            if line is None:
                _show("\n")
                return "\n".join(said) if said else None
            if line.endswith("\\"):
                said.append(line[:-1])
                _show("      > ")
                continue
            return "\n".join([*said, line])


@contextlib.asynccontextmanager
async def _terminal_lines() -> AsyncGenerator[Callable[[], asyncio.Future[str | None]]]:
    """Lines of standard input as they are entered; None at the end."""
    loop = asyncio.get_running_loop()
    handle = sys.stdin.fileno()
    waiting: list[asyncio.Future[str | None]] = []
    pending = bytearray()

    def take() -> None:
        data = os.read(handle, 65536)
        pending.extend(data)
        if waiting and not waiting[0].done() and (b"\n" in pending or not data):
            waiting.pop().set_result(_cut_line(pending, is_end=not data))

    def next_line() -> asyncio.Future[str | None]:
        future: asyncio.Future[str | None] = loop.create_future()
        if b"\n" in pending:
            future.set_result(_cut_line(pending, is_end=False))
        else:
            waiting[:] = [future]
        return future

    loop.add_reader(handle, take)
    try:
        yield next_line
    finally:
        loop.remove_reader(handle)


def _cut_line(pending: bytearray, *, is_end: bool) -> str | None:
    if is_end and not pending:
        return None
    line, _, rest = bytes(pending).partition(b"\n")
    pending[:] = rest
    return line.decode("utf-8", "replace").rstrip("\r")


def _show(text: str) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(text)
        sys.stderr.flush()
