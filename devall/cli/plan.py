"""`devall plan`: what a run will do and at most cost, before it begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli import options as parsing
from devall.cli.bound import redactor_for
from devall.cli.failures import Reporter, error_text, to_line
from devall.cli.inputs import gather_variables, load, logs_folder, needs_task, nodes_of
from devall.cli.interruption import Interruption
from devall.cli.run import warn
from devall.cli.streams import write_answer, write_note
from devall.core.errors import LimitReached, UsageError
from devall.core.messages import JsonValue, user
from devall.core.outcome import ErrorReport

if TYPE_CHECKING:
    from devall.core.messages import Message
    from devall.estimates.bounds import Bound
    from devall.estimates.values import GraphValue
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOptions:
    """The options of `devall plan`, as they were written."""

    file: Path
    task: str | None = None
    task_file: Path | None = None
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    models: Sequence[str] = ()
    providers: Sequence[str] = ()
    functions_dir: Path | None = None
    ex_tools: Sequence[str] = ()
    logs_dir: Path | None = None
    units: int | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    max_seconds: float | None = None
    as_json: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Exceeded:
    """A bound of the command line that the worst case may go over."""

    option: str
    bound: float
    worst: float | None
    message: str
    hint: str
    exit_code: int


def execute(options: PlanOptions) -> int:
    """Print the plan; the exit code."""

    def begin() -> int:
        parsing.only_one(
            (("--task", options.task is not None), ("--task-file", options.task_file is not None))
        )
        if options.units is not None and options.units < 1:
            raise UsageError(
                f"--units {options.units} is no number of units", hint="give 1 or more"
            )
        if options.max_tokens is not None and options.max_tokens < 0:
            raise UsageError(f"--max-tokens {options.max_tokens} bounds nothing")
        parsing.parse_limits(options.max_usd, options.max_seconds)
        variables = gather_variables(options.vars_file, options.variables)
        loaded = load(options.file, variables, options.env_file, options.functions_dir)
        redactor = redactor_for(loaded)
        reporter = Reporter(options.as_json, options.debug, str(options.file), redactor)
        return reporter.guard(lambda: _execute(options, loaded, redactor))

    return Reporter(options.as_json, options.debug, str(options.file)).guard(begin)


def _execute(options: PlanOptions, loaded: LoadedWorkflow, redactor: Redactor) -> int:
    from devall.cli.plan_facts import gather
    from devall.estimates.estimate import estimate
    from devall.graph.compile import compile_graph
    from devall.nodes.crew import Overrides

    agents = nodes_of(loaded, "agent")
    overrides = Overrides(
        parsing.parse_choices(options.models, agents, "--model"),
        parsing.parse_choices(options.providers, agents, "--provider"),
    )
    task = _task(options, loaded)
    warn(loaded, redactor)
    facts = Interruption(write_note).run(
        gather(
            loaded,
            task=task,
            overrides=overrides,
            ex_tools=options.ex_tools,
            functions_dir=options.functions_dir,
            units=options.units,
            logs=logs_folder(options.logs_dir),
        )
    )
    found = estimate(compile_graph(loaded.root), facts)
    exceeded = list(_exceeded(options, found))
    code = max((each.exit_code for each in exceeded if each.option == "--max-usd"), default=0)
    code = code or max((each.exit_code for each in exceeded), default=0)
    from devall.cli.plan_text import notes, page

    if options.as_json:
        told = _object(options, found, task, exceeded, code) | {"notes": notes(found)}
        write_answer(to_line(redactor.value(told)))
    else:
        text = "\n".join(page(str(options.file), found, is_task_known=task is not None))
        write_answer(redactor.text(text) + "\n")
    for each in exceeded:
        report = ErrorReport(LimitReached.code, each.message, hint=each.hint)
        write_note(redactor.text(error_text(report)))
    return code


def _task(options: PlanOptions, loaded: LoadedWorkflow) -> Message | None:
    """The task; None: not given, and the workflow needs one."""
    if options.task is not None:
        return user(options.task)
    if options.task_file is not None:
        return user(parsing.read_text(options.task_file, "--task-file").rstrip("\r\n"))
    return None if needs_task(loaded.root) else user("")


def _exceeded(options: PlanOptions, found: GraphValue) -> Iterator[Exceeded]:
    """The bounds of the command line that the worst case may go over."""
    from devall.cli.plan_words import (
        UNKNOWN,
        money_at_most,
        remedies,
        time_at_most,
        tokens_at_most,
    )

    wanted: list[tuple[str, str, float | None, Bound, str]] = [
        ("--max-usd", "max_usd", options.max_usd, found.cost.usd, money_at_most(found.cost.usd)),
        (
            "--max-tokens",
            "max_tokens",
            options.max_tokens,
            found.cost.tokens,
            f"{tokens_at_most(found.cost.tokens)} tokens",
        ),
        (
            "--max-seconds",
            "max_seconds",
            options.max_seconds,
            found.seconds,
            time_at_most(found.seconds),
        ),
    ]
    for option, key, bound, worst, shown in wanted:
        if bound is None or (worst.value is not None and worst.value <= bound):
            continue
        code = LimitReached(key, bound).exit_code
        if worst.value is None:
            why = "; ".join(remedies(worst)[:3])
            text = f"the worst case has no bound, and {option} is {bound:g}"
            if shown == UNKNOWN:
                text = f"nobody knows what the worst case costs, and {option} is {bound:g}"
            yield Exceeded(option, bound, None, text, why, code)
        else:
            text = f"the worst case is {shown}, more than {option} {bound:g}"
            hint = f"`limits: {{{key}: {bound:g}}}` on `graph` holds every run to it"
            yield Exceeded(option, bound, worst.value, text, hint, code)


def _object(
    options: PlanOptions,
    found: GraphValue,
    task: Message | None,
    exceeded: Sequence[Exceeded],
    code: int,
) -> dict[str, JsonValue]:
    from devall.cli.plan_object import Shown, largest_object, node_object
    from devall.estimates.texts import estimated

    shown = Shown()
    shown.graph(found)
    nodes = found.all_nodes()
    return {
        "exit_code": code,
        "workflow": str(options.file),
        "task_tokens": None if task is None else estimated([task]),
        "graphs": shown.graphs,
        "loops": shown.loops,
        "nodes": [node_object(node) for node in nodes],
        "humans": [node.name for node in nodes if node.type == "human"],
        "largest_call": largest_object(found),
        "exceeded": [
            {
                "option": each.option,
                "bound": each.bound,
                "worst": each.worst,
                "message": each.message,
            }
            for each in exceeded
        ],
    }
