"""How a run ended: the one source of status, exit code, JSON and reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from devall.core.errors import (
    AnswerNeeded,
    DevallError,
    LimitReached,
    NodeError,
    NodeTimeout,
    RunCancelled,
)

Status = Literal["completed", "failed", "limit_reached", "waiting", "cancelled"]


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """A failure in plain values."""

    code: str
    message: str
    node: str | None = None
    """Id of the node, `S/X` in a subgraph; None where no node is to blame."""
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run; everything that is said about it is derived from this value."""

    status: Status
    exit_code: int
    error: ErrorReport | None = None
    waiting: tuple[tuple[str, str], ...] = ()
    """(path of the human node's run, what is asked), for each open question."""


COMPLETED = Outcome("completed", 0)


def outcome_of(error: BaseException) -> Outcome:
    """The outcome of a run that ended with this exception."""
    if isinstance(error, AnswerNeeded):
        return Outcome("waiting", error.exit_code, None, error.questions)
    if isinstance(error, RunCancelled):
        return Outcome("cancelled", error.exit_code, ErrorReport(error.code, str(error)))
    cause = error.cause if isinstance(error, NodeError) else error
    node = error.node if isinstance(error, NodeError) else None
    if not isinstance(error, DevallError):
        text = f"{type(error).__name__}: {error}"
        return Outcome("failed", 1, ErrorReport("internal", text, node))
    code = error.cause_code if isinstance(error, NodeError) else error.code
    stopped = isinstance(cause, LimitReached | NodeTimeout)
    return Outcome(
        "limit_reached" if stopped else "failed",
        error.exit_code,
        ErrorReport(code, str(error), node, error.hint),
    )
