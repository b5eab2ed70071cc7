"""The composition root: the one place that chooses parts; loads workflows and runs them."""

from __future__ import annotations

import asyncio
import difflib
import os
import tempfile
import time
from collections.abc import Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from devall.config.memory import EmbeddingConfig
from devall.config.nodes import AgentNode
from devall.core.errors import RunCancelled, SetupError, UsageError
from devall.core.events import RunFinished, RunStarted, Sink, Warned
from devall.core.ids import is_run_id, new_run_id
from devall.core.messages import JsonValue, user
from devall.core.outcome import COMPLETED, Outcome, outcome_of
from devall.core.ports import HumanChannel
from devall.core.usage import Usage
from devall.edges.rules import rule_of
from devall.engine.answer import Answer, find_answer
from devall.engine.context import Parts, Run
from devall.engine.result import RunResult
from devall.engine.runner import GraphRun, run_inside
from devall.graph.compile import compile_graph
from devall.graph.model import Plan
from devall.graph.rules import check
from devall.journal.memory import MemoryJournal
from devall.loading import loader
from devall.loading.loader import LoadedGraph, LoadedWorkflow
from devall.memory.base import MemoryStore
from devall.memory.embedding import EmbeddingModel, local_model
from devall.memory.stores import memory_store
from devall.models.base import ModelChoice, ModelSource
from devall.models.prices import price_of
from devall.models.providers import WITHOUT_KEY, Models
from devall.nodes.agent import AgentExecutor, choice_of
from devall.nodes.build import Surroundings, executor_of, is_immediate
from devall.nodes.channels import GivenAnswers
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.telemetry.logs import LogLines
from devall.telemetry.redaction import Redactor, environment_secrets
from devall.telemetry.run_log import RunLog
from devall.telemetry.sinks import FanOut
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers
from devall.workspace import Workspace, private_folder

Answers = Mapping[str, str | Sequence[str]]
"""By node id: one text for every time it asks, or a list of texts in order."""

_OWN_VARIABLES = {"api_key": "API_KEY", "base_url": "BASE_URL"}
"""Variables that are looked up by provider anyway: a file may name them without their being set."""


def functions_for(workflow: Path, functions_dir: Path | None = None) -> FunctionCatalog:
    """The functions that a workflow can use: its project's own first, then those that ship.

    Args:
        workflow: The workflow file; its project's `functions` folder is looked for upwards.
        functions_dir: The folder to use instead; `DEVALL_FUNCTIONS_DIR` comes next.

    Raises:
        UsageError: the folder that was named is none.
    """
    named = functions_dir or (
        Path(text) if (text := os.environ.get("DEVALL_FUNCTIONS_DIR")) else None
    )
    if named is not None and not named.is_dir():
        raise UsageError(f"there is no folder {named} with functions")
    if named is None:
        folders = (place / "functions" for place in workflow.resolve().parents)
        named = next((folder for folder in folders if folder.is_dir()), None)
    return FunctionCatalog(named, shipped_functions())


def load_workflow(
    path: str | Path,
    *,
    variables: Mapping[str, JsonValue] | None = None,
    env_file: Path | None = None,
    functions_dir: Path | None = None,
) -> LoadedWorkflow:
    """A workflow that was read and checked; nothing has run, no server was asked.

    Args:
        path: The file.
        variables: Override the `vars` of the file.
        env_file: Read instead of the `.env` beside the file or in the working directory.
        functions_dir: The project's own functions, if they are not found upwards of the file.

    Raises:
        UsageError: there is no such file.
        ConfigError: the file is wrong; all that was found is in it.
    """
    functions = functions_for(Path(path), functions_dir)
    return loader.load_workflow(
        path,
        variables=variables,
        env_file=env_file,
        check=lambda graph: check(graph, functions),
    )


@dataclass(frozen=True, slots=True)
class _Overrides:
    """Models and providers of the command line: by node name, `''` for all nodes."""

    models: Mapping[str, str] = field(default_factory=dict[str, str])
    providers: Mapping[str, str] = field(default_factory=dict[str, str])

    def apply(self, choice: ModelChoice, node: str) -> ModelChoice:
        """The choice for a node; another provider brings its own endpoint and key."""
        provider = self.providers.get(node) or self.providers.get("")
        if provider and provider != choice.provider:
            choice = replace(choice, provider=provider, base_url=None, api_key=None)
        name = self.models.get(node) or self.models.get("")
        return replace(choice, name=name) if name else choice


