"""The composition root: the one place that chooses parts; loads workflows and runs them."""

from __future__ import annotations

import asyncio
import difflib
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from devall.config.limits import Limits
from devall.core.errors import RunCancelled, UsageError
from devall.core.events import RunFinished, RunStarted, Sink, Warned
from devall.core.messages import JsonValue, Message
from devall.core.outcome import COMPLETED, Outcome, outcome_of
from devall.core.ports import HumanChannel
from devall.edges.rules import rule_of
from devall.engine.answer import Answer, find_answer
from devall.engine.context import Parts, Run
from devall.engine.folder import run_folder
from devall.engine.result import RunResult
from devall.engine.runner import GraphRun, run_inside
from devall.graph.checked import load_workflow
from devall.graph.compile import compile_graph
from devall.graph.model import Plan
from devall.journal.base import Journal
from devall.journal.memory import MemoryJournal
from devall.loading.loader import LoadedWorkflow
from devall.models.base import ModelSource
from devall.models.prices import price_of
from devall.models.providers import Models
from devall.nodes.agent import AgentExecutor
from devall.nodes.build import Surroundings, executor_of, is_immediate
from devall.nodes.channels import GivenAnswers
from devall.nodes.crew import Crew, Overrides, check_models
from devall.nodes.task import Attachment, task_message
from devall.plugins.functions import FunctionCatalog
from devall.plugins.project import functions_for
from devall.telemetry.logs import LogLines
from devall.telemetry.redaction import Redactor, environment_secrets
from devall.telemetry.run_log import RunLog
from devall.telemetry.sinks import FanOut
from devall.tools.extra import extra_names, functions_source
from devall.tools.mcp.pool import McpServers
from devall.workspace import Workspace

__all__ = ["Answers", "Attachment", "RunResult", "load_workflow", "redactor_of", "run", "run_sync"]

Answers = Mapping[str, str | Sequence[str]]
"""By node id: one text for every time it asks, or a list of texts in order."""


