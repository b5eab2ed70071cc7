from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import DevallError
from devall.core.outcome import ErrorReport, Outcome
from devall.reports.github import (
    LARGEST_SUMMARY,
    add_to_summary,
    findings_of,
)
from devall.reports.runs import NodeReport, RunReport


def test_a_failed_node_is_shown_at_its_own_line_and_once(failed: RunReport):
    outer = replace(failed.nodes[1], name="S", place=Position("w.yaml", 1, 1))
    inner = replace(failed.nodes[1], name="S/B")
    report = replace(failed, nodes=(outer, inner))
    [found] = findings_of(report)
    assert str(found.position) == "sub/flow.yaml:7:9"
    assert (found.code, found.severity) == ("model_refused", "error")
    assert found.message.startswith("node S/B: ")


def test_a_failure_that_the_run_survived_is_a_warning(completed: RunReport):
    bad = ErrorReport("exception", "boom", "A")
    node = NodeReport(name="A", status="failed", failure=bad, is_survived=True)
    [found] = findings_of(replace(completed, nodes=(node,)))
    assert found.severity == "warning"


def test_an_error_of_no_node_is_about_the_file():
    outcome = Outcome("failed", 4, ErrorReport("setup", "no key", None, "set it"))
    [found] = findings_of(RunReport(workflow="w.yaml", outcome=outcome))
    assert found.position == Position("w.yaml")


def test_a_wrong_file_is_shown_line_by_line():
    wrong = Diagnostic("unknown-key", "no key `x`", Position("w.yaml", 3, 5))
    outcome = Outcome("failed", 3, ErrorReport("config", str(wrong)))
    assert findings_of(RunReport(workflow="w.yaml", outcome=outcome, diagnostics=(wrong,))) == [
        wrong
    ]


def test_a_summary_is_added_to_and_never_grows_beyond_what_is_taken(
    workspace: Path, completed: RunReport
):
    file = workspace / "summary.md"
    file.write_text("# Before\n")
    add_to_summary(completed, file)
    assert file.read_text("utf-8").startswith("# Before\n## flows/poem.yaml")
    add_to_summary(replace(completed, answer="é" * LARGEST_SUMMARY), file)
    assert file.stat().st_size <= LARGEST_SUMMARY
    assert "characters in all" in file.read_text("utf-8")
    file.write_text("x" * LARGEST_SUMMARY)
    with pytest.raises(DevallError, match="full"):
        add_to_summary(completed, file)
