"""A case run once: by its recording, by its script, or with live models to record it anew."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

from devall.app import redactor_of
from devall.config.nodes import AgentNode
from devall.core.diagnostics import Position
from devall.core.errors import ConfigError, DevallError, UsageError
from devall.core.ids import node_of
from devall.core.messages import Message, from_json, user
from devall.core.outcome import outcome_of
from devall.engine.folder import run_folder
from devall.engine.result import RunResult
from devall.graph.checked import load_workflow
from devall.journal.base import Journal, StepRecord
from devall.loading.loader import LoadedGraph, LoadedWorkflow, Recorded
from devall.loading.reports import render_text
from devall.models.base import ModelSource
from devall.models.providers import Models
from devall.models.recorded import RecordedModels
from devall.nodes.channels import GivenAnswers
from devall.nodes.crew import Overrides
from devall.plugins.functions import FunctionCatalog
from devall.plugins.project import functions_for
from devall.runs.parts import Parts
from devall.runs.session import Session, carry_out, undisturbed
from devall.telemetry.redaction import MASK, Redactor, environment_secrets
from devall.testing.cases.reading import Case
from devall.testing.cases.scripted import (
    CaseModels,
    NodeOverrides,
    ScriptedCatalog,
    ScriptedSteps,
    without_servers,
)
from devall.testing.cases.tape import Player, Remake
from devall.testing.cases.verdict import Seen, Unmet, unmet
from devall.workspace import Workspace

ALL = "*"
"""In `models` and `providers` of a case: all nodes."""
_MOST_MISSING = 3


@dataclass(frozen=True, slots=True)
class Played:
    """One run of a case."""

    result: RunResult
    unmet: tuple[Unmet, ...]
    redactor: Redactor = field(default_factory=Redactor, repr=False)
    needs_recording: bool = False
    """Whether requests are others than those that were recorded."""
    steps: tuple[StepRecord, ...] = ()
    """What a live run has done."""


async def play(case: Case) -> Played:
    """Run a case; no model is called, and of a recording nothing is.

    Raises:
        asyncio.CancelledError: the task was cancelled.
    """
    seen = Seen()
    try:
        loaded = _loaded(case, live=False)
        redactor = redactor_of(loaded)
        if case.tape is None:
            return await _scripted(case, loaded, redactor, seen)
        player = Player(case.tape, case.config.answers)
        result = await _run(case, loaded, player, RecordedModels(), seen)
        missing = tuple(_of_player(player, result, loaded.root))
        if player.missing:
            return Played(result, missing, redactor, needs_recording=True)
        found = (*missing, *_unmet(case, result, seen))
        return Played(result, found, redactor, needs_recording=bool(missing))
    except DevallError as error:
        result = RunResult(run_id="", workflow=str(case.workflow), outcome=outcome_of(error))
        redactor = Redactor(environment_secrets(os.environ))
        return Played(result, tuple(_unbegun(case, result, error)), redactor)


async def play_live(case: Case) -> Played:
    """Run a case anew: what its recording holds for the same request is not called again.

    Raises:
        UsageError: a variable held a secret, which no recording keeps.
        ConfigError, SetupError: as for `devall.run`.
        asyncio.CancelledError: the task was cancelled.
    """
    for name, value in case.config.vars.items():
        if isinstance(value, str) and MASK in value:
            raise UsageError(
                f"variable {name} held a secret, which no recording keeps",
                hint="record a new run with it, then: devall test add RUN NAME --force",
            )
    if case.tape is not None and case.tape.task is not None:
        raise UsageError(
            "the run was given files with its task, which no case keeps",
            hint="record a new run with them, then: devall test add RUN NAME --force",
        )
    seen = Seen()
    loaded = _loaded(case, live=True)
    steps = Remake(case.tape.steps if case.tape is not None else (), case.config.answers)
    models = RecordedModels(Models(loaded.environment.values))
    try:
        result = await _run(case, loaded, steps, models, seen, live=True)
    finally:
        await undisturbed(models.aclose)
    found = tuple(_unmet(case, result, seen))
    return Played(result, found, redactor_of(loaded), steps=steps.records)


async def _scripted(case: Case, loaded: LoadedWorkflow, redactor: Redactor, seen: Seen) -> Played:
    config = case.config
    models, steps = CaseModels(config.replies), ScriptedSteps(config.tools)
    functions = functions_for(loaded.path, case.functions_dir)
    offered = without_servers(loaded, config.tools, functions, config.ex_tools)
    result = await _run(case, offered, steps, models, seen, ScriptedCatalog)
    found = [Unmet(("replies",), text) for text in models.missing]
    found += [Unmet(("tools",), text) for text in steps.missing]
    if not found:
        found += _unmet(case, result, seen)
        if not any(each.path == ("expect", "status") for each in found):
            for key, left in models.unused().items():
                text = f"{left} of the replies of {key} {_was(left)} not asked for"
                found.append(Unmet(("replies", key), text))
            for key, left in steps.unused().items():
                text = f"{left} of the results of tool {key} {_was(left)} not asked for"
                found.append(Unmet(("tools", key), text))
    return Played(result, tuple(found), redactor)


def _was(number: int) -> str:
    return "was" if number == 1 else "were"


def _loaded(case: Case, *, live: bool) -> LoadedWorkflow:
    """The workflow of a case; where it is played, as on a machine that sets no variables for it."""
    environment = case.environment(live=live)
    loaded = _load(case, environment)
    if case.tape is None or live:
        return loaded
    # To a variable with a default an empty value is none.
    hidden = {
        name: ""
        for name, origin in loaded.origins.items()
        if origin not in {"given", "vars"} and name not in environment
    }
    return _load(case, hidden | environment) if hidden else loaded


def _load(case: Case, environment: Mapping[str, str]) -> LoadedWorkflow:
    return load_workflow(
        case.workflow,
        variables=case.config.vars,
        functions_dir=case.functions_dir,
        recorded=Recorded(environment=environment),
    )


async def _run(
    case: Case,
    loaded: LoadedWorkflow,
    journal: Journal,
    models: ModelSource,
    seen: Seen,
    catalog: type[ScriptedCatalog] | None = None,
    *,
    live: bool = False,
) -> RunResult:
    """Run the workflow of a case in a workspace of its own.

    Raises:
        UsageError: the case names nodes or models that are not there.
        SetupError: a tool or function is missing.
    """
    config = case.config
    named = [{"" if n == ALL else n: v for n, v in m.items()} for m in _overrides(case)]
    overrides: Overrides = NodeOverrides(named[0], named[1])
    parts = Parts(loaded, overrides, case.functions_dir, config.ex_tools)
    _check_names(case, loaded.root, parts)
    functions: FunctionCatalog = parts.functions if catalog is None else catalog(parts.functions)
    async with AsyncExitStack() as stack:
        name, folder = stack.enter_context(run_folder(None, None))
        return await carry_out(
            Session(
                run_id=name,
                loaded=loaded,
                plan=parts.plan if config.limits is None else parts.plan.tightened(config.limits),
                task=_task(case),
                workspace=Workspace(folder),
                kept=None,
                journal=journal,
                models=models,
                overrides=overrides,
                functions=functions,
                human=GivenAnswers(config.answers),
                redactor=redactor_of(loaded),
                extra=parts.extra,
                on_event=seen,
                remembers=live,
                is_traced=live,
            )
        )


def _task(case: Case) -> Message:
    """What the start nodes get: the text, or the recorded message that says it in several parts."""
    told = case.tape.task if case.tape is not None else None
    recorded = from_json(told) if told is not None else None
    return recorded if recorded is not None and recorded.text == case.task else user(case.task)


def _overrides(case: Case) -> tuple[Mapping[str, str], Mapping[str, str]]:
    return case.config.models, case.config.providers


class _NamesNothing(UsageError):
    """A key of the case is the name of something that is not there."""

    def __init__(self, section: str, key: str, kind: str, hint: str) -> None:
        self.path = (section, key)
        super().__init__(f"`{section}`: there is no {kind} {key}", hint=hint)


def _check_names(case: Case, graph: LoadedGraph, parts: Parts) -> None:
    """Make sure that what the case names is there.

    Raises:
        UsageError: there is no such node, and for replies no such model.
    """
    config = case.config
    models = {*_models(graph), *config.models.values()}
    for section in ("models", "providers", "answers", "replies"):
        is_replies = section == "replies"
        keys: Mapping[str, object] = getattr(config, section)
        for key in keys:
            if key == ALL or (is_replies and key in models):
                continue
            try:
                parts.full_names(key)
            except UsageError as error:
                candidates: list[str] = sorted(models) if is_replies else []
                near = difflib.get_close_matches(key, candidates, 1)
                hint = f"did you mean {near[0]}?" if near else error.hint
                kind = "node and no model" if is_replies else "node"
                raise _NamesNothing(section, key, kind, hint) from error


def _models(graph: LoadedGraph) -> Iterator[str]:
    for node in graph.config.nodes:
        if isinstance(node, AgentNode):
            yield node.config.name
    for child in graph.subgraphs.values():
        yield from _models(child)


def _unmet(case: Case, result: RunResult, seen: Seen) -> Iterator[Unmet]:
    return unmet(case.config.expect, result, seen, case.file.parent)


def _unbegun(case: Case, result: RunResult, error: DevallError) -> list[Unmet]:
    """What is not as expected where the run never began; why, and nothing that follows of it."""
    found = list(_unmet(case, result, Seen()))
    if found and case.config.expect.wanted_status not in {None, "failed"}:
        path = ("expect", "status")
        if isinstance(error, ConfigError):
            lines = render_text(error.diagnostics).splitlines()
            place = error.diagnostics[0].position
            return [Unmet(path, "the workflow's file is wrong", lines, position=place)]
        more = f" ({error.hint})" if error.hint else ""
        text = f"the run cannot begin: {error}{more}"
        return [Unmet(error.path if isinstance(error, _NamesNothing) else path, text)]
    return found


def _of_player(player: Player, result: RunResult, graph: LoadedGraph) -> Iterator[Unmet]:
    """Requests that were not recorded, and recorded ones that were not made."""
    for error in player.missing[:_MOST_MISSING]:
        text = f"the recording holds no {error.key}"
        if error.nearest == error.key:
            text = f"the request of {error.key} is not the one that was recorded"
        elif error.nearest:
            text += f"; nearest is {error.nearest}"
        lines = error.difference.splitlines()
        place = _place_of(graph, node_of(error.key))
        yield Unmet(("recording",), text, lines, position=place)
    if player.missing or result.status != "completed" or not player.is_whole:
        return
    if unused := player.unused():
        shown = ", ".join(unused[:_MOST_MISSING])
        more = len(unused) - _MOST_MISSING
        shown += f" and {more} more" if more > 0 else ""
        yield Unmet(("recording",), f"recorded, and not asked for any more: {shown}")


def _place_of(graph: LoadedGraph, node: str) -> Position | None:
    """Where a node stands in its file; a graph within a node that is not there: that node."""
    name, _, rest = node.partition("/")
    for index, each in enumerate(graph.config.nodes):
        if each.id == name:
            child = graph.subgraphs.get(name)
            inner = _place_of(child, rest) if rest and child is not None else None
            return inner or graph.locate(("nodes", index))
    return None
