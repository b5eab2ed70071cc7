"""`devall resume`, and `devall runs answer`: to go on with a run that has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from devall.cli import options as parsing
from devall.cli.conclusion import Conclusion, answer_names
from devall.cli.failures import Reporter
from devall.cli.inputs import (
    gather_answers,
    gather_variables,
    logs_folder,
    nodes_of,
)
from devall.cli.reports import KINDS, Reports, parse_targets
from devall.cli.stage import Stage
from devall.cli.streams import write_answer, write_note
from devall.core.errors import UsageError

if TYPE_CHECKING:
    from devall.runs.kept import KeptRun

IN_DOUBT: tuple[Literal["retry"], Literal["fail"], Literal["ask"]] = ("retry", "fail", "ask")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions:
    """The options of `devall resume`, as they were written."""

    run_id: str
    answers: Sequence[str] = ()
    answers_file: Path | None = None
    again: Sequence[str] = ()
    in_doubt: str | None = None
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    logs_dir: Path | None = None
    reports: Sequence[str] = ()
    max_usd: float | None = None
    max_seconds: float | None = None
    as_json: bool = False
    quiet: bool = False
    debug: bool = False


def execute(options: ResumeOptions) -> int:
    """Go on with the run and print its answer; the exit code."""
    reporter = Reporter(options.as_json, options.debug)
    return reporter.guard(lambda: _find_and_resume(options))


def _find_and_resume(options: ResumeOptions) -> int:
    from devall.app import redactor_of
    from devall.runs.kept import KeptRun

    reports = Reports(parse_targets(options.reports, KINDS))
    with reports.of_failure(options.run_id):
        in_doubt = parsing.one_of(options.in_doubt, IN_DOUBT, "--in-doubt")
        kept = KeptRun.find(
            options.run_id,
            logs_folder(options.logs_dir),
            variables=gather_variables(options.vars_file, options.variables),
            env_file=options.env_file,
        )
    redactor = redactor_of(kept.loaded)
    reporter = Reporter(options.as_json, options.debug, kept.row.workflow, redactor)

    def work() -> int:
        with reports.of_failure(kept.row.workflow, redactor):
            return _resume(options, kept, reports, in_doubt)

    return reporter.guard(work)


def _resume(
    options: ResumeOptions,
    kept: KeptRun,
    reports: Reports,
    in_doubt: Literal["retry", "fail", "ask"] | None,
) -> int:
    from devall.app import redactor_of, resume

    redactor = redactor_of(kept.loaded)
    names = [*answerable(kept), *nodes_of(kept.loaded, "human"), *nodes_of(kept.loaded, "agent")]
    answers = gather_answers(options.answers_file, options.answers, names)
    limits = parsing.parse_limits(options.max_usd, options.max_seconds)
    result = Stage.of(kept.loaded, redactor, quiet=options.quiet).play(
        lambda sink, human: resume(
            kept,
            answers=answers,
            again=options.again,
            in_doubt=in_doubt,
            human=human,
            limits=limits,
            on_event=sink,
        ),
        reports,
    )
    conclusion = Conclusion(options.as_json, options.quiet, options.debug, redactor)
    return conclusion.write(result, reports.problems)


def answer(run_id: str, given: Sequence[str], logs_dir: Path | None, *, debug: bool) -> int:
    """Keep answers to the open questions of a run; it goes on with `devall resume`."""
    return Reporter(debug=debug).guard(lambda: _answer(run_id, given, logs_folder(logs_dir)))


def _answer(run_id: str, given: Sequence[str], folder: Path) -> int:
    from devall.app import answer_questions
    from devall.journal.reader import Reader

    with Reader(folder) as reader:
        row = reader.run(run_id)
    waiting = [each["path"] for each in (row.result or {}).get("waiting", ())]
    names = [name for path in waiting for name in (path, *answer_names([path]))]
    if not waiting:
        raise UsageError(f"run {row.id} has asked nothing that is still open")
    answers = parsing.parse_answers(given, list(dict.fromkeys(names)))
    left = asyncio.run(answer_questions(row.id, answers, logs_dir=folder))
    if left:
        write_note("still open:")
        for path, name in zip(left, answer_names(left), strict=True):
            write_note(f"  {name} ({path})")
    where = "" if str(folder) == "logs" else f" --logs-dir {folder}"
    write_answer(f"devall resume {row.id}{where}\n")
    return 0


def answerable(kept: KeptRun) -> list[str]:
    """The ids of the questions that a run has left open, and the nodes that asked them."""
    waiting = [each["path"] for each in (kept.row.result or {}).get("waiting", ())]
    return [*waiting, *(name for path in waiting for name in answer_names([path]))]
