"""Runs of all endings, as reports tell them."""

from __future__ import annotations

import pytest

from devall.core.diagnostics import Position
from devall.core.outcome import COMPLETED, ErrorReport, Outcome
from devall.core.usage import Usage
from devall.reports.runs import NodeReport, RunReport

REFUSED = ErrorReport("model_refused", "the endpoint refused | `401`", "B", "check the key")


@pytest.fixture
def completed() -> RunReport:
    return RunReport(
        workflow="flows/poem.yaml",
        outcome=COMPLETED,
        run_id="r1",
        answer="a poem",
        answer_node="B",
        nodes=(
            NodeReport(name="A", status="completed", runs=2, seconds=1.5, usage=Usage(2, 1, 10, 5)),
            NodeReport(
                name="B", status="completed", runs=1, usage=Usage(1, usd=None, unpriced_calls=1)
            ),
            NodeReport(name="C", status="skipped"),
        ),
        usage=Usage(3, 1, 10, 5, usd=1.5, unpriced_calls=1),
        seconds=2.25,
        warnings=("mind the gap",),
    )


@pytest.fixture
def failed() -> RunReport:
    return RunReport(
        workflow="poem.yaml",
        outcome=Outcome("failed", 1, REFUSED),
        nodes=(
            NodeReport(name="A", status="completed", runs=1),
            NodeReport(
                name="B",
                status="failed",
                runs=1,
                failure=REFUSED,
                place=Position("sub/flow.yaml", 7, 9),
            ),
            NodeReport(name="C", status="cancelled", runs=1),
            NodeReport(name="D", status="skipped"),
        ),
    )
