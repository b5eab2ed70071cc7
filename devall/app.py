"""The composition root: the one place that chooses parts; loads workflows and runs them."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from devall.config.limits import Limits
from devall.config.tools import InDoubt
from devall.core.errors import UsageError
from devall.core.events import RunResumed, Sink
from devall.core.messages import JsonValue, from_json, to_json
from devall.core.ports import HumanChannel
from devall.engine.folder import run_folder
from devall.engine.freshness import Cuts
from devall.engine.result import RunResult
from devall.graph.checked import load_workflow
from devall.graph.digests import digests, following
from devall.journal.base import Journal
from devall.journal.memory import MemoryJournal
from devall.journal.recording import Recording
from devall.loading.loader import LoadedWorkflow
from devall.models.base import ModelSource
from devall.models.providers import Models
from devall.models.recorded import RecordedModels
from devall.nodes.channels import GivenAnswers
from devall.nodes.crew import Overrides
from devall.nodes.task import Attachment, AttachmentLike, task_message
from devall.runs.kept import KeptRun
from devall.runs.lost import lost_attempts
from devall.runs.parts import Parts
from devall.runs.questions import answer_open, fits, has_doubts, question_id
from devall.runs.session import Session, carry_out, undisturbed
from devall.runs.settings import (
    Answers,
    Durability,
    Settings,
    given_limits,
    recorded_environment,
)
from devall.telemetry.redaction import Redactor, environment_secrets
from devall.workspace import Workspace, copy_files, private_folder

__all__ = [
    "Answers",
    "Attachment",
    "KeptRun",
    "RunResult",
    "answer_questions",
    "load_workflow",
    "redactor_of",
    "replay",
    "resume",
    "run",
    "run_sync",
]


async def run(
    workflow: str | Path | LoadedWorkflow,
    *,
    task: str = "",
    variables: Mapping[str, JsonValue] | None = None,
    answers: Answers | None = None,
    env_file: Path | None = None,
    functions_dir: Path | None = None,
    ex_tools: Sequence[str] = (),
    attachments: Sequence[AttachmentLike] = (),
    models: Mapping[str, str] | None = None,
    providers: Mapping[str, str] | None = None,
    human: HumanChannel | None = None,
    limits: Limits | None = None,
    run_id: str | None = None,
    logs_dir: str | Path | None = None,
    journal: Literal["sqlite", "memory"] | Journal | None = None,
    durability: Durability = "normal",
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
        attachments: Files that go with the task: paths, or `devall.Attachment`s.
        models: Model names by node id (`S/X` in a subgraph); `''` stands for all nodes.
        providers: Providers by node id; `''` stands for all nodes.
        human: Asked when no answer was given; None = the run then waits.
        limits: Bounds of the whole run beside those of the file: the smaller one holds.
        run_id: Name of the run; None = a new one.
        logs_dir: The run writes its logs, files and attachments to a folder in there; None =
            nothing is kept, and its workspace is temporary.
        journal: Where steps are kept: `sqlite` in the file `devall.db` of `logs_dir`, `memory`,
            or a journal of the caller's, whose steps are not done again; None = `sqlite` where
            there is a `logs_dir`, else `memory`.
        durability: `full`: what is kept outlives a power cut too, and not only the process.
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
    if isinstance(journal, str) and journal not in {"sqlite", "memory"}:
        raise UsageError(f"unknown journal {journal!r}", hint="there are `sqlite` and `memory`")
    if journal == "sqlite" and logs_dir is None:
        raise UsageError("journal `sqlite` needs a `logs_dir`")
    async with AsyncExitStack() as stack:
        overrides = Overrides(models or {}, providers or {})
        parts = Parts(loaded, overrides, functions_dir, ex_tools)
        source = await parts.checked(stack, model_source, answers or ())
        name, folder = stack.enter_context(run_folder(run_id, logs_dir))
        redactor = redactor_of(loaded)
        workspace = Workspace(folder, redactor.data)
        first = task_message(task, attachments, workspace)
        steps: Journal
        if journal is not None and not isinstance(journal, str):
            steps = journal
        elif logs_dir is None or journal == "memory":
            steps = MemoryJournal()
        else:
            from devall.journal.sqlite import NewRun, shared_store

            store = await stack.enter_async_context(shared_store(folder.parent))
            new = NewRun(
                id=name,
                workflow=str(loaded.path.resolve()),
                task=to_json(first),
                settings=Settings(
                    variables=variables or {},
                    answers=answers or {},
                    overrides=overrides,
                    env_file=env_file,
                    functions_dir=functions_dir,
                    ex_tools=ex_tools,
                    durability=durability,
                    environment=recorded_environment(loaded),
                    limits=given_limits(limits),
                ).to_json(),
                sources=loaded.texts,
                nodes=digests(parts.plan, redactor.value),
            )
            steps = await store.begin(new, redactor.clean, durability)
            stack.push_async_callback(undisturbed, steps.aclose)
        return await carry_out(
            Session(
                run_id=name,
                loaded=loaded,
                plan=parts.plan if limits is None else parts.plan.tightened(limits),
                task=first,
                workspace=workspace,
                kept=None if logs_dir is None else folder,
                journal=steps,
                models=source,
                overrides=overrides,
                functions=parts.functions,
                human=GivenAnswers(answers or {}, human),
                redactor=redactor,
                extra=parts.extra,
                on_event=on_event,
            )
        )


async def resume(
    run_id: str | KeptRun,
    *,
    logs_dir: str | Path = "logs",
    answers: Answers | None = None,
    again: Sequence[str] = (),
    in_doubt: InDoubt | None = None,
    variables: Mapping[str, JsonValue] | None = None,
    env_file: Path | None = None,
    human: HumanChannel | None = None,
    limits: Limits | None = None,
    on_event: Sink | None = None,
    model_source: ModelSource | None = None,
) -> RunResult:
    """Go on with a run that was interrupted, waits for a human, failed or reached a limit.

    What was done is taken from the journal: no finished call of a model or tool is made again,
    and the answer is that of an uninterrupted run. Where the file was edited in between, the
    nodes that were changed run again, and those that come after them.

    Args:
        run_id: The run; a beginning will do that fits one only; `last` is the newest. Or a run
            that was found already.
        logs_dir: The folder of all runs.
        answers: Answers to open questions and to later ones: by node id, or by the id of a
            question; one text for every time, or a list in order.
        again: Nodes that run again in any case, and with them what comes after.
        in_doubt: What is done with tool calls that were under way and may have been done:
            `retry`, `fail` or `ask`; None = what their source says, else `fail`.
        variables: Override the `vars` of the file and those that the run was started with.
        env_file: Read instead of the one that the run was started with.
        human: Asked when no answer was given; None = the run then waits.
        limits: Bounds of the whole run beside those of the file, in place of those that it was
            started with; what was used before counts.
        on_event: Takes each event as it happens.
        model_source: Gives the models; None = those of the providers.

    Raises:
        UsageError: there is no such run, or it is alive in another process.
        ConfigError, SetupError: as for `run`.
        asyncio.CancelledError: as for `run`.
    """
    kept = (
        run_id
        if isinstance(run_id, KeptRun)
        else KeptRun.find(run_id, Path(logs_dir), variables=variables, env_file=env_file)
    )
    folder, row, started, loaded = kept.folder, kept.row, kept.settings, kept.loaded
    redactor = redactor_of(loaded)
    from devall.journal.sqlite import shared_store

    async with AsyncExitStack() as stack:
        parts = Parts(loaded, started.overrides, started.functions_dir, started.ex_tools)
        source = await parts.checked(stack, model_source, again)
        store = await stack.enter_async_context(shared_store(folder))
        journal = await store.take_over(
            row.id,
            nodes=digests(parts.plan, redactor.value),
            again=[name for each in again for name in parts.full_names(each)],
            settings=replace(
                started,
                variables={**started.variables, **(variables or {})},
                env_file=env_file or started.env_file,
                environment=recorded_environment(loaded),
            ).to_json(),
            sources=loaded.texts,
            redact=redactor.clean,
            durability=started.durability,
        )
        stack.push_async_callback(undisturbed, journal.aclose)
        later = await answer_open(journal, answers or {})
        parts.check_names(later)
        given = {**started.answers_left(journal.done("human")), **later}
        changed = journal.changed
        return await carry_out(
            Session(
                run_id=row.id,
                loaded=loaded,
                plan=parts.plan.tightened(started.limits_with(limits)),
                task=from_json(row.task),
                workspace=Workspace(private_folder(folder / row.id), redactor.data),
                kept=folder / row.id,
                journal=journal,
                models=source,
                overrides=parts.overrides,
                functions=parts.functions,
                human=GivenAnswers(given, human),
                redactor=redactor,
                extra=parts.extra,
                on_event=on_event,
                cuts=Cuts(journal.cuts),
                in_doubt=in_doubt or ("ask" if has_doubts(journal) else None),
                lost=lost_attempts(folder / row.id),
                resumed=RunResumed(
                    run_id=row.id,
                    turn=journal.epoch,
                    kept=journal.kept,
                    changed=changed,
                    following=tuple(following(parts.plan, set(changed))),
                ),
            )
        )


async def replay(
    run_id: str | KeptRun,
    *,
    logs_dir: str | Path = "logs",
    live: Sequence[str] = (),
    changes: Mapping[str, JsonValue] | None = None,
    answers: Answers | None = None,
    human: HumanChannel | None = None,
    limits: Limits | None = None,
    on_event: Sink | None = None,
    model_source: ModelSource | None = None,
) -> RunResult:
    """Run a run of the journal again: the same events and the same answer, and nothing is called.

    No model, tool, server or human is asked, no key is needed, no memory and no file is touched.
    A request that is not in the recording ends the replay with `NotRecorded`, which names the
    nearest one and how they differ; it never goes to the network.

    Args:
        run_id: The run; a beginning will do that fits one only; `last` is the newest. Or a run
            that was found already.
        logs_dir: The folder of all runs.
        live: Nodes whose calls are made anew all the same; `writer+`: and those of whatever
            follows it. The replay is then kept as a run of its own.
        changes: Values of the file that are others than in the recording, by path:
            `nodes.writer.config.role`.
        answers: What humans say to live nodes, as for `run`.
        human: Asked by live nodes when no answer was given.
        limits: Bounds of the whole run beside those of the file.
        on_event: Takes each event as it happens.
        model_source: Gives the models of live nodes; None = those of the providers.

    Raises:
        UsageError: there is no such run, node or path.
        ConfigError: the file is wrong by the changes.
        asyncio.CancelledError: as for `run`.
    """
    kept = (
        run_id if isinstance(run_id, KeptRun) else KeptRun.recorded(run_id, Path(logs_dir), changes)
    )
    row, started, loaded = kept.row, kept.settings, kept.loaded
    redactor = redactor_of(loaded)
    parts = Parts(loaded, started.overrides, started.functions_dir, started.ex_tools)
    cuts = _cuts(parts, live)
    async with AsyncExitStack() as stack:
        source = RecordedModels()
        into: Journal | None = None
        name, folder = stack.enter_context(run_folder(None, kept.folder if live else None))
        if live:
            from devall.journal.sqlite import NewRun, shared_store

            source = RecordedModels(model_source or Models(loaded.environment.values))
            copy_files(kept.folder / row.id, folder)
            store = await stack.enter_async_context(shared_store(kept.folder))
            new = NewRun(
                id=name,
                workflow=row.workflow,
                task=row.task,
                settings=replace(started, replay_of=row.id).to_json(),
                sources=loaded.texts,
                nodes=digests(parts.plan, redactor.value),
            )
            into = await store.begin(new, redactor.clean, started.durability)
            stack.push_async_callback(undisturbed, into.aclose)
        if model_source is None:
            stack.push_async_callback(undisturbed, source.aclose)
        end = "" if row.status == "completed" else row.state
        return await carry_out(
            Session(
                run_id=name if live else row.id,
                loaded=loaded,
                plan=parts.plan.tightened(started.limits_with(limits)),
                task=from_json(row.task),
                workspace=Workspace(folder, redactor.data),
                kept=folder if live else None,
                journal=Recording(kept.steps(), into, end),
                models=source,
                overrides=parts.overrides,
                functions=parts.functions,
                human=GivenAnswers(answers or {}, human),
                redactor=redactor,
                extra=parts.extra,
                on_event=on_event,
                cuts=cuts,
                remembers=bool(live),
                is_traced=bool(live),
            )
        )


def _cuts(parts: Parts, live: Sequence[str]) -> Cuts:
    """Which nodes are done anew: `writer` by itself, `writer+` with what follows."""
    alone: set[str] = set()
    spreading: set[str] = set()
    for each in live:
        names = parts.full_names(each.removesuffix("+"))
        (spreading if each.endswith("+") else alone).update(names)
    return Cuts(dict.fromkeys(alone | spreading, 1), frozenset(alone - spreading))


async def answer_questions(
    run_id: str, answers: Answers, *, logs_dir: str | Path = "logs"
) -> list[str]:
    """Keep answers to questions that a run has left open; it does not go on by that.

    Args:
        run_id: The run, whole.
        answers: By node id, or by the id of a question.
        logs_dir: The folder of all runs.

    Returns:
        The ids of the questions that are still open.

    Raises:
        UsageError: there is no such run, it is alive, or an answer fits no open question.
    """
    from devall.journal.reader import Reader
    from devall.journal.sqlite import shared_store

    folder = Path(logs_dir)
    with Reader(folder) as reader:
        row = reader.run(run_id)
        nodes = reader.digests(row)
    redactor = Redactor(environment_secrets(os.environ))
    async with shared_store(folder) as store:
        journal = await store.take_over(row.id, nodes=nodes, redact=redactor.value)
        before = journal.open_questions()
        left = await answer_open(journal, answers)
        now = journal.open_questions()
        result = dict(row.result or {})
        still = {question_id(key) for key in now}
        result["waiting"] = [q for q in result.get("waiting", ()) if q["path"] in still]
        await journal.finish(row.status, result)
        await journal.aclose()
    unfit = [name for name, words in left.items() if not isinstance(words, str)]
    unfit += [
        n for n, w in left.items() if isinstance(w, str) and not any(fits(n, k) for k in before)
    ]
    if unfit:
        raise UsageError(f"run {row.id} has no open question for {', '.join(unfit)}")
    return sorted(still)


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