@dataclass(slots=True)
class _Composition:
    """What one run is made of, as far as it is not the engine's."""

    models: ModelSource
    functions: FunctionCatalog
    servers: McpServers
    workspace: Workspace
    overrides: _Overrides
    human: HumanChannel
    owns_models: bool = True
    emit: Sink = field(default=lambda _: None)
    _stores: dict[int, dict[str, MemoryStore]] = field(
        default_factory=dict[int, dict[str, MemoryStore]]
    )

    def assemble(self, plan: Plan, prefix: str) -> Parts:
        """The code of one run of a graph, whose nodes' names begin with `prefix`.

        Raises:
            SetupError: a function of an edge cannot be found or loaded.
        """
        around = Surroundings(self.human, self.workspace, self.agent)
        executors = tuple(executor_of(plan, node.config, prefix, around) for node in plan.nodes)
        return Parts(
            executors=executors,
            immediate=tuple(is_immediate(node.config) for node in plan.nodes),
            rules=tuple(
                rule_of(edge, plan.places.get(edge.index, ""), self.functions)
                for edge in plan.edges
            ),
            closers=tuple(each.aclose for each in executors if isinstance(each, AgentExecutor)),
        )

    def agent(self, plan: Plan, node: AgentNode, name: str) -> AgentExecutor:
        """The executor of an agent node."""
        folder = plan.file.parent
        tools = None
        if node.config.tooling:
            tools = ToolManager(
                node.config.tooling,
                functions=self.functions,
                servers=self.servers,
                workspace=self.workspace,
                base=folder,
                emit=self.emit,
                node=name,
            )
        return AgentExecutor(
            node,
            models=self.models,
            choice=self.overrides.apply(choice_of(node.config), name),
            tools=tools,
            memories=self._stores_of(plan),
            attachments=self.workspace.read_attachment,
            base=folder,
        )

    def check_models(self, plan: Plan, loaded: LoadedGraph, prefix: str = "") -> None:
        """Make sure, before anything runs, that every agent's model can be had.

        Raises:
            SetupError: a provider is unknown; a key, an extra, weights or a variable is missing.
        """
        for node in plan.nodes:
            if not isinstance(node.config, AgentNode):
                continue
            written = choice_of(node.config.config)
            choice = self.overrides.apply(written, prefix + node.id)
            if choice.provider == written.provider:
                _check_variables(loaded, node.index, prefix + node.id)
            self.models.model(choice)
        for name, child in plan.subplans.items():
            self.check_models(child, loaded.subgraphs[name], f"{prefix}{name}/")

    def _stores_of(self, plan: Plan) -> Mapping[str, MemoryStore]:
        """A graph's memory stores, shared by its nodes for the whole run."""
        stores = self._stores.get(id(plan))
        if stores is None:
            stores = self._stores[id(plan)] = {
                config.name: memory_store(
                    config,
                    folder=Path.cwd(),
                    auto=Path.cwd() / "memory",
                    embedding=self._embedding,
                )
                for config in plan.graph.memory
            }
        return stores

    def _embedding(self, config: EmbeddingConfig | None) -> EmbeddingModel:
        if config is not None and config.provider != "local":
            raise SetupError(
                f"embedding provider {config.provider} is not available yet",
                hint="use `provider: local`",
            )
        model, warning = local_model()
        if warning:
            self.emit(Warned(code="embedding_fallback", message=warning))
        return model

    async def aclose(self) -> None:
        """Close servers, clients and stores."""
        async with AsyncExitStack() as stack:
            for stores in self._stores.values():
                for store in stores.values():
                    stack.push_async_callback(store.aclose)
            if self.owns_models:
                stack.push_async_callback(self.models.aclose)
            stack.push_async_callback(self.servers.aclose)


def _check_variables(loaded: LoadedGraph, index: int, node: str) -> None:
    for path, variable, position in loaded.missing_variables:
        if path[:2] == ("nodes", index) and _OWN_VARIABLES.get(str(path[-1])) != variable:
            raise SetupError(
                f"node {node}: variable {variable} is not set ({position})",
                hint=f"set it in the environment or in .env, {WITHOUT_KEY}",
            )


