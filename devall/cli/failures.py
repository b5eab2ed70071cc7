"""What is said when a command fails: text for people, an object for programs."""

from __future__ import annotations

import os
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

from devall.cli.streams import write_answer, write_note
from devall.core.diagnostics import Diagnostic
from devall.core.errors import ConfigError, RunCancelled
from devall.core.messages import JsonValue
from devall.core.outcome import ErrorReport, Outcome, outcome_of

if TYPE_CHECKING:
    from devall.telemetry.redaction import Redactor

INTERNAL_HINT = "this is a mistake in devall and not in your workflow; --debug shows where"


class Terminated(KeyboardInterrupt):
    """SIGTERM came while no run could take it."""


def terminate_as_interrupt() -> None:
    """Let SIGTERM end what runs before and after a run, as Ctrl-C does."""

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, on_signal)


@dataclass(frozen=True, slots=True)
class Reporter:
    """Says how a command failed, in the form that was asked for, without secrets."""

    as_json: bool = False
    debug: bool = False
    file: str = ""
    """The workflow, for the object."""
    redactor: Redactor | None = None
    """None: the workflow is not read yet; the environment's secrets are known."""

    def guard(self, work: Callable[[], int]) -> int:
        """The exit code of a command, whatever becomes of it; the command line's boundary."""
        try:
            return work()
        except KeyboardInterrupt as error:
            name = "SIGTERM" if isinstance(error, Terminated) else "SIGINT"
            return self.fail(RunCancelled(name))
        except Exception as error:  # noqa: BLE001 - the boundary: nothing leaves as a traceback
            return self.fail(error)

    def fail(self, error: BaseException) -> int:
        """Report the error; the exit code that goes with it."""
        outcome = outcome_of(error)
        if self.debug:
            write_note(self._clean(traceback_text(error)))
        if isinstance(error, ConfigError):
            write_note(self._redactor().text(diagnostics_text(error.diagnostics)))
        elif outcome.error is not None:
            write_note(self._clean(error_text(outcome.error, debug=self.debug)))
        if self.as_json:
            write_answer(to_line(self._object(outcome, error)))
        return outcome.exit_code

    def _object(self, outcome: Outcome, error: BaseException) -> dict[str, JsonValue]:
        """The object of `--json` for a run that never began."""
        from devall.engine.result import RunResult

        found = RunResult(run_id="", workflow=self.file, outcome=outcome).to_json()
        found |= {"run_id": None, "workflow": self.file or None}
        if isinstance(error, ConfigError):
            from devall.loading.reports import as_json

            found["error"]["diagnostics"] = [as_json(each) for each in error.diagnostics]
        return self._redactor().value(found)

    def _clean(self, text: str) -> str:
        from devall.telemetry.redaction import without_named

        return without_named(self._redactor().text(text))

    def _redactor(self) -> Redactor:
        from devall.telemetry.redaction import Redactor, environment_secrets

        return self.redactor or Redactor(environment_secrets(os.environ))


def traceback_text(error: BaseException) -> str:
    """Where an error came from, for `--debug`."""
    return "".join(traceback.format_exception(error)).rstrip()


def error_text(error: ErrorReport, *, debug: bool = False) -> str:
    """An error as people read it: code, node, what is wrong, what would be right."""
    lines = [f"error [{error.code}]: {error.message}"]
    if error.node is not None and error.node not in error.message:
        lines.append(f"  node: {error.node}")
    if error.hint:
        lines.append(f"  hint: {error.hint}")
    if error.code == "internal" and not debug:
        lines.append(f"  hint: {INTERNAL_HINT}")
    return "\n".join(lines)


def diagnostics_text(diagnostics: Sequence[Diagnostic]) -> str:
    """All findings, each with its line and a caret, and how many there are."""
    from devall.loading.reports import render_text

    return render_text(diagnostics)


def to_line(value: JsonValue) -> str:
    """A JSON value as one line of output."""
    import json

    return json.dumps(value, ensure_ascii=False, default=str) + "\n"
