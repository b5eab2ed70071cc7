"""`devall runs tail`: the events of a run as lines, also while it goes on."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, cast

from devall.cli.failures import Reporter, Terminated, to_line
from devall.cli.inputs import logs_folder
from devall.cli.pages import past_of, redactor_of_today
from devall.cli.streams import write_answer, write_note
from devall.cli.views import as_text
from devall.cli.words import Teller
from devall.core.errors import UsageError
from devall.core.events import RunFinished
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.history.past import Past

_PAUSE = 0.2
"""Seconds between two looks at the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TailOptions:
    """The options of `devall runs tail`, as they were written."""

    run: str
    follow: bool = False
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


def execute(options: TailOptions) -> int:
    """Print the events; the exit code."""

    def work() -> int:
        try:
            return _execute(options)
        except Terminated:
            return 143
        except KeyboardInterrupt:
            return 130

    return Reporter(options.as_json, options.debug).guard(work)


def _execute(options: TailOptions) -> int:
    past = past_of(options.logs_dir, options.run)
    lines = _Lines(past)
    teller = Teller(redactor_of_today())
    from devall.history.events import event_of

    while True:
        was_over = not options.follow or _is_over(options, past)
        for found in lines.new():
            event = event_of(found)
            if options.as_json:
                text = to_line(redactor_of_today().value({"run_id": past.id, "event": found}))
            elif event is None or (line := teller.line(event)) is None:
                text = ""
            else:
                text = as_text(line) + "\n"
            if isinstance(event, RunFinished) and not options.as_json:
                text = f"run {past.id}: {event.outcome.status.replace('_', ' ')}\n"
            if text and not write_answer(text):
                return 0
            if isinstance(event, RunFinished) and options.follow:
                return 0
        if was_over:
            break
        time.sleep(_PAUSE)
    if options.follow and past.is_kept:
        now = past_of(logs_folder(options.logs_dir), past.id)
        if now.state == "interrupted":
            write_note(f"run {past.id} was interrupted: its process is gone")
    return 0


def _is_over(options: TailOptions, past: Past) -> bool:
    """Whether nothing more will come, as far as that is known."""
    if not past.is_kept:
        return past.last is not None
    return past_of(options.logs_dir, past.id).state != "running"


@dataclass(slots=True)
class _Lines:
    """What is appended to a run's events, bodies not read."""

    past: Past
    _at: int = field(default=0, init=False)
    _rest: bytes = field(default=b"", init=False)

    def new(self) -> Iterator[dict[str, JsonValue]]:
        """The whole lines since the last time; at first, those of the run's last turn.

        Raises:
            UsageError: there are no events.
        """
        from devall.telemetry.run_log import FILE_NAME, with_bodies

        try:
            with (self.past.folder / FILE_NAME).open("rb") as file:
                file.seek(self._at)
                data = file.read()
        except OSError as error:
            raise UsageError(
                f"the events of run {self.past.id} cannot be read: {error.strerror or error}"
            ) from error
        is_first = self._at == 0
        self._at += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        found = [each for line in lines if (each := _parsed(line)) is not None]
        if is_first:
            begins = [at for at, each in enumerate(found) if each.get("event") == "run_started"]
            found = found[begins[-1] :] if begins else found
        for each in found:
            with contextlib.suppress(OSError):  # a body that is gone is told by its size
                with_bodies(each, self.past.folder)
            yield each


def _parsed(line: bytes) -> dict[str, JsonValue] | None:
    try:
        found = json.loads(line)
    except ValueError:  # torn by a process that was killed
        return None
    return cast("dict[str, JsonValue]", found) if isinstance(found, dict) else None
