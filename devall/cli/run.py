"""`devall run`: from the options to the answer on standard output."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli import options as parsing
from devall.cli.failures import Reporter, error_text, to_line, traceback_text
from devall.cli.inputs import (
    answering_nodes,
    gather_answers,
    gather_variables,
    load,
    needs_task,
    nodes_of,
)
from devall.cli.interruption import Interruption
from devall.cli.questions import TerminalHuman, can_ask, read_answer
from devall.cli.reports import KINDS, UNWRITTEN, Reports, parse_targets
from devall.cli.streams import clean, write_answer, write_note
from devall.cli.views import choose_view
from devall.cli.words import count, duration, money
from devall.core.errors import UsageError
from devall.core.ids import node_of
from devall.core.messages import JsonValue
from devall.telemetry.redaction import SHORTEST_IN_ANSWERS, Redactor

if TYPE_CHECKING:
    from devall.engine.result import RunResult
    from devall.loading.loader import LoadedWorkflow

LOGS_DIR = "logs"
"""Where runs keep their files, unless `--logs-dir` or DEVALL_LOGS_DIR says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of `devall run`, as they were written."""

    file: Path
    dash: str | None = None
    task: str | None = None
    task_file: Path | None = None
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
    as_json: bool = False
    quiet: bool = False
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
    from devall.app import run

    humans, agents = nodes_of(loaded, "human"), nodes_of(loaded, "agent")
    answers = gather_answers(options.answers_file, options.answers, humans)
    models = parsing.parse_choices(options.models, agents, "--model")
    providers = parsing.parse_choices(options.providers, agents, "--provider")
    limits = parsing.parse_limits(options.max_usd, options.max_seconds)
    view = choose_view(quiet=options.quiet, redactor=redactor, answering=answering_nodes(loaded))
    interruption = Interruption(view.note)
    task = find_task(options, loaded, interruption)
    if not options.quiet:
        warn(loaded, redactor)
    try:
        result = interruption.run(
            run(
                loaded,
                task=task,
                variables=variables,
                answers=answers,
                env_file=options.env_file,
                functions_dir=options.functions_dir,
                ex_tools=options.ex_tools,
                models=models,
                providers=providers,
                human=TerminalHuman(view, redactor) if can_ask() else None,
                limits=limits,
                run_id=options.run_id,
                logs_dir=options.logs_dir or os.environ.get("DEVALL_LOGS_DIR") or LOGS_DIR,
                on_event=reports.beside(view),
            )
        )
    finally:
        view.close()
    reports.finish(result, loaded, redactor)
    return conclude(result, options, redactor, reports.problems)


def warn(loaded: LoadedWorkflow, redactor: Redactor) -> None:
    """Say what is doubtful about the file."""
    if loaded.warnings:
        from devall.cli.failures import diagnostics_text

        write_note(redactor.text(diagnostics_text(loaded.warnings)) + "\n")


def conclude(
    result: RunResult, options: RunOptions, redactor: Redactor, unwritten: Sequence[str] = ()
) -> int:
    """Say how the run went and print its answer; the exit code.

    Args:
        result: The run.
        options: Those of the command.
        redactor: What takes the secrets out.
        unwritten: Reports that were asked for and could not be written: a run that completed
            is no success then.
    """
    code = UNWRITTEN if unwritten and result.exit_code == 0 else result.exit_code
    is_good = result.status == "completed"
    if not is_good or not options.quiet:
        write_note(redactor.text(closing_words(result, options)))
    spared = redactor.at_least(SHORTEST_IN_ANSWERS)
    if options.as_json:
        found = result.to_json()
        found["answer"] = spared.value(found["answer"])
        found["exit_code"] = code
        found["warnings"] += unwritten
        write_answer(to_line(found))
    elif is_good and result.answer is not None:
        answer = spared.text(result.answer)
        write_answer(answer if answer.endswith("\n") else answer + "\n")
    return code


def closing_words(result: RunResult, options: RunOptions) -> str:
    """What is said at the end: the error or the open questions, or the totals."""
    lines: list[str] = []
    if result.status == "waiting":
        lines += _open_questions(result, options)
    elif result.error is not None:
        if options.debug and result.exception is not None:
            lines.append(traceback_text(result.exception))
        lines.append(error_text(result.error, debug=options.debug))
    if options.quiet:
        return "\n".join(lines)
    lines += [f"warning: {warning}" for warning in result.warnings]
    lines.append(_totals(result))
    return "\n".join(lines)


def _totals(result: RunResult) -> str:
    usage = result.usage
    parts = [
        f"{result.status.replace('_', ' ')} in {duration(result.seconds)}",
        count(usage.model_calls, "model call"),
    ]
    if usage.tool_calls:
        parts.append(count(usage.tool_calls, "tool call"))
    if usage.tokens:
        at_least = "at least " if usage.unknown_calls else ""
        parts.append(f"{at_least}{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
    if usage.usd != 0 or usage.unpriced_calls:
        parts.append(money(usage))
    if result.logs_dir is not None:
        parts.append(f"logs: {result.logs_dir}")
    return " · ".join(parts)


def _open_questions(result: RunResult, options: RunOptions) -> Iterator[str]:
    import shlex

    yield "waiting for a human:"
    for path, question in result.waiting:
        yield f"  {node_of(path)}: {question or '(no question is written)'}"
    nodes = dict.fromkeys(node_of(path) for path, _ in result.waiting)
    given = " ".join(f"--answer {shlex.quote(node + '=TEXT')}" for node in nodes)
    file = shlex.quote(str(options.file))
    yield f"  hint: run it again with the answer: devall run {file} ... {given}"


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
    if not needs_task(loaded.root):
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
