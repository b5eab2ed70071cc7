"""A run as a suite of tests: one case for each node.

The suite has a failure or an error exactly where the run's exit code is not 0: what a report
shows as green and what a pipeline goes on after are the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import assert_never

from devall.core.outcome import ErrorReport
from devall.reports.junit import Case, Suite
from devall.reports.runs import NodeReport, RunReport

RUN = "(run)"
"""Name of the case for what no node is to blame for."""


def suite_of(report: RunReport) -> Suite:
    """The suite of a run."""
    name = PurePath(report.workflow).stem or "workflow"
    is_whole = report.outcome.status == "completed"
    cases = [_case(node, name, is_whole) for node in report.nodes]
    cases += _case_of_run(report, name, cases)
    return Suite(
        name=name,
        cases=cases,
        seconds=report.seconds,
        at=report.began,
        properties=dict(_properties(report)),
        out=report.answer or "",
        err="\n".join(_said(report)),
    )


def _case(node: NodeReport, group: str, is_whole: bool) -> Case:
    outcome, kind, message, details = "passed", "", "", ""
    match node.status:
        case "completed":
            pass
        case "failed" if node.failure is not None and not node.is_survived:
            outcome, kind, message = "failed", node.failure.code, node.failure.message
            details = _details(node.failure, node)
        case "failed":
            why = node.failure.message if node.failure is not None else ""
            outcome, message = "skipped", f"failed, and the run went on without it: {why}"
        case "waiting":
            outcome, kind = "error", "waiting"
            message = f"waits for a human: {node.question or '(no question is written)'}"
            details = f"{message}\nplace: {node.place}" if node.place else message
        case "skipped":
            outcome = "skipped"
            message = "nothing triggered it" if is_whole else "the run ended before it"
        case "running" | "cancelled":
            outcome, message = "skipped", "cancelled before it was done"
        case _:
            assert_never(node.status)
    return Case(
        name=node.name,
        group=group,
        seconds=node.seconds,
        outcome=outcome,
        message=message,
        kind=kind,
        details=details,
    )


def _case_of_run(report: RunReport, group: str, nodes: list[Case]) -> Iterator[Case]:
    """The case for an end that no node's case shows."""
    error = report.unplaced
    shows = any(case.outcome in {"failed", "error"} for case in nodes)
    if report.outcome.exit_code == 0 or (shows and error is None):
        return
    if error is None:
        message = report.outcome.status.replace("_", " ")
        yield Case(name=RUN, group=group, outcome="error", kind=message, message=message)
        return
    details = "\n".join([_details(error, None), *map(str, report.diagnostics)])
    yield Case(
        name=RUN,
        group=group,
        seconds=report.seconds,
        outcome="error",
        kind=error.code,
        message=error.message,
        details=details,
    )


def _details(error: ErrorReport, node: NodeReport | None) -> str:
    lines = [error.message]
    if error.hint:
        lines.append(f"hint: {error.hint}")
    if node is not None and node.place is not None:
        lines.append(f"place: {node.place}")
    return "\n".join(lines)


def _properties(report: RunReport) -> Iterator[tuple[str, str]]:
    usage = report.usage
    yield "workflow", report.workflow
    yield "status", report.outcome.status
    yield "exit_code", str(report.outcome.exit_code)
    if report.run_id:
        yield "run_id", report.run_id
    if report.answer_node:
        yield "answer_node", report.answer_node
    yield "model_calls", str(usage.model_calls)
    yield "tool_calls", str(usage.tool_calls)
    yield "input_tokens", str(usage.input_tokens)
    yield "output_tokens", str(usage.output_tokens)
    if usage.usd is not None and not usage.unpriced_calls:
        yield "usd", f"{usage.usd:.6f}"


def _said(report: RunReport) -> Iterator[str]:
    if report.outcome.error is not None:
        error = report.outcome.error
        yield f"error [{error.code}]: {error.message}"
    for warning in report.warnings:
        yield f"warning: {warning}"
