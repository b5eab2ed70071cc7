"""`devall replay`: a kept run once more, from its journal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli import options as parsing
from devall.cli.conclusion import Conclusion
from devall.cli.inputs import gather_answers, logs_folder, nodes_of
from devall.cli.kept import KeptOptions, take_up
from devall.cli.stage import Stage
from devall.cli.streams import write_note

if TYPE_CHECKING:
    from devall.cli.reports import Reports
    from devall.runs.kept import KeptRun
    from devall.telemetry.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOptions(KeptOptions):
    """The options of `devall replay`, as they were written."""

    live: Sequence[str] = ()
    changes: Sequence[str] = ()


def execute(options: ReplayOptions) -> int:
    """Replay the run and print its answer; the exit code."""
    from devall.runs.kept import KeptRun

    def find() -> KeptRun:
        changes = parsing.parse_changes(options.changes)
        return KeptRun.recorded(options.run_id, logs_folder(options.logs_dir), changes)

    return take_up(
        options, find, lambda kept, redactor, reports: _replay(options, kept, redactor, reports)
    )


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


def _replay(options: ReplayOptions, kept: KeptRun, redactor: Redactor, reports: Reports) -> int:
    from devall.app import replay

    names = [*nodes_of(kept.loaded, "human"), *nodes_of(kept.loaded, "agent")]
    answers = gather_answers(options.answers_file, options.answers, names)
    limits = parsing.parse_limits(options.max_usd, options.max_seconds)
    stage = Stage.of(kept.loaded, redactor, quiet=options.quiet, verbose=options.verbose)
    result = stage.play(
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
