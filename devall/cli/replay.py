"""`devall replay`: a kept run once more, from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli import options as parsing
from devall.cli.conclusion import Conclusion
from devall.cli.failures import Reporter
from devall.cli.inputs import gather_answers, logs_folder, nodes_of
from devall.cli.reports import KINDS, Reports, parse_targets
from devall.cli.stage import Stage
from devall.cli.streams import write_note

if TYPE_CHECKING:
    from devall.runs.kept import KeptRun
    from devall.telemetry.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions:
    """The options of `devall replay`, as they were written."""

    run_id: str
    live: Sequence[str] = ()
    changes: Sequence[str] = ()
    answers: Sequence[str] = ()
    answers_file: Path | None = None
    logs_dir: Path | None = None
    reports: Sequence[str] = ()
    max_usd: float | None = None
    max_seconds: float | None = None
    as_json: bool = False
    quiet: bool = False
    debug: bool = False


def execute(options: ReplayOptions) -> int:
    """Replay the run and print its answer; the exit code."""
    reporter = Reporter(options.as_json, options.debug)
    return reporter.guard(lambda: _find_and_replay(options))


def _find_and_replay(options: ReplayOptions) -> int:
    from devall.app import redactor_of
    from devall.runs.kept import KeptRun

    reports = Reports(parse_targets(options.reports, KINDS))
    with reports.of_failure(options.run_id):
        changes = parsing.parse_changes(options.changes)
        kept = KeptRun.recorded(options.run_id, logs_folder(options.logs_dir), changes)
    redactor = redactor_of(kept.loaded)
    reporter = Reporter(options.as_json, options.debug, kept.row.workflow, redactor)

    def work() -> int:
        with reports.of_failure(kept.row.workflow, redactor):
            return _replay(options, kept, reports)

    return reporter.guard(work)


def show_difference(recorded: Path, replayed: Path, redactor: Redactor) -> None:
    """Show what came otherwise than in the recording."""
    from devall.cli.diff import lines_of
    from devall.history.difference import difference

    found = difference(first=recorded, second=replayed)
    if found.is_same:
        write_note("nothing came otherwise than in the recording")
        return
    write_note("what came otherwise than in the recording:")
    for line in lines_of(found, (recorded.name, replayed.name), every=True):
        write_note(redactor.text(f"  {line}"))


def _replay(options: ReplayOptions, kept: KeptRun, reports: Reports) -> int:
    from devall.app import redactor_of, replay

    redactor = redactor_of(kept.loaded)
    names = [*nodes_of(kept.loaded, "human"), *nodes_of(kept.loaded, "agent")]
    answers = gather_answers(options.answers_file, options.answers, names)
    limits = parsing.parse_limits(options.max_usd, options.max_seconds)
    result = Stage.of(kept.loaded, redactor, quiet=options.quiet).play(
        lambda sink, human: replay(
            kept, live=options.live, answers=answers, human=human, limits=limits, on_event=sink
        ),
        reports,
        asks=bool(options.live),
    )
    if result.logs_dir is not None and not options.quiet:
        show_difference(kept.folder / kept.row.id, result.logs_dir, redactor)
    is_kept = bool(options.live) or result.status == "waiting"
    conclusion = Conclusion(options.as_json, options.quiet, options.debug, redactor, is_kept)
    return conclusion.write(result, reports.problems)
