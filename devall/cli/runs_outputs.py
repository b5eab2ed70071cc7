"""What `--json` prints of the runs of a folder: `devall runs`."""

from __future__ import annotations

from typing_extensions import TypedDict

from devall.cli.outputs import NodeOutput, RunOutput, UsageOutput, closed
from devall.core.messages import JsonValue


class _Summary(TypedDict):
    run_id: str
    state: str
    """How it ended; `running`; `interrupted`: its process is gone; `unfinished`: it has not
    ended, and it is in no journal, so that nobody says whether it goes on."""
    in_journal: bool
    """False: `--journal memory`; only its events were kept."""
    workflow: str
    task: str
    began: float
    """Seconds since the epoch."""
    ended: float | None
    seconds: float | None
    usage: UsageOutput | None
    """null: it has not ended yet."""
    turns: int
    """How many processes were at it."""
    folder: str


@closed
class RunSummaryOutput(_Summary):
    """A run in the list."""


@closed
class RunsAnswerOutput(TypedDict):
    """Answers were kept."""

    run_id: str
    open: list[str]
    """Ids of the questions that still have no answer."""
    resume: str
    """The command that goes on with the run."""


@closed
class RunsListOutput(TypedDict):
    """The runs of a folder, the newest first."""

    count: int
    """How many there are, without `--limit`."""
    runs: list[RunSummaryOutput]


@closed
class ProcessOutput(TypedDict):
    """The process that is at work on a run."""

    host: str
    pid: int


@closed
class FaredOutput(TypedDict):
    """How a node fared, by the events."""

    runs: int
    status: str


@closed
class OpenQuestionOutput(TypedDict):
    """A question that waits for a human."""

    id: str
    """What `--answer ID=TEXT` names it by."""
    question: str


@closed
class RunsShowOutput(_Summary):
    """All about a run."""

    process: ProcessOutput | None
    """null: none is at work on it."""
    settings: dict[str, JsonValue]
    """What it was started with; of the environment only the names of the variables."""
    result: RunOutput | None
    """As `devall run --json` printed it; null: it has not ended, or is in no journal."""
    nodes: dict[str, NodeOutput | FaredOutput]
    questions: list[OpenQuestionOutput]
    resume_command: str | None
    """The command that goes on with it; null: it cannot be gone on with."""


@closed
class RunsTailOutput(TypedDict):
    """An event; each is on a line of its own."""

    run_id: str
    event: dict[str, JsonValue]
    """As events.jsonl has it."""


@closed
class RunsCancelOutput(TypedDict):
    """A run that is not alive (any more)."""

    run_id: str
    state: str
    was_alive: bool
    """Whether it was this command that ended it."""


@closed
class PrunedOutput(TypedDict):
    """A run that was deleted, or would be."""

    run_id: str
    state: str
    bytes: int
    """Of its folder."""
    deleted: bool
    problem: str | None
    """Why it, or its folder, is still there."""


@closed
class RunsPruneOutput(TypedDict):
    """The runs that were deleted, and the room that they took."""

    exit_code: int
    dry_run: bool
    runs: list[PrunedOutput]
    bytes: int
    journal_bytes: int
    """How much smaller the journal is."""
