"""What is shown of a run while it goes: nothing, plain lines, or (live.py) a moving picture."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Collection
from typing import Protocol

from devall.cli.streams import is_terminal, one_line, write_note
from devall.cli.words import Line, Teller
from devall.core.events import Event
from devall.telemetry.redaction import Redactor

LONGEST_BODY = 400
"""Characters of what a node has said, on a plain line."""


class View(Protocol):
    """A sink that shows events to a person."""

    def __call__(self, event: Event, /) -> None:
        """Show the event."""
        ...

    def note(self, text: str) -> None:
        """Say something that is no event, also where only errors are shown."""
        ...

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """While this holds, the terminal is somebody else's."""
        ...

    def close(self) -> None:
        """Leave the terminal as it should be; more than once is harmless."""
        ...


class Silence:
    """Shows nothing but what must be said."""

    def __call__(self, event: Event, /) -> None:
        """Show nothing."""

    def note(self, text: str) -> None:
        """Say something."""
        write_note(text)

    def paused(self) -> contextlib.AbstractContextManager[None]:
        """Nothing moves anyway."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Nothing is open."""


class PlainLines(Silence):
    """A line on standard error for each event that matters, without control characters."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    def __call__(self, event: Event, /) -> None:
        """Write the event's line."""
        line = self._teller.line(event)
        if line is not None:
            write_note(as_text(line))


def as_text(line: Line) -> str:
    """The line with what belongs to it, on one line."""
    text = f"warning: {line.text}" if line.tone == "warning" else line.text
    return f"{text}: {one_line(line.body, LONGEST_BODY)}" if line.body else text


def choose_view(
    *, quiet: bool, verbose: bool, redactor: Redactor, answering: Collection[str]
) -> View:
    """The view for this terminal, or for none.

    Args:
        quiet: Whether only errors are wanted.
        verbose: Whether a line for every event is wanted.
        redactor: What takes the secrets out.
        answering: Nodes whose words are the run's answer, which is shown by itself.
    """
    if quiet:
        return Silence()
    teller = Teller(redactor, is_verbose=verbose)
    if is_terminal(sys.stderr) and os.environ.get("TERM", "") not in {"", "dumb"}:
        from devall.cli.live import LiveView

        return LiveView(teller, answering=answering if is_terminal(sys.stdout) else ())
    return PlainLines(teller)
