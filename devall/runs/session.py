"""One run from its first event to its last, with all that was chosen for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from devall.config.tools import InDoubt
from devall.core.errors import JournalError, RunCancelled, RunTakenOver
from devall.core.events import Event, NodeFailed, RunFinished, RunStarted, Sink, Warned
from devall.core.messages import Message
from devall.core.outcome import COMPLETED, ErrorReport, Outcome, outcome_of
from devall.core.ports import HumanChannel
from devall.edges.rules import rule_of
from devall.engine.answer import Answer, find_answer
from devall.engine.context import Parts, Run
from devall.engine.freshness import NO_CUTS, Cuts
from devall.engine.result import RunResult
from devall.engine.runner import GraphRun, run_inside
from devall.graph.model import Plan
from devall.graph.shape import shape_of
from devall.journal.base import Journal
from devall.loading.loader import LoadedWorkflow
from devall.models.base import ModelSource
from devall.models.prices import price_of
from devall.nodes.agent import AgentExecutor
from devall.nodes.build import Surroundings, executor_of, is_immediate
from devall.nodes.crew import Crew, Overrides
from devall.plugins.functions import FunctionCatalog
from devall.runs.lost import Attempt
from devall.telemetry.logs import LogLines
from devall.telemetry.otel.tracing import Tracing
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import RunLog
from devall.telemetry.sinks import FanOut
from devall.tools.mcp.pool import McpServers
from devall.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """What was chosen for a run."""

    run_id: str
    loaded: LoadedWorkflow
    plan: Plan
    task: Message
    """What the start nodes get."""
    workspace: Workspace
    kept: Path | None
    """The run's folder; None: it is temporary, and no logs are written."""
    journal: Journal
    models: ModelSource
    overrides: Overrides
    functions: FunctionCatalog
    human: HumanChannel
    redactor: Redactor
    extra: Sequence[str] = ()
    """Tools that every agent has beside its own, as a workflow names functions."""
    on_event: Sink | None = None
    cuts: Cuts = NO_CUTS
    """From where on the journal's steps do not count."""
    in_doubt: InDoubt | None = None
    """What is done with calls that an interrupted run left in doubt; None = as the file says."""
    remembers: bool = True
    """False: memory stores are neither read nor written; all that they gave is in the journal."""
    resumed: Event | None = None
    """Told right after the run's first event."""
    lost: Sequence[Attempt] = ()
    """Model calls of earlier processes that were charged and are in no journal."""
    is_traced: bool = True
    """False: OpenTelemetry is told nothing, whatever the environment asks for."""


async def carry_out(session: Session) -> RunResult:
    """The run itself; everything that it opened is closed when it is over.

    Raises:
        asyncio.CancelledError: the task was cancelled by its owner and not by a signal.
    """
    redactor = session.redactor
    sinks = _sinks(session)
    tracing = _tracing(session)
    if tracing:
        sinks.add(tracing)
    began = time.perf_counter()
    state = Run(
        session.journal,
        lambda plan, prefix: _assemble(session, crew, plan, prefix),
        run_inside,
        (sinks,) if sinks else (),
        price_of,
        redact=redactor.clean if redactor else None,
        cuts=session.cuts,
        hidden=frozenset(_hidden(session.plan)),
    )
    state.ledger.lose(session.lost)
    crew = Crew(
        models=session.models,
        functions=session.functions,
        extra=session.extra,
        human=session.human,
        environment=session.loaded.environment.values,
        servers=McpServers(
            emit=state.emit, logs=session.kept and session.kept / "servers", redact=redactor.text
        ),
        workspace=session.workspace,
        overrides=session.overrides,
        emit=state.emit,
        in_doubt=session.in_doubt,
        remembers=session.remembers,
        run_id=session.run_id,
    )
    try:
        state.emit(
            RunStarted(
                run_id=session.run_id,
                workflow=str(session.loaded.path),
                task=session.task.text,
                nodes=tuple(node.id for node in session.plan.nodes),
                graph=shape_of(session.plan) if sinks else None,
            )
        )
        if session.resumed is not None:
            state.emit(session.resumed)
        for text in tracing.warnings:
            state.emit(Warned(code="telemetry", message=text))
        end = await _run(state, session)
        await undisturbed(crew.aclose)
        result = _result(session, state, end, time.perf_counter() - began)
        try:
            await session.journal.finish(result.status, result.to_json())
        except JournalError as error:
            if end.by_owner is None and not isinstance(end.error, JournalError):
                end = replace(end, error=error, outcome=outcome_of(error))
                result = _result(session, state, end, result.seconds)
        finished = RunFinished(
            run_id=session.run_id,
            outcome=result.outcome,
            answer=result.answer,
            usage=result.usage,
            seconds=result.seconds,
        )
        end, trouble = await _traced(tracing, finished, end)
        if trouble:
            state.emit(Warned(code="telemetry", message=trouble))
            result = replace(result, warnings=(*result.warnings, redactor.text(trouble)))
        state.emit(replace(finished, at=time.time()))
    finally:
        await tracing.aclose()
        sinks.close()
    if end.by_owner is not None:
        raise end.by_owner
    return result


@dataclass(frozen=True, slots=True)
class _End:
    """How the graph's run ended."""

    outcome: Outcome
    graph: GraphRun | None
    error: Exception | None = None
    by_owner: asyncio.CancelledError | None = None
    """Set where the caller cancelled its own task, and not a signal the run."""


