"""`devall run`: from the options to the answer on standard output."""

from __future__ import annotations

import gc
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from devall.cli import options as parsing
from devall.cli.conclusion import Conclusion
from devall.cli.failures import Reporter
from devall.cli.inputs import (
    gather_answers,
    gather_variables,
    load,
    logs_folder,
    needs_task,
    nodes_of,
)
from devall.cli.interruption import Interruption
from devall.cli.questions import can_ask, read_answer
from devall.cli.reports import KINDS, Reports, parse_targets
from devall.cli.stage import Stage
from devall.cli.streams import clean, write_note
from devall.core.errors import UsageError
from devall.core.messages import JsonValue
from devall.telemetry.redaction import Redactor

if TYPE_CHECKING:
    from devall.loading.loader import LoadedWorkflow


JOURNALS: tuple[Literal["sqlite"], Literal["memory"]] = ("sqlite", "memory")
DURABILITIES: tuple[Literal["normal"], Literal["full"]] = ("normal", "full")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `devall run`, as they were written."""

    file: Path
    dash: str | None = None
    task: str | None = None
    task_file: Path | None = None
    attach: Sequence[Path] = ()
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    answers: Sequence[str] = ()
    answers_file: Path | None = None
    models: Sequence[str] = ()
    providers: Sequence[str] = ()
    functions_dir: Path | None = None
    ex_tools: Sequence[str] = ()
    run_id: str | None = None
    logs_dir: Path | None = None
    reports: Sequence[str] = ()
    max_usd: float | None = None
    max_seconds: float | None = None
    journal: str | None = None
    durability: str | None = None
    as_json: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False


def execute(options: RunOptions) -> int:
    """Run the workflow and print its answer; the exit code."""
    reporter = Reporter(options.as_json, options.debug, str(options.file))
    return reporter.guard(lambda: _execute(options))


def _execute(options: RunOptions) -> int:
    if options.dash not in {None, "-"}:
        raise UsageError(
            f"unexpected argument {options.dash!r} behind the file",
            hint=f"a task is given with --task {options.dash!r}, or `-` for standard input",
        )
    reports = Reports(parse_targets(options.reports, KINDS))
    with reports.of_failure(str(options.file)):
        return _load_and_run(options, reports)


def _load_and_run(options: RunOptions, reports: Reports) -> int:
    parsing.only_one(
        (
            ("--task", options.task is not None),
            ("--task-file", options.task_file is not None),
            ("-", options.dash is not None),
        )
    )
    variables = gather_variables(options.vars_file, options.variables)
    loaded = load(options.file, variables, options.env_file, options.functions_dir)
    from devall.app import redactor_of

    redactor = redactor_of(loaded)
    reporter = Reporter(options.as_json, options.debug, str(options.file), redactor)
    # Imports and the workflow stay to the end: no collection need look through them.
    gc.freeze()
    gc.enable()  # see devall.__main__

    def work() -> int:
        with reports.of_failure(str(options.file), redactor):
            return _run(options, loaded, variables, redactor, reports)

    return reporter.guard(work)


def _run(
    options: RunOptions,
    loaded: LoadedWorkflow,
    variables: Mapping[str, JsonValue],
    redactor: Redactor,
    reports: Reports,
) -> int:
    from devall.app import Attachment, run

    attachments = [Attachment.of_file(path) for path in options.attach]

    humans, agents = nodes_of(loaded, "human"), nodes_of(loaded, "agent")
    answers = gather_answers(options.answers_file, options.answers, humans)
    models = parsing.parse_choices(options.models, agents, "--model")
    providers = parsing.parse_choices(options.providers, agents, "--provider")
    limits = parsing.parse_limits(options.max_usd, options.max_seconds)
    journal = parsing.one_of(options.journal, JOURNALS, "--journal") or "sqlite"
    durability = parsing.one_of(options.durability, DURABILITIES, "--durability") or "normal"
    stage = Stage.of(loaded, redactor, quiet=options.quiet, verbose=options.verbose)
    task = find_task(options, loaded, stage.interruption)
    if not options.quiet:
        warn(loaded, redactor)
    result = stage.play(
        lambda sink, human: run(
            loaded,
            task=task,
            variables=variables,
            answers=answers,
            env_file=options.env_file,
            functions_dir=options.functions_dir,
            ex_tools=options.ex_tools,
            attachments=attachments,
            models=models,
            providers=providers,
            human=human,
            limits=limits,
            run_id=options.run_id,
            logs_dir=logs_folder(options.logs_dir),
            journal=journal,
            durability=durability,
            on_event=sink,
        ),
        reports,
    )
    conclusion = Conclusion(
        options.as_json, options.quiet, options.debug, redactor, journal == "sqlite"
    )
    return conclusion.write(result, reports.problems)


def warn(loaded: LoadedWorkflow, redactor: Redactor) -> None:
    """Say what is doubtful about the file."""
    if loaded.warnings:
        from devall.cli.failures import diagnostics_text

        write_note(redactor.text(diagnostics_text(loaded.warnings)) + "\n")


def find_task(options: RunOptions, loaded: LoadedWorkflow, interruption: Interruption) -> str:
    """The task: as given, from a file, from standard input, or from the person there.

    Raises:
        UsageError: there is none, and the workflow needs one.
    """
    if options.task is not None:
        return options.task
    if options.task_file is not None and str(options.task_file) != "-":
        return parsing.read_text(options.task_file, "--task-file").rstrip("\r\n")
    if options.task_file is not None or options.dash is not None:
        return _read_standard_input()
    graph = loaded.root.config
    if options.attach or not needs_task(loaded.root):
        return ""
    if can_ask():
        text = graph.initial_instruction or graph.description or "What is the task?"
        write_note(clean(text))
        if task := interruption.run(read_answer("task> ")):
            return task
    instruction = graph.initial_instruction.strip()
    raise UsageError(
        "this workflow needs a task" + (f" ({instruction})" if instruction else ""),
        hint="give it with --task TEXT, --task-file PATH, or `-` to read standard input",
    )


def _read_standard_input() -> str:
    if sys.stdin is None:
        raise UsageError("standard input is closed", hint="give the task with --task TEXT")
    data = sys.stdin.buffer.read()
    return parsing.decode(data, "standard input").rstrip("\r\n")