async def run(
    workflow: str | Path | LoadedWorkflow,
    *,
    task: str = "",
    variables: Mapping[str, JsonValue] | None = None,
    answers: Answers | None = None,
    env_file: Path | None = None,
    functions_dir: Path | None = None,
    ex_tools: Sequence[str] = (),
    attachments: Sequence[Attachment] = (),
    models: Mapping[str, str] | None = None,
    providers: Mapping[str, str] | None = None,
    human: HumanChannel | None = None,
    limits: Limits | None = None,
    run_id: str | None = None,
    logs_dir: str | Path | None = None,
    journal: Literal["memory"] | Journal = "memory",
    on_event: Sink | None = None,
    model_source: ModelSource | None = None,
) -> RunResult:
    """Run a workflow to its end; many runs at once in one event loop do not see each other.

    Args:
        workflow: Path of the file, or what `load_workflow` gave.
        task: What the start nodes get.
        variables: Override the `vars` of the file.
        answers: What humans say, by node id: one text for every time, or a list in order.
        env_file: Read instead of the `.env` beside the file or in the working directory.
        functions_dir: The project's own functions, if they are not found upwards of the file.
        ex_tools: Tools for every agent beside those of the file, as it would name functions;
            those of the variable EX_TOOLS are added.
        attachments: Files that go with the task.
        models: Model names by node id (`S/X` in a subgraph); `''` stands for all nodes.
        providers: Providers by node id; `''` stands for all nodes.
        human: Asked when no answer was given; None = the run then waits.
        limits: Bounds of the whole run beside those of the file: the smaller one holds.
        run_id: Name of the run; None = a new one.
        logs_dir: The run writes its logs, files and attachments to a folder in there; None =
            nothing is kept, and its workspace is temporary.
        journal: Where steps are kept: `memory`, or a journal of the caller's, whose steps are
            not done again.
        on_event: Takes each event as it happens; it must return at once.
        model_source: Gives the models; None = those of the providers.

    Returns:
        How it went. Failures, limits and open questions are in the result, not raised.

    Raises:
        UsageError, ConfigError, SetupError: before anything has run.
        asyncio.CancelledError: the task was cancelled, everything is closed. Cancelled with
            "SIGINT" or "SIGTERM" as the message, it gives a result with that outcome instead.
    """
    loaded = (
        workflow
        if isinstance(workflow, LoadedWorkflow)
        else load_workflow(
            workflow, variables=variables, env_file=env_file, functions_dir=functions_dir
        )
    )
    if isinstance(journal, str) and journal != "memory":
        raise UsageError(f"unknown journal {journal!r}", hint="there is `memory`")
    plan = compile_graph(loaded.root)
    if limits is not None:
        plan = plan.tightened(limits)
    overrides = Overrides(models or {}, providers or {})
    _check_names(plan, {*overrides.models, *overrides.providers, *(answers or ())} - {""})
    source = model_source or Models(loaded.environment.values)
    async with AsyncExitStack() as stack:
        if model_source is None:
            stack.push_async_callback(_undisturbed, source.aclose)
        check_models(plan, loaded.root, source, overrides)
        functions = functions_for(loaded.path, functions_dir)
        extra = extra_names(ex_tools, loaded.environment.values)
        if extra:
            await _check_extra(extra, functions)
        name, folder = stack.enter_context(run_folder(run_id, logs_dir))
        kept = None if logs_dir is None else folder
        redactor = redactor_of(loaded)
        sinks = _sinks(plan, kept, redactor, on_event)
        stack.callback(sinks.close)
        channel = GivenAnswers(answers or {}, human)
        workspace = Workspace(folder)
        first = task_message(task, attachments, workspace)

        def assemble(graph: Plan, prefix: str) -> Parts:
            return _assemble(crew, channel, graph, prefix)

        steps = MemoryJournal() if isinstance(journal, str) else journal
        state = Run(steps, assemble, run_inside, (sinks,) if sinks else (), price_of)
        crew = Crew(
            models=source,
            functions=functions,
            extra=extra,
            human=channel,
            environment=loaded.environment.values,
            servers=McpServers(
                emit=state.emit, logs=kept and kept / "servers", redact=redactor.text
            ),
            workspace=workspace,
            overrides=overrides,
            emit=state.emit,
        )
        return await _finish(name, first, plan, loaded, state, crew, redactor, kept)


