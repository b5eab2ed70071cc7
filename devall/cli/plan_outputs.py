"""What `devall plan --json` prints."""

from __future__ import annotations

from typing import Literal

from typing_extensions import TypedDict

from devall.cli.outputs import closed


@closed
class MissingOutput(TypedDict):
    """Why there is no bound."""

    node: str | None
    """null: the run."""
    key: str | None
    """The key or option that would give one; null: what it says is no key's doing, and is
    bounded where it is read."""
    why: str


@closed
class BoundOutput(TypedDict):
    """An upper bound."""

    at_most: float | None
    """null: there is no bound, or no price."""
    rests_on: list[str]
    """Limits and windows that hold it down."""
    missing: list[MissingOutput]
    """Why there is none."""


@closed
class CostOutput(TypedDict):
    """What is used at most; failed attempts of model calls are not in it, but for `attempts`."""

    model_calls: BoundOutput
    attempts: BoundOutput
    """Model calls, each tried as often as `retry` allows."""
    tool_calls: BoundOutput
    input_tokens: BoundOutput
    output_tokens: BoundOutput
    tokens: BoundOutput
    usd: BoundOutput


@closed
class LeastOutput(TypedDict):
    """What a run that completes uses at least."""

    runs: int
    model_calls: int
    input_tokens: int
    usd: float | None
    """null: no price is known."""


@closed
class PromptOutput(TypedDict):
    """What is known of an agent's first request, in estimated tokens."""

    role: int
    skills: int
    output_schema: int
    tools: int
    inputs: BoundOutput
    """Messages that one run sees, at most."""
    largest_request: BoundOutput
    """Of all its requests."""


@closed
class PlanToolOutput(TypedDict):
    """A source of tools."""

    source: str
    state: str
    """`known`, `not contacted`, or why it cannot be used."""
    tools: list[str] | None
    """null: not known."""


@closed
class PlanAgentOutput(TypedDict):
    """How an agent asks its model."""

    provider: str
    model: str
    window: int | None
    answer_tokens: BoundOutput
    """Of one answer."""
    prompt: PromptOutput
    calls_per_run: BoundOutput
    turns: BoundOutput
    thoughts: BoundOutput
    repairs: int
    attempts: int
    """Of each call."""
    sources: list[PlanToolOutput]
    skills: list[str]
    memories: list[str]


@closed
class PlanNodeOutput(TypedDict):
    """A node, in all its runs together."""

    node: str
    type: str
    runs: BoundOutput
    """Each unit counts as one."""
    units: Literal["known", "assumed", "unknown"] | None
    """Of a node with a dynamic edge into it."""
    cost: CostOutput
    each: CostOutput
    """Of one run, or of one unit."""
    at_least: LeastOutput
    seconds: BoundOutput
    """Of one run, all its units included."""
    agent: PlanAgentOutput | None


@closed
class RoundsOutput(TypedDict):
    """How many rounds a loop takes at most each time it is entered."""

    at_most: int
    key: str
    """`max_iterations`, `limits.max_loop_iterations`; `edges`: a way out that is always taken."""
    node: str | None
    """The counter, or the node that always leaves the loop."""
    loose_counters: list[str]
    """Counters that need not run in every round."""
    timers: list[str]
    trusted_functions: list[str]
    """Conditions that are taken to say the same of the same text."""


@closed
class PlanStepOutput(TypedDict):
    """A node, or a loop by its position in `loops`."""

    node: str | None
    loop: int | None


@closed
class PlanLoopOutput(TypedDict):
    """A loop, in all its rounds together."""

    graph: str
    nodes: list[str]
    rounds: RoundsOutput
    cost: CostOutput
    order: list[list[PlanStepOutput]]


@closed
class PlanGraphOutput(TypedDict):
    """The workflow's graph, or that of a subgraph in all its runs together."""

    graph: str
    """Name of the subgraph's node; empty: the workflow."""
    order: list[list[PlanStepOutput]]
    """Stages; what stands in one may run side by side."""
    cost: CostOutput
    at_least: LeastOutput
    seconds: BoundOutput
    """Of one run, without waiting for humans."""


@closed
class ExceededOutput(TypedDict):
    """A bound of the command line that the worst case may go over."""

    option: str
    bound: float
    worst: float | None
    """null: no bound, or no price."""
    message: str


@closed
class PlanOutput(TypedDict):
    """What a run will do, and at most cost."""

    exit_code: int
    workflow: str
    task_tokens: int | None
    """Estimated; null: not given."""
    graphs: list[PlanGraphOutput]
    """The workflow's first."""
    loops: list[PlanLoopOutput]
    nodes: list[PlanNodeOutput]
    humans: list[str]
    """Nodes that wait for a human, which no time counts."""
    largest_call: CostOutput
    """The largest model call: by so much what is under way may go over a limit."""
    exceeded: list[ExceededOutput]
    notes: list[str]
    """What the numbers rest on, and what is not in them."""
