"""What `--json` prints of runs, files, tools and models."""

from __future__ import annotations

from typing import Literal, NotRequired

from pydantic import ConfigDict, with_config
from typing_extensions import TypedDict

from devall.core.diagnostics import Severity
from devall.core.messages import JsonValue
from devall.core.outcome import Status
from devall.engine.context import NodeStatus

closed = with_config(ConfigDict(extra="forbid", use_attribute_docstrings=True))
"""For a kind of object that has no other keys than these; the published schemas allow more."""


@closed
class DiagnosticOutput(TypedDict):
    """A finding about a file."""

    file: str
    line: int
    """From 1; 0 = the file as a whole."""
    column: int
    """From 1; 0 = the file as a whole."""
    severity: Severity
    code: str
    """Stable name of the kind of finding."""
    message: str
    hint: str
    """What would be right; may be empty."""


@closed
class ErrorOutput(TypedDict):
    """What went wrong."""

    code: str
    """Stable name of the kind of failure."""
    message: str
    hint: str | None
    """What would be right."""


@closed
class RunErrorOutput(ErrorOutput):
    """Why a run did not complete."""

    node: str | None
    """Id of the node that failed, `S/X` in a subgraph."""
    diagnostics: NotRequired[list[DiagnosticOutput]]
    """All that is wrong with the workflow file, where that is the reason."""


@closed
class NodeOutput(TypedDict):
    """How a node fared."""

    runs: int
    """Runs that were begun; each unit of a dynamic edge counts."""
    status: NodeStatus


@closed
class UsageOutput(TypedDict):
    """What was used, failed attempts and subgraphs included."""

    model_calls: int
    """Attempts, those included that failed or had no answer yet when the run ended."""
    tool_calls: int
    input_tokens: int
    """Cached ones included, once."""
    output_tokens: int
    cached_tokens: int
    """How many of the input tokens the provider had in its cache."""
    unknown_calls: int
    """Model calls whose tokens nobody counted."""
    tokens_at_least: bool
    """Whether the tokens are lower bounds."""
    usd: float | None
    """US dollars of the calls whose price is known; null: there were calls, and of none it is."""
    unpriced_calls: int
    """Model calls whose cost is unknown."""
    usd_at_least: bool
    """Whether `usd` is a lower bound."""


@closed
class QuestionOutput(TypedDict):
    """A question that waits for a human."""

    path: str
    """Logical path of the node's run: `/S@1/X@2`."""
    question: str


@closed
class RunOutput(TypedDict):
    """A run: how it ended, its answer, and what it used."""

    run_id: str | None
    """null: the run never began."""
    workflow: str | None
    """The file, as it was given."""
    status: Status
    exit_code: int
    """What the process ends with."""
    answer: str | None
    """None unless the run completed, or its last reply went over a limit."""
    answer_node: str | None
    nodes: dict[str, NodeOutput]
    """By id, `S/X` in a subgraph."""
    usage: UsageOutput
    usage_by_node: dict[str, UsageOutput]
    """Of the nodes that called a model or a tool; `S/X` in a subgraph."""
    usage_by_model: dict[str, UsageOutput]
    """By the model's name in the workflow."""
    seconds: float
    error: RunErrorOutput | None
    waiting: list[QuestionOutput]
    warnings: list[str]
    logs_dir: str | None
    """The run's own folder."""


@closed
class FileOutput(TypedDict):
    """What was found in one file."""

    file: str
    valid: bool
    """False with `--strict` also for warnings."""
    diagnostics: list[DiagnosticOutput]
    error: ErrorOutput | None
    """Why the file could not be looked at."""


@closed
class ValidateOutput(TypedDict):
    """What was found in workflow files."""

    exit_code: int
    files: list[FileOutput]


@closed
class GraphNodeOutput(TypedDict):
    """A node of a graph."""

    node: str
    """Its id, `S/X` in a subgraph."""
    type: str
    start: bool
    """Whether its graph starts with it."""
    end: bool
    """Whether its graph's answer comes from it."""
    file: str
    line: int
    column: int


@closed
class GraphEdgeOutput(TypedDict("_Ends", {"from": str, "to": str})):
    """An edge; its ends are named as nodes are."""

    trigger: bool
    carry_data: bool
    conditional: bool
    """Whether it fires only under a condition."""
    dynamic: str | None
    """map or tree, where it splits messages."""


@closed
class GraphOutput(TypedDict):
    """A workflow's graph."""

    workflow: str
    format: Literal["mermaid", "dot", "svg", "png", "ascii"]
    drawing: str
    """The graph in the language of `format`; of png its bytes in base64."""
    run_id: str | None
    """The run that is shown; null: none is."""
    output: str | None
    """The file that it was written to as well; null: none."""
    nodes: list[GraphNodeOutput]
    """In file order, those of a subgraph after its node."""
    edges: list[GraphEdgeOutput]


@closed
class ToolOutput(TypedDict):
    """A tool as the model sees it."""

    name: str
    description: str
    parameters: dict[str, JsonValue]
    """JSON Schema of its arguments."""
    metadata: dict[str, JsonValue]


@closed
class SourceOutput(TypedDict):
    """A source of tools."""

    type: str
    source: str
    """What it is called in messages."""
    prefix: str
    required: bool
    state: Literal["ready", "failed", "not asked"]
    seconds: float
    protocol: str | None
    """The version of MCP that was agreed on; null: none is spoken, or nobody asked."""
    oddities: list[str]
    error: ErrorOutput | None
    tools: list[ToolOutput]


@closed
class BoundOutput(TypedDict):
    """An agent's tools."""

    node: str
    skills: list[str] | None
    """Those that it may open, by activate_skill and read_skill_file; null: it has no such tools."""
    sources: list[SourceOutput]
    problems: list[ErrorOutput]


@closed
class ToolsListOutput(TypedDict):
    """The tools of a workflow's agents."""

    exit_code: int
    workflow: str
    nodes: list[BoundOutput]


@closed
class ToolsCallOutput(TypedDict):
    """What a tool has answered."""

    exit_code: int
    tool: str
    is_error: bool
    seconds: float
    content: list[dict[str, JsonValue]]
    """Parts of the result; each has a `type`: text, image, audio, video, file or data."""


@closed
class ModelOutput(TypedDict):
    """A model that can be pulled."""

    name: str
    about: str
    size: int
    """Bytes."""
    path: str | None
    """Where its weights are; null: not here."""


@closed
class ModelsListOutput(TypedDict):
    """The models that can be pulled."""

    models: list[ModelOutput]


@closed
class ModelsPullOutput(TypedDict):
    """Where a model's weights are."""

    name: str
    path: str


@closed
class LoginOutput(TypedDict):
    """A server that was logged in to."""

    url: str
    tools: int


@closed
class McpLoginOutput(TypedDict):
    """The servers of a workflow that were logged in to."""

    servers: list[LoginOutput]
