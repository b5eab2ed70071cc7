"""`devall resume`, and `devall runs answer`: to go on with a run that has stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from devall.cli import options as parsing
from devall.cli.conclusion import Conclusion, answer_names, resume_command
from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import (
    gather_answers,
    gather_variables,
    logs_folder,
    nodes_of,
)
from devall.cli.kept import KeptOptions, take_up
from devall.cli.stage import Stage
from devall.cli.streams import write_answer, write_note
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.cli.reports import Reports
    from devall.runs.kept import KeptRun
    from devall.telemetry.redaction import Redactor

IN_DOUBT: tuple[Literal["retry"], Literal["fail"], Literal["ask"]] = ("retry", "fail", "ask")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeOptions(KeptOptions):
    """The options of `devall resume`, as they were written."""

    again: Sequence[str] = ()
    in_doubt: str | None = None
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None


def execute(options: ResumeOptions) -> int:
    """Go on with the run and print its answer; the exit code."""
    from devall.runs.kept import KeptRun

    def find() -> KeptRun:
        _in_doubt(options)
        return KeptRun.find(
            options.run_id,
            logs_folder(options.logs_dir),
            variables=gather_variables(options.vars_file, options.variables),
            env_file=options.env_file,
        )

    return take_up(
        options, find, lambda kept, redactor, reports: _resume(options, kept, redactor, reports)
    )


def _in_doubt(options: ResumeOptions) -> Literal["retry", "fail", "ask"] | None:
    return parsing.one_of(options.in_doubt, IN_DOUBT, "--in-doubt")


def _resume(options: ResumeOptions, kept: KeptRun, redactor: Redactor, reports: Reports) -> int:
    from devall.app import resume

    names = [*answerable(kept), *nodes_of(kept.loaded, "human"), *nodes_of(kept.loaded, "agent")]
    answers = gather_answers(options.answers_file, options.answers, names)
    limits = parsing.parse_limits(options.max_usd, options.max_seconds)
    stage = Stage.of(kept.loaded, redactor, quiet=options.quiet, verbose=options.verbose)
    result = stage.play(
        lambda sink, human: resume(
            kept,
            answers=answers,
            again=options.again,
            in_doubt=_in_doubt(options),
            human=human,
            limits=limits,
            on_event=sink,
        ),
        reports,
    )
    conclusion = Conclusion(options.as_json, options.quiet, options.debug, redactor)
    return conclusion.write(result, reports.problems)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerOptions:
    """The options of `devall runs answer`, as they were written."""

    run_id: str
    answers: Sequence[str]
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


def answer(options: AnswerOptions) -> int:
    """Keep answers to the open questions of a run; it goes on with `devall resume`."""
    return Reporter(options.as_json, options.debug).guard(lambda: _answer(options))


def _answer(options: AnswerOptions) -> int:
    from devall.app import answer_questions
    from devall.journal.reader import Reader

    folder = logs_folder(options.logs_dir)
    with Reader(folder) as reader:
        row = reader.run(options.run_id)
    waiting = _open_ids(row.result)
    if not waiting:
        raise UsageError(f"run {row.id} has asked nothing that is still open")
    names = [name for path in waiting for name in (path, *answer_names([path]))]
    answers = parsing.parse_answers(options.answers, list(dict.fromkeys(names)))
    left = asyncio.run(answer_questions(row.id, answers, logs_dir=folder))
    command = resume_command(row.id, folder)
    if options.as_json:
        write_answer(to_line({"run_id": row.id, "open": left, "resume": command}))
        return 0
    if left:
        write_note("still open:")
        for path, name in zip(left, answer_names(left), strict=True):
            write_note(f"  {name} ({path})")
    write_answer(f"{command}\n")
    return 0


def answerable(kept: KeptRun) -> list[str]:
    """The ids of the questions that a run has left open, and the nodes that asked them."""
    waiting = _open_ids(kept.row.result)
    return [*waiting, *(name for path in waiting for name in answer_names([path]))]


def _open_ids(result: Mapping[str, JsonValue] | None) -> list[str]:
    return [each["path"] for each in (result or {}).get("waiting", ())]
