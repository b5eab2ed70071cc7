"""What GitHub Actions shows of a run: findings beside the lines, and the step's summary."""

from __future__ import annotations

from pathlib import Path

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import DevallError
from devall.reports.files import append
from devall.reports.markdown import run_markdown
from devall.reports.runs import RunReport

LARGEST_SUMMARY = 1024 * 1024
"""Bytes of a step's summary; GitHub takes none of a longer one."""


def findings_of(report: RunReport) -> list[Diagnostic]:
    """What a run's end has to say about lines of its files.

    A node that failed, at its place; what is wrong with the file; else the run's error, about
    the file as a whole.
    """
    found: list[Diagnostic] = list(report.diagnostics)
    for node in report.failures:
        if node.failure is None:
            continue
        place = node.place or Position(report.workflow)
        severity = "warning" if node.is_survived else "error"
        message = f"node {node.name}: {node.failure.message}"
        found.append(Diagnostic(node.failure.code, message, place, node.failure.hint, severity))
    error = report.unplaced
    if error is not None and not report.diagnostics:
        place = Position(report.workflow)
        found.append(Diagnostic(error.code, error.message, place, error.hint))
    return found


def add_to_summary(report: RunReport, file: Path) -> None:
    """Add the run to a step's summary, as far as there is room.

    Raises:
        OSError: it cannot be written.
        DevallError: the summary is full.
    """
    used = file.stat().st_size if file.exists() else 0
    text = run_markdown(report, longest=LARGEST_SUMMARY - used - 1)
    if not text:
        raise DevallError("the step's summary is full")
    append(file, f"{text}\n")