async def run(
    workflow: str | Path | LoadedWorkflow,
    *,
    task: str = "",
    variables: Mapping[str, JsonValue] | None = None,
    answers: Answers | None = None,
    env_file: Path | None = None,
    functions_dir: Path | None = None,
    models: Mapping[str, str] | None = None,
    providers: Mapping[str, str] | None = None,
    human: HumanChannel | None = None,
    run_id: str | None = None,
    logs_dir: str | Path | None = None,
    journal: Literal["memory"] = "memory",
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
        models: Model names by node id (`S/X` in a subgraph); `''` stands for all nodes.
        providers: Providers by node id; `''` stands for all nodes.
        human: Asked when no answer was given; None = the run then waits.
        run_id: Name of the run; None = a new one.
        logs_dir: The run writes its logs, files and attachments to a folder in there; None =
            nothing is kept, and its workspace is temporary.
        journal: Where steps are kept.
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
    if journal != "memory":
        raise UsageError(f"unknown journal {journal!r}", hint="there is `memory`")
    plan = compile_graph(loaded.root)
    composition = _Composition(
        models=model_source or Models(loaded.environment.values),
        owns_models=model_source is None,
        functions=functions_for(loaded.path, functions_dir),
        servers=McpServers(),
        workspace=Workspace(Path()),
        overrides=_Overrides(models or {}, providers or {}),
        human=GivenAnswers(answers or {}, human),
    )
    try:
        _check_names(plan, {*(models or ()), *(providers or ()), *(answers or ())} - {""})
        composition.check_models(plan, loaded.root)
        with _folder(run_id, logs_dir) as (name, folder):
            composition.workspace = Workspace(folder)
            kept = None if logs_dir is None else folder
            sinks = _sinks(plan, kept, redactor_of(loaded), on_event)
            try:
                return await _run(name, task, plan, loaded, composition, sinks, kept)
            finally:
                sinks.close()
    finally:
        await _undisturbed(composition.aclose())


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


async def _run(
    run_id: str,
    task: str,
    plan: Plan,
    loaded: LoadedWorkflow,
    composition: _Composition,
    sinks: FanOut,
    folder: Path | None,
) -> RunResult:
    """The run itself, from its first event to its last."""
    redactor = redactor_of(loaded)
    state = Run(
        run_id,
        MemoryJournal(),
        (sinks,) if sinks else (),
        composition.assemble,
        run_inside,
        price_of,
    )
    composition.emit = state.emit
    began = time.perf_counter()
    workflow = str(loaded.path)
    names = tuple(node.id for node in plan.nodes)
    state.emit(RunStarted(run_id=run_id, workflow=workflow, task=task, nodes=names))
    graph: GraphRun | None = None
    outcome = COMPLETED
    try:
        graph = GraphRun(state, plan)
        await graph.complete([user(task)])
    except asyncio.CancelledError as error:
        outcome = _cancelled(error)
    except Exception as error:  # noqa: BLE001 - every end of a run becomes its outcome
        outcome = outcome_of(error)
    await _undisturbed(composition.aclose())
    for summary in state.nodes.values():
        if summary.status == "running":
            summary.status = "cancelled"
    answer = Answer() if graph is None else find_answer(plan, graph.outputs)
    if outcome.status != "completed":
        answer = Answer()
    elif answer.warning:
        state.emit(Warned(code="answer", message=answer.warning))
    result = RunResult(
        run_id=run_id,
        workflow=workflow,
        outcome=_redacted(outcome, redactor),
        answer=answer.text,
        answer_node=answer.node,
        message=answer.message,
        nodes=state.nodes,
        usage=Usage() if graph is None else graph.meter.usage,
        seconds=time.perf_counter() - began,
        warnings=tuple(redactor.text(text) for text in state.warnings),
        logs_dir=folder,
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
    return result


def _cancelled(error: asyncio.CancelledError) -> Outcome:
    """The outcome of a run that a signal ended; any other cancelling goes on.

    Raises:
        asyncio.CancelledError: the run's task was cancelled by its owner.
    """
    signal = error.args[0] if error.args else None
    if signal not in ("SIGINT", "SIGTERM"):
        raise error
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()
    return outcome_of(RunCancelled(signal))


def _redacted(outcome: Outcome, redactor: Redactor) -> Outcome:
    error = outcome.error
    if error is None:
        return outcome
    return replace(
        outcome,
        error=replace(error, message=redactor.text(error.message), hint=redactor.text(error.hint)),
    )


async def _undisturbed(work: Coroutine[Any, Any, None]) -> None:
    """Do something to its end even if the task is cancelled meanwhile."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise


@contextmanager
def _folder(run_id: str | None, logs_dir: str | Path | None) -> Generator[tuple[str, Path]]:
    """The run's name and its folder; a folder that is not to be kept is gone afterwards.

    Raises:
        UsageError: the name is no name for a folder, or is taken.
    """
    name = new_run_id() if run_id is None else run_id
    if not is_run_id(name):
        raise UsageError(
            f"run id {name!r} is not possible",
            hint="letters, digits, `.`, `_` and `-`, at most 100, beginning with a letter or digit",
        )
    if logs_dir is None:
        with tempfile.TemporaryDirectory(prefix="devall-") as temporary:
            yield name, Path(temporary)
        return
    place = Path(logs_dir) / name
    try:
        private_folder(place.parent)
        place.mkdir(mode=0o700)
    except FileExistsError:
        raise UsageError(
            f"there is a run {name} in {logs_dir} already", hint="choose another --run-id"
        ) from None
    except OSError as error:
        raise UsageError(
            f"{place} cannot be made: {error.strerror}", hint="choose another --logs-dir"
        ) from error
    yield name, place


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
