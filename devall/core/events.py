"""What happens in a run, as values; sinks make logs, progress and totals of them.

`path` is the logical path of what the event belongs to: empty for the run, `/writer@2` for
the second run of node writer, `/S@1/X@1` inside a subgraph, `/M@1/unit:3` for the third unit
of a dynamic edge. Times are seconds since the epoch, durations are seconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from devall.core.messages import JsonValue, Message
from devall.core.outcome import Outcome
from devall.core.shape import GraphShape
from devall.core.usage import TokenUsage, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """What all events have."""

    path: str = ""
    at: float = field(default_factory=time.time)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(Event):
    """A run begins."""

    run_id: str
    workflow: str
    task: str = ""
    nodes: tuple[str, ...] = ()
    """Ids of the root graph's nodes, in file order."""
    graph: GraphShape | None = None
    """What the root graph is made of; None: whoever wrote the event did not say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResumed(Event):
    """A process goes on with a run that another one began; follows the first event."""

    run_id: str
    turn: int
    """Which process it is, from 2."""
    kept: int
    """Steps that stand in the journal."""
    changed: tuple[str, ...] = ()
    """Nodes that are done anew: the file has them otherwise than before, or it was asked for."""
    following: tuple[str, ...] = ()
    """Nodes that are done anew since they come after those."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFinished(Event):
    """A run is over; always the last event."""

    run_id: str
    outcome: Outcome
    answer: str | None
    usage: Usage
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted(Event):
    """A node begins; `inputs` are what it sees."""

    node: str
    visit: int
    inputs: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFinished(Event):
    """A node is done; `outputs` are what it says."""

    node: str
    visit: int
    seconds: float
    outputs: tuple[Message, ...] = ()
    log_output: bool = True
    """Whether the outputs may stand in logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFailed(Event):
    """A node failed; `continued` says that the run goes on without it."""

    node: str
    visit: int
    seconds: float
    code: str
    message: str
    hint: str = ""
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitStarted(Event):
    """One unit of a dynamic edge begins; its inputs are those of its node, told apart."""

    node: str
    unit: int
    """Its number, from 1."""
    units: int
    """How many there are; of a tree, in its layer."""
    layer: int = 0
    """0 for `map`, from 1 for `tree`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFinished(Event):
    """One unit of a dynamic edge is done; `outputs` are what it says."""

    node: str
    unit: int
    units: int
    seconds: float
    layer: int = 0
    outputs: tuple[Message, ...] = ()
    log_output: bool = True
    """Whether the outputs may stand in logs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitFailed(Event):
    """One unit of a dynamic edge failed; `continued` says that the node goes on without it."""

    node: str
    unit: int
    units: int
    seconds: float
    code: str
    message: str
    layer: int = 0
    hint: str = ""
    continued: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSkipped(Event):
    """A node will not run: nothing triggered it."""

    node: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRound(Event):
    """A loop begins its round number `round` (from 1)."""

    loop: tuple[str, ...]
    """Ids of the loop's nodes in file order."""
    round: int
    bound: int | None = None
    """The round that is the last one at the latest, by counters and limits; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLeft(Event):
    """A loop is over."""

    loop: tuple[str, ...]
    rounds: int
    exited: bool
    """False: it ended since nothing triggered another round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EdgeFired(Event):
    """An edge carried a message, or triggered its target, or both."""

    source: str
    target: str
    edge: int
    """Position in the file's list of edges, from 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallStarted(Event):
    """A request goes to a model."""

    node: str
    provider: str
    model: str
    turn: int
    attempt: int = 1
    messages: tuple[Message, ...] = ()
    """Those of the request that no earlier one of the same conversation held: of the first
    turn the whole prompt, later on the results of tools and what else came in. Empty for an
    attempt that repeats another."""
    tools: tuple[str, ...] = ()
    """Names of the tools that the model is offered."""
    server: str = ""
    """Host and port of the endpoint; empty for a model in process."""
    replayed: bool = False
    """True: what follows stands in the journal; nothing is called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta(Event):
    """A piece of a model's text as it streams in; never journaled."""

    node: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallFinished(Event):
    """A model has answered."""

    node: str
    provider: str
    model: str
    turn: int
    seconds: float
    usage: TokenUsage | None = None
    """None: the provider did not say."""
    finish_reason: str = ""
    replayed: bool = False
    """True: the value came from the journal; nothing was called."""
    answered_by: str = ""
    """The model as the endpoint names it."""
    estimate: TokenUsage | None = None
    """Where `usage` is None: what the lengths of request and answer suggest."""
    usd: float | None = None
    """What it cost; None: unknown. The engine puts it in."""
    reply: Message | None = None
    """What the model said: its text and the tool calls that it asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallFailed(Event):
    """A request failed; `wait` is the time until it is repeated, None = not repeated."""

    node: str
    provider: str
    model: str
    turn: int
    attempt: int
    message: str
    code: str = ""
    """The HTTP status, or the kind of failure where there was none; empty: not known any more."""
    wait: float | None = None
    usage: TokenUsage | None = None
    """What it was charged all the same: nothing as a rule; None: nobody knows."""
    usd: float | None = None
    """What it cost; None: unknown. The engine puts it in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCallDelayed(Event):
    """A request waits, since its endpoint has asked another one to wait (`Retry-After`)."""

    node: str
    provider: str
    model: str
    turn: int
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryCut(Event):
    """A request holds less than the whole conversation, so that it fits the model's window."""

    node: str
    turn: int
    left_out: int
    """Messages that the model does not see any more."""
    shortened: int
    """Results of tools of which it sees head and tail."""
    tokens: int
    """What the request holds now; an estimate."""
    most: int
    """What it may hold."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallStarted(Event):
    """A tool is called."""

    node: str
    call_id: str
    tool: str
    arguments: JsonValue
    server: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolProgress(Event):
    """A tool says how far it is."""

    node: str
    call_id: str
    tool: str
    progress: float
    total: float | None = None
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallFinished(Event):
    """A tool has answered, or failed (`is_error`)."""

    node: str
    call_id: str
    tool: str
    seconds: float
    result: str
    """The result's text as the model sees it."""
    is_error: bool = False
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAsked(Event):
    """A human is asked."""

    node: str
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAnswered(Event):
    """A human has answered."""

    node: str
    answer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryIndexed(Event):
    """A memory store of files has read some of those that are new or have changed."""

    store: str
    done: int
    """Files that were read."""
    files: int
    """Files that there are to read."""
    passages: int
    """Passages that were found in them so far."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingFinished(Event):
    """An endpoint has made vectors of texts, for a memory store."""

    store: str
    provider: str
    model: str
    texts: int
    """How many."""
    seconds: float
    usage: TokenUsage | None = None
    """None: the endpoint did not say."""
    usd: float | None = None
    """What it cost; None: unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(Event):
    """Something that a user should know, though the run goes on."""

    code: str
    message: str
    node: str = ""


Sink = Callable[[Event], None]
"""Whatever takes events; it must return at once and never raise."""
