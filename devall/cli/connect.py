"""What `devall validate --connect` finds: servers, their tools, and what these are called."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.bound import Bound, bound_agents, redactor_for, surveys
from devall.cli.interruption import Interruption
from devall.cli.streams import one_line, write_note
from devall.cli.words import count
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import SetupError

if TYPE_CHECKING:
    from devall.loading.loader import LoadedWorkflow
    from devall.tools.survey import SourceReport, Survey


def connect(
    loaded: LoadedWorkflow, functions_dir: Path | None
) -> tuple[tuple[Diagnostic, ...], bool]:
    """Start or reach every server of the workflow.

    Returns:
        What was found, and whether every agent could begin. How many tools each agent has, and
        which of them get other names, goes to standard error.
    """
    redact = redactor_for(loaded).text
    agents = bound_agents(loaded)
    found = Interruption(write_note).run(
        surveys(loaded, agents, connect=True, functions_dir=functions_dir)
    )
    pairs = list(zip(agents, found, strict=True))
    for bound, survey in pairs:
        for line in _summary(bound, survey):
            write_note(redact(line))
    diagnostics = tuple(d for bound, survey in pairs for d in _findings(bound, survey))
    is_usable = all(survey.is_usable and bound.missing is None for bound, survey in pairs)
    return tuple(_redacted(d, redact) for d in diagnostics), is_usable


def _redacted(diagnostic: Diagnostic, redact: Callable[[str], str]) -> Diagnostic:
    return replace(diagnostic, message=redact(diagnostic.message), hint=redact(diagnostic.hint))


def _summary(bound: Bound, survey: Survey) -> Iterator[str]:
    from devall.config.prefixes import prefix_of

    ready = [report for report in survey.sources if report.state == "ready"]
    tools = sum(len(report.tools) for report in ready)
    yield f"{bound.node}: {count(tools, 'tool')} of {count(len(ready), 'source')}"
    for report in ready:
        own_prefix = prefix_of(report.source)
        prefix = f"{own_prefix}_" if own_prefix else ""
        for spec in report.tools:
            own = spec.metadata.get("original_name")
            if spec.name != f"{prefix}{own}":
                yield f"  {own} of {report.label} is called {spec.name}"


def _findings(bound: Bound, survey: Survey) -> Iterator[Diagnostic]:
    for report, place in zip(survey.sources, bound.places, strict=True):
        if report.error is not None:
            yield _failed(bound, report, place, report.error)
        for oddity in report.oddities:
            text = f"node {bound.node}: {report.label}: {one_line(oddity)}"
            yield Diagnostic("tool-source", text, place, severity="warning")
    problems = (bound.missing, survey.collision)
    for code, error in zip(("unset-variable", "tool-collision"), problems, strict=True):
        if error is not None:
            place = bound.places[0] if bound.places else Position("")
            yield Diagnostic(code, f"node {bound.node}: {error}", place, error.hint)


def _failed(bound: Bound, report: SourceReport, place: Position, error: SetupError) -> Diagnostic:
    needed = report.source.required
    left_out = "" if needed else " (the agent works without it: `required: false`)"
    return Diagnostic(
        "tool-source",
        f"node {bound.node}: {error}{left_out}",
        place,
        error.hint,
        "error" if needed else "warning",
    )
