"""What `--json` prints of tests of workflows."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from devall.cli.outputs import closed
from devall.core.outcome import Status


@closed
class FailureOutput(TypedDict):
    """Something that is not as a case expects it."""

    what: str
    """The expectation by its keys, `answer.equals`; `recording`, `replies` or `tools` where calls
    are others than those that the case knows."""
    message: str
    difference: str
    """Lines that name what was wanted and what came; may be empty."""
    file: str
    line: int
    column: int


@closed
class CaseOutput(TypedDict):
    """A case that was run."""

    name: str
    file: str
    passed: bool
    seconds: float
    status: Status
    """How the run of the workflow ended."""
    model_calls: int
    """Those that were recorded or scripted."""
    tool_calls: int
    updated: list[Literal["expectations", "recording"]]
    """What `--update` wrote anew."""
    failures: list[FailureOutput]


@closed
class CasesOutput(TypedDict):
    """Cases that were run."""

    exit_code: int
    passed: int
    failed: int
    seconds: float
    cases: list[CaseOutput]
    warnings: list[str]
    """Reports that could not be written."""


@closed
class CaseAddOutput(TypedDict):
    """A case that was made."""

    name: str
    file: str
    passed: bool
    """Whether it passes with the workflow's file of today."""
    failures: list[FailureOutput]