async def _run(state: Run, session: Session) -> _End:
    graph: GraphRun | None = None
    try:
        graph = GraphRun(state, session.plan)
        await graph.complete([session.task])
    except asyncio.CancelledError as error:
        signal = error.args[0] if error.args else None
        outcome = outcome_of(RunCancelled("SIGTERM" if signal == "SIGTERM" else "SIGINT"))
        return _End(outcome, graph, by_owner=None if _is_by_signal(error) else error)
    except Exception as error:  # noqa: BLE001 - every end of a run becomes its outcome
        return _End(outcome_of(error), graph, error)
    return _End(COMPLETED, graph)


def _is_by_signal(error: asyncio.CancelledError) -> bool:
    """Whether a signal ends the run, and not the owner of its task: the task goes on then."""
    if not error.args or error.args[0] not in {"SIGINT", "SIGTERM"}:
        return False
    if (task_here := asyncio.current_task()) is not None:
        task_here.uncancel()
    return True


async def _traced(tracing: Tracing, finished: RunFinished, end: _End) -> tuple[_End, str]:
    """How the run ended, and what kept its traces from being sent.

    Whoever interrupts that loses what is left of them, and nothing else.
    """
    try:
        return end, await tracing.finish(finished)
    except asyncio.CancelledError as error:
        return end if _is_by_signal(error) else replace(end, by_owner=end.by_owner or error), ""


def _result(session: Session, state: Run, end: _End, seconds: float) -> RunResult:
    redactor = session.redactor
    for summary in state.nodes.values():
        if summary.status == "running":
            summary.status = "cancelled"
    answer = Answer() if end.graph is None else find_answer(session.plan, end.graph.outputs)
    if end.outcome.status not in {"completed", "limit_reached"}:
        answer = Answer()
    elif answer.warning and end.outcome.status == "completed":
        state.emit(Warned(code="answer", message=answer.warning))
    return RunResult(
        run_id=session.run_id,
        workflow=str(session.loaded.path),
        outcome=_redacted(end.outcome, redactor),
        answer=answer.text,
        answer_node=answer.node,
        message=answer.message,
        nodes=state.nodes,
        usage=state.ledger.usage,
        usage_by_node=state.ledger.by_node,
        usage_by_model=state.ledger.by_model,
        seconds=seconds,
        warnings=tuple(redactor.text(text) for text in state.warnings),
        logs_dir=session.kept,
        exception=end.error,
    )


def _assemble(session: Session, crew: Crew, plan: Plan, prefix: str) -> Parts:
    """The code of one run of a graph, whose nodes' names begin with `prefix`.

    Raises:
        SetupError: a function of an edge cannot be found or loaded.
    """

    def around_edges() -> dict[str, Any]:
        workspace = crew.workspace
        return {
            "workspace": workspace,
            # By the names that functions written for ChatDev know:
            "python_workspace_root": workspace.files,
            "graph_directory": workspace.root,
        }

    around = Surroundings(session.human, crew.workspace, crew.agent)
    executors = tuple(executor_of(plan, node.config, prefix, around) for node in plan.nodes)
    return Parts(
        executors=executors,
        immediate=tuple(is_immediate(node.config) for node in plan.nodes),
        rules=tuple(
            rule_of(edge, plan.places.get(edge.index, ""), crew.functions, around_edges)
            for edge in plan.edges
        ),
        closers=tuple(each.aclose for each in executors if isinstance(each, AgentExecutor)),
    )


def _redacted(outcome: Outcome, redactor: Redactor) -> Outcome:
    waiting = tuple((path, redactor.text(question)) for path, question in outcome.waiting)
    outcome = replace(outcome, waiting=waiting)
    error = outcome.error
    if error is None:
        return outcome
    return replace(
        outcome,
        error=replace(error, message=redactor.text(error.message), hint=redactor.text(error.hint)),
    )


async def undisturbed(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Do something to its end even if the task is cancelled meanwhile."""
    task = asyncio.ensure_future(work())
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


class _UntilTakenOver:
    """A sink in the run's folder, which is another process's once that one has taken over."""

    def __init__(self, sink: RunLog | LogLines) -> None:
        self._sink = sink
        self.__name__ = type(sink).__name__  # said where it fails
        self._is_ours = True

    def __call__(self, event: Event, /) -> None:
        match event:
            case NodeFailed(code=RunTakenOver.code):
                self._is_ours = False
            case RunFinished(outcome=Outcome(error=ErrorReport(code=RunTakenOver.code))):
                self._is_ours = False
            case _:
                pass
        if self._is_ours:
            self._sink(event)

    def close(self) -> None:
        """Close the sink."""
        self._sink.close()


def _sinks(session: Session) -> FanOut:
    sinks = FanOut()
    if session.kept is not None:
        hidden = frozenset(_hidden(session.plan))
        log = RunLog(session.kept, session.redactor, hidden=hidden)
        sinks.add(_UntilTakenOver(log))
        level = session.plan.graph.log_level
        lines = LogLines.to_file(
            session.kept, level=level, redactor=session.redactor, hidden=hidden
        )
        sinks.add(_UntilTakenOver(lines))
    if session.on_event is not None:
        sinks.add(session.on_event)
    return sinks


def _tracing(session: Session) -> Tracing:
    if not session.is_traced:
        return Tracing()
    return Tracing.of_environment(
        session.redactor, folder=session.kept, hidden=lambda: tuple(_hidden(session.plan))
    )


def _hidden(plan: Plan, prefix: str = "", *, is_inside: bool = False) -> Iterator[str]:
    """Names of the nodes whose output must not stand in logs.

    What the nodes inside of such a subgraph say is what it says.
    """
    for node in plan.nodes:
        is_hidden = is_inside or not node.config.log_output
        if is_hidden:
            yield prefix + node.id
        if (child := plan.subplans.get(node.id)) is not None:
            yield from _hidden(child, f"{prefix}{node.id}/", is_inside=is_hidden)
