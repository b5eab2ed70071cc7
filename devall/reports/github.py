"""Workflow commands of GitHub Actions, and its step summary: what shows beside the code there."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import DevallError
from devall.loading.reports import render_github
from devall.reports.files import append
from devall.reports.markdown import run_markdown
from devall.reports.runs import RunReport

LARGEST_SUMMARY = 1024 * 1024
"""Bytes of a step's summary; GitHub takes none of a longer one."""


def is_on_github(environment: Mapping[str, str]) -> bool:
    """Whether GitHub Actions reads what is printed."""
    return environment.get("GITHUB_ACTIONS") == "true"


def workflow_commands(diagnostics: Iterable[Diagnostic], environment: Mapping[str, str]) -> str:
    """The findings as workflow commands, one a line; files as the repository names them."""
    root = environment.get("GITHUB_WORKSPACE", "")
    return render_github(
        replace(each, position=replace(each.position, file=in_repository(each.position.file, root)))
        for each in diagnostics
    )


def in_repository(file: str, root: str) -> str:
    """A file's path from the root of the repository; as it stands where it lies elsewhere."""
    if not root or not file:
        return file
    place, top = os.path.realpath(file), os.path.realpath(root)
    return os.path.relpath(place, top) if place.startswith(top + os.sep) else file


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
