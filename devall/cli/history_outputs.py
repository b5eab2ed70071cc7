"""What `--json` prints of runs that are over: `devall show`, `why` and `diff`."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from devall.cli.outputs import ErrorOutput, closed
from devall.core.messages import JsonValue


@closed
class ModelCallOutput(TypedDict):
    """A call of a model."""

    path: str
    turn: int
    provider: str
    model: str
    attempts: int
    failures: list[str]
    """Why attempts before the last one failed."""
    seconds: float | None
    input_tokens: int | None
    output_tokens: int | None
    cached_tokens: int | None
    usd: float | None
    finish_reason: str | None
    from_journal: bool
    """Whether nothing was called, since the answer was known."""
    request: JsonValue
    """What went to the model; null: not kept."""
    reply: JsonValue


@closed
class ToolUseOutput(TypedDict):
    """A call of a tool."""

    path: str
    turn: int
    tool: str
    server: str | None
    arguments: JsonValue
    result: str | None
    is_error: bool
    seconds: float | None
    from_journal: bool


@closed
class AnsweredOutput(TypedDict):
    """A question to a human."""

    path: str
    question: str
    answer: str | None


_Ends = TypedDict("_Ends", {"from": str, "to": str})


@closed
class EndsOutput(_Ends):
    """An edge, by its ends."""


@closed
class VisitOutput(TypedDict):
    """One run of a node."""

    node: str
    visit: int
    """From 1."""
    path: str
    status: str
    began: float
    """Seconds since the epoch."""
    seconds: float | None
    inputs: list[dict[str, JsonValue]]
    outputs: list[dict[str, JsonValue]]
    error: ErrorOutput | None
    model_calls: list[ModelCallOutput]
    tool_calls: list[ToolUseOutput]
    questions: list[AnsweredOutput]
    warnings: list[str]
    edges: list[EndsOutput]
    """The edges that fired."""


@closed
class ShowOutput(TypedDict):
    """A run, or a node of it, as it went."""

    run_id: str
    in_journal: bool
    state: str
    workflow: str
    task: str
    answer: JsonValue
    """A text; an object where `log_output: false` kept it out of the log."""
    visits: list[VisitOutput]
    skipped: list[str]
    """Nodes that did not run."""


@closed
class CauseOutput(TypedDict):
    """Why a node ran once."""

    visit: int
    path: str
    triggers: list[str]
    waited_for: list[str]
    rounds: list[str]


@closed
class FiringOutput(TypedDict):
    """What an edge did when its source had run."""

    visit: int
    path: str
    fired: int
    """How often: once for each output that went along it."""
    outputs: int
    reasons: list[str]
    """What decided it, for each output."""


class _In(TypedDict):
    edge: int
    """Position in the file's list of edges, from 0."""
    condition: str | None
    trigger: bool
    source_state: str
    firings: list[FiringOutput]


@closed
class InEdgeOutput(_In, _Ends):
    """An edge into the node."""


@closed
class WhyNodeOutput(TypedDict):
    """Why a node ran or did not."""

    node: str
    graph: str
    fate: Literal["ran", "skipped", "not run"]
    summary: str
    runs: list[CauseOutput]
    edges: list[InEdgeOutput]
    loops: list[str]


@closed
class WhyOutput(TypedDict):
    """Why nodes of a run ran or did not."""

    run_id: str
    state: str
    note: str | None
    nodes: list[WhyNodeOutput]


@closed
class DifferenceOutput(TypedDict):
    """A difference of two runs."""

    node: str | None
    """null: of the runs as a whole."""
    visit: int
    path: str
    aspect: str
    first: str | None
    """The text in the first run; null: there is none."""
    second: str | None


@closed
class DiffOutput(TypedDict):
    """How two runs differ."""

    exit_code: int
    """1: they do."""
    first: str
    second: str
    same: bool
    count: int
    differences: list[DifferenceOutput]
    """All with `--all`, else the first."""
    notes: list[str]


@closed
class ReportOutput(TypedDict):
    """A page that was written of a run."""

    run_id: str
    state: str
    file: str
    bytes: int
    events: int
    """Those that it tells of."""
    nodes: int
    picture: bool
    """Whether it has a picture of the graph."""
    cut_texts: int
    """Texts that are not whole in it."""
