"""`devall why`: why a node ran, was skipped, or has not run."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, to_line
from devall.cli.pages import Page, past_of, redactor_of_today, workflow_of
from devall.cli.streams import write_answer, write_note
from devall.cli.words import count
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.history.causes import Explanation, Firing, InEdge

_MOST_RUNS = 3
"""Runs of a node, or of an edge's source, that are shown; the newest ones."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyOptions:
    """The options of `devall why`, as they were written."""

    run: str
    node: str
    logs_dir: Path | None = None
    full: bool = False
    as_json: bool = False
    debug: bool = False


def execute(options: WhyOptions) -> int:
    """Print why; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: WhyOptions) -> int:
    from devall.graph.compile import compile_graph
    from devall.history.causes import Explainer, names_in
    from devall.history.story import named
    from devall.history.verdicts import Verdicts
    from devall.telemetry.redaction import environment_secrets

    past = past_of(options.logs_dir, options.run)
    story = past.story()
    loaded, note = workflow_of(past, story)
    plan = compile_graph(loaded.root)
    redactor = redactor_of_today(loaded.secrets | environment_secrets(loaded.environment.values))
    known = list(dict.fromkeys((*names_in(plan), *story.nodes)))
    nodes, number = named(options.node, known)
    decisions = past.steps(lambda _, kind: kind == "edge")
    verdicts = Verdicts({key: each for key, each in decisions.items() if each.state == "done"})
    explainer = Explainer(story, plan, verdicts, past.state == "running")
    is_whole = options.full or options.as_json or number is not None
    newest = None if is_whole else _MOST_RUNS
    found = [each for node in nodes for each in explainer.explain(node, newest)]
    if number is not None:
        found = [_only(each, number) for each in found]
        if not any(each.causes for each in found):
            raise UsageError(
                f"{options.node}: there is no such run of it",
                hint=f"why there is none: devall why {options.run} {nodes[0]}",
            )
        found = [each for each in found if each.causes]
    if note:
        write_note(f"note: {note}")
    if options.as_json:
        told: dict[str, JsonValue] = {
            "run_id": past.id,
            "state": past.state,
            "note": note or None,
            "nodes": [_object(each) for each in found],
        }
        write_answer(to_line(redactor.value(told)))
        return 0
    page = Page(options.full, redactor)
    for at, each in enumerate(found):
        if at:
            page.add("")
        _write(page, each)
    if not found:
        page.add(f"{nodes[0]} has not run: the graph that it is in has not begun")
    page.write()
    return 0


def _only(explanation: Explanation, number: int) -> Explanation:
    causes = tuple(each for each in explanation.causes if each.visit.number == number)
    return replace(explanation, causes=causes)


def _write(page: Page, told: Explanation) -> None:
    where = f" (in {told.graph})" if told.graph else ""
    page.add(f"{told.summary}{where}")
    causes = told.causes if page.full else told.causes[-_MOST_RUNS:]
    if len(causes) < len(told.causes):
        page.add(f"  … {count(len(told.causes) - len(causes), 'earlier run')} (--full shows all)")
    for cause in causes:
        rounds = f", in {' within '.join(reversed(cause.rounds))}" if cause.rounds else ""
        triggers = ", ".join(cause.triggers) or "nothing that is known"
        page.add(f"  run {cause.visit.number}{rounds}: triggered by {triggers}")
        if cause.waited_for:
            page.add(f"    waited for: {', '.join(cause.waited_for)}")
    if told.edges:
        page.add("edges into it:")
    for edge in told.edges:
        _write_edge(page, edge)
    for text in dict.fromkeys(told.loops if page.full else told.loops[-_MOST_RUNS:]):
        page.add(text)


def _write_edge(page: Page, edge: InEdge) -> None:
    trigger = "" if edge.trigger else ", starts nothing (`trigger: false`)"
    condition = f", {edge.condition}" if edge.condition else ""
    page.add(f"  {edge.source} -> {edge.target}{condition}{trigger}")
    if not edge.firings:
        page.add(f"    did not fire: {edge.source} {_as_sentence(edge.source_state)}")
    firings = edge.firings if page.full else edge.firings[-_MOST_RUNS:]
    if len(firings) < len(edge.firings):
        more = count(len(edge.firings) - len(firings), "earlier run")
        page.add(f"    … {more} of {edge.source} (--full shows all)")
    for firing in firings:
        many = len(edge.firings) > 1 or firing.visit > 1
        run = f" in run {firing.visit} of {edge.source}" if many else ""
        reasons = list(dict.fromkeys(firing.reasons))
        if len(reasons) == 1:
            page.add(f"    {_fired(firing)}{run}: {reasons[0]}")
            continue
        page.add(f"    {_fired(firing)}{run}")
        for number, reason in enumerate(firing.reasons, 1):
            page.add(f"      output {number}: {reason}")


def _fired(firing: Firing) -> str:
    if not firing.fired:
        return "did not fire"
    if firing.outputs == 1:
        return "fired"
    return f"fired for {firing.fired} of {count(firing.outputs, 'output')}"


def _as_sentence(state: str) -> str:
    return {
        "skipped": "was skipped",
        "failed": "failed",
        "completed": "has run",
    }.get(state, state)


def _object(told: Explanation) -> dict[str, JsonValue]:
    return {
        "node": told.node,
        "graph": told.graph,
        "fate": told.fate,
        "summary": told.summary,
        "runs": [
            {
                "visit": cause.visit.number,
                "path": cause.visit.path,
                "triggers": list(cause.triggers),
                "waited_for": list(cause.waited_for),
                "rounds": list(cause.rounds),
            }
            for cause in told.causes
        ],
        "edges": [
            {
                "edge": edge.edge,
                "from": edge.source,
                "to": edge.target,
                "condition": edge.condition or None,
                "trigger": edge.trigger,
                "source_state": edge.source_state,
                "firings": [
                    {
                        "visit": firing.visit,
                        "path": firing.path,
                        "fired": firing.fired,
                        "outputs": firing.outputs,
                        "reasons": list(firing.reasons),
                    }
                    for firing in edge.firings
                ],
            }
            for edge in told.edges
        ],
        "loops": list(told.loops),
    }
