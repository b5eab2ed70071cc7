"""What commands that take up a kept run have in common: their options, and how failures are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter
from devall.cli.reports import KINDS, Reports, parse_targets

if TYPE_CHECKING:
    from devall.runs.kept import KeptRun
    from devall.telemetry.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptOptions:
    """The options that these commands share, as they were written."""

    run_id: str
    answers: Sequence[str] = ()
    answers_file: Path | None = None
    logs_dir: Path | None = None
    reports: Sequence[str] = ()
    max_usd: float | None = None
    max_seconds: float | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def take_up(
    options: KeptOptions,
    find: Callable[[], KeptRun],
    carry_out: Callable[[KeptRun, Redactor, Reports], int],
) -> int:
    """The exit code of a command; what goes wrong is told without secrets, and reported.

    Args:
        options: Those of the command.
        find: Gives the run, its workflow loaded.
        carry_out: Does the command's work with it.
    """

    def work() -> int:
        from devall.app import redactor_of

        reports = Reports(parse_targets(options.reports, KINDS))
        with reports.of_failure(options.run_id):
            kept = find()
        workflow, redactor = kept.row.workflow, redactor_of(kept.loaded)

        def known() -> int:
            with reports.of_failure(workflow, redactor):
                return carry_out(kept, redactor, reports)

        return Reporter(options.as_json, options.debug, workflow, redactor).guard(known)

    return Reporter(options.as_json, options.debug).guard(work)
