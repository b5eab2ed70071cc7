"""`devall runs cancel`: the end of a run that another process carries out."""

from __future__ import annotations

import os
import signal
import socket
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import logs_folder
from devall.cli.pages import past_of
from devall.cli.streams import write_answer, write_note
from devall.cli.words import duration
from devall.core.errors import RunError, UsageError

if TYPE_CHECKING:
    from devall.history.past import Past
    from devall.journal.owner import Owner

PATIENCE = 30.0
"""Seconds that a run may take to end."""
_PAUSE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelOptions:
    """The options of `devall runs cancel`, as they were written."""

    run: str
    others_too: bool = False
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


def execute(options: CancelOptions) -> int:
    """End the run and say how it went; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: CancelOptions) -> int:
    past = past_of(options.logs_dir, options.run)
    row = past.row
    if row is None:
        if past.last is not None:
            return _told(options, past, is_cancelled=False)
        raise UsageError(
            f"run {past.id} is in no journal (--journal memory): which process runs it is not kept",
            hint="press Ctrl-C where it runs",
        )
    if not row.is_alive:
        return _told(options, past, is_cancelled=False)
    _check_owner(row.owner, past, options)
    began = time.monotonic()
    if _terminate(row.owner) and not options.as_json:
        write_note(f"run {past.id}: process {row.owner.pid} was told to end")
    while (now := past_of(options.logs_dir, past.id)).state == "running":
        if time.monotonic() - began > PATIENCE:
            raise RunError(
                f"run {past.id} has not ended after {duration(PATIENCE)}",
                hint=f"end its process by force: kill -9 {row.owner.pid}; what was done is kept",
            )
        time.sleep(_PAUSE)
    return _told(options, now, is_cancelled=True)


def _told(options: CancelOptions, past: Past, *, is_cancelled: bool) -> int:
    state = past.state.replace("_", " ")
    if options.as_json:
        told = {"run_id": past.id, "state": past.state, "was_alive": is_cancelled}
        write_answer(to_line(told))
    elif is_cancelled:
        write_answer(f"run {past.id} has ended: {state}\n")
    else:
        write_answer(f"run {past.id} is not alive: {state}\n")
    return 0


def _check_owner(owner: Owner, past: Past, options: CancelOptions) -> None:
    """Make sure that it is right to end the process.

    Raises:
        UsageError: it is of another machine, cannot be told from another process, or carries
            out other runs too.
    """
    from devall.history.past import all_past

    if owner.host != socket.gethostname():
        raise UsageError(
            f"run {past.id} is alive in process {owner.pid} of {owner.host}, another machine",
            hint="cancel it there",
        )
    if not owner.born:
        raise UsageError(
            f"run {past.id} is alive in process {owner.pid}, and this system does not tell whether"
            " that is still the same process",
            hint=f"look at it, and end it yourself: kill {owner.pid}",
        )
    others = [
        each.id
        for each in all_past(logs_folder(options.logs_dir))
        if each.row is not None
        and each.id != past.id
        and each.row.owner == owner
        and each.row.is_alive
    ]
    if others and not options.others_too:
        raise UsageError(
            f"process {owner.pid} carries out other runs too: {', '.join(others[:5])}",
            hint="--others-too ends them all",
        )


def _terminate(owner: Owner) -> bool:
    """Send SIGTERM to the process, if it is surely the same; False: it is gone."""
    try:
        if not hasattr(os, "pidfd_open"):
            if owner.is_gone():
                return False
            os.kill(owner.pid, signal.SIGTERM)
            return True
        handle = os.pidfd_open(owner.pid)
        try:  # the handle stands for one process, whatever becomes of its number
            if owner.is_gone():
                return False
            signal.pidfd_send_signal(handle, signal.SIGTERM)
        finally:
            os.close(handle)
    except ProcessLookupError:
        return False
    except PermissionError as error:
        raise UsageError(
            f"process {owner.pid} belongs to another user", hint="cancel it as that user"
        ) from error
    return True