def run_sync(workflow: str | Path | LoadedWorkflow, **options: Any) -> RunResult:
    """`run` for callers without an event loop; takes what `run` takes.

    Raises:
        UsageError: an event loop runs in this thread: `await devall.run(...)` there.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run(workflow, **options))
    raise UsageError("run_sync was called inside an event loop", hint="await devall.run(...) there")


def redactor_of(loaded: LoadedWorkflow) -> Redactor:
    """What hides the secrets of a workflow and of the environment."""
    return Redactor(loaded.secrets | environment_secrets(loaded.environment.values))


async def _check_extra(names: Sequence[str], functions: FunctionCatalog) -> None:
    """Make sure, before anything runs, that the tools beside those of the file are there.

    Raises:
        SetupError: one is unknown or does not import, or two have the same name.
    """
    from devall.tools.manager import ToolManager

    async with ToolManager([functions_source(names)], functions=functions):
        pass


def _assemble(crew: Crew, channel: HumanChannel, plan: Plan, prefix: str) -> Parts:
    """The code of one run of a graph, whose nodes' names begin with `prefix`.

    Raises:
        SetupError: a function of an edge cannot be found or loaded.
    """
    around = Surroundings(channel, crew.workspace, crew.agent)
    executors = tuple(executor_of(plan, node.config, prefix, around) for node in plan.nodes)
    return Parts(
        executors=executors,
        immediate=tuple(is_immediate(node.config) for node in plan.nodes),
        rules=tuple(
            rule_of(edge, plan.places.get(edge.index, ""), crew.functions) for edge in plan.edges
        ),
        closers=tuple(each.aclose for each in executors if isinstance(each, AgentExecutor)),
    )


async def _finish(
    run_id: str,
    task: Message,
    plan: Plan,
    loaded: LoadedWorkflow,
    state: Run,
    crew: Crew,
    redactor: Redactor,
    folder: Path | None,
) -> RunResult:
    """The run itself, from its first event to its last."""
    began = time.perf_counter()
    workflow = str(loaded.path)
    names = tuple(node.id for node in plan.nodes)
    state.emit(RunStarted(run_id=run_id, workflow=workflow, task=task.text, nodes=names))
    graph: GraphRun | None = None
    outcome = COMPLETED
    exception: Exception | None = None
    by_owner: asyncio.CancelledError | None = None
    """Set where the caller cancelled its own task, and not a signal the run."""
    try:
        graph = GraphRun(state, plan)
        await graph.complete([task])
    except asyncio.CancelledError as error:
        signal = error.args[0] if error.args else None
        outcome = outcome_of(RunCancelled("SIGTERM" if signal == "SIGTERM" else "SIGINT"))
        if signal not in {"SIGINT", "SIGTERM"}:
            by_owner = error
        elif (task_here := asyncio.current_task()) is not None:
            task_here.uncancel()
    except Exception as error:  # noqa: BLE001 - every end of a run becomes its outcome
        exception = error
        outcome = outcome_of(error)
    await _undisturbed(crew.aclose)
    for summary in state.nodes.values():
        if summary.status == "running":
            summary.status = "cancelled"
    answer = Answer() if graph is None else find_answer(plan, graph.outputs)
    if outcome.status not in {"completed", "limit_reached"}:
        answer = Answer()
    elif answer.warning and outcome.status == "completed":
        state.emit(Warned(code="answer", message=answer.warning))
    result = RunResult(
        run_id=run_id,
        workflow=workflow,
        outcome=_redacted(outcome, redactor),
        answer=answer.text,
        answer_node=answer.node,
        message=answer.message,
        nodes=state.nodes,
        usage=state.ledger.usage,
        usage_by_node=state.ledger.by_node,
        usage_by_model=state.ledger.by_model,
        seconds=time.perf_counter() - began,
        warnings=tuple(redactor.text(text) for text in state.warnings),
        logs_dir=folder,
        exception=exception,
    )
    state.emit(
        RunFinished(
            run_id=run_id,
            outcome=result.outcome,
            answer=result.answer,
            usage=result.usage,
            seconds=result.seconds,
        )
    )
    if by_owner is not None:
        raise by_owner
    return result


def _redacted(outcome: Outcome, redactor: Redactor) -> Outcome:
    error = outcome.error
    if error is None:
        return outcome
    return replace(
        outcome,
        error=replace(error, message=redactor.text(error.message), hint=redactor.text(error.hint)),
    )


async def _undisturbed(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do something to its end even if the task is cancelled meanwhile."""
    task = asyncio.ensure_future(work())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


def _sinks(plan: Plan, folder: Path | None, redactor: Redactor, on_event: Sink | None) -> FanOut:
    sinks = FanOut()
    if folder is not None:
        sinks.add(RunLog(folder, redactor, hidden=tuple(_hidden(plan))))
        sinks.add(LogLines.to_file(folder, level=plan.graph.log_level, redactor=redactor))
    if on_event is not None:
        sinks.add(on_event)
    return sinks


def _hidden(plan: Plan, prefix: str = "") -> Iterator[str]:
    """Names of the nodes whose output must not stand in logs."""
    for node in plan.nodes:
        if not node.config.log_output:
            yield prefix + node.id
    for name, child in plan.subplans.items():
        yield from _hidden(child, f"{prefix}{name}/")


def _names(plan: Plan, prefix: str = "") -> Iterator[str]:
    for node in plan.nodes:
        yield prefix + node.id
    for name, child in plan.subplans.items():
        yield from _names(child, f"{prefix}{name}/")


def _check_names(plan: Plan, named: Iterable[str]) -> None:
    """Make sure that the nodes an option names are there.

    Raises:
        UsageError: one is not.
    """
    known = list(_names(plan))
    last = {name.rpartition("/")[2] for name in known}
    for name in named:
        if name not in known and name not in last:
            near = difflib.get_close_matches(name, known, 1)
            raise UsageError(
                f"there is no node {name}",
                hint=f"did you mean {near[0]}?" if near else f"nodes: {', '.join(known)}",
            )
