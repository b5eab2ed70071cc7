"""What inner layers ask of outer ones, owned by those who ask."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, Protocol

from devall.core.events import Event
from devall.core.messages import JsonValue, Message
from devall.core.usage import Estimate

StepKind = Literal["model", "tool", "human", "python", "memory", "clock", "edge", "tools"]
CallKind = Literal["model_call", "tool_call"]


class Scope(Protocol):
    """One node's run, as everything that works for the node sees it.

    The engine gives it; agents, tools and memory take it. Nothing here knows the graph.
    """

    @property
    def node(self) -> str:
        """Id of the node, `S/X` in a subgraph."""
        ...

    @property
    def path(self) -> str:
        """Logical path of this run of the node, `/S@1/X@2`."""
        ...

    def emit(self, event: Event, /) -> None:
        """Tell whoever listens; returns at once."""
        ...

    async def step(
        self,
        kind: StepKind,
        name: str,
        request: JsonValue,
        call: Callable[[], Awaitable[JsonValue]],
        in_doubt: Callable[[], Awaitable[JsonValue]] | None = None,
    ) -> JsonValue:
        """The value of an effect: `call` is made unless the journal holds its result.

        Args:
            kind: What sort of effect.
            name: The step's name within this run of the node, `turn:3/tool:call_ab12`;
                the key is `path/name`.
            request: What decides the result, as JSON; its fingerprint goes with the key.
            call: Makes the effect; its value must be JSON.
            in_doubt: Called instead where an earlier process had begun the effect and nobody
                knows whether it was done; None = it may be made again.
        """
        ...

    def allow(self, kind: CallKind, estimate: Estimate | None = None) -> None:
        """Check the limits of node and run before a call is made.

        Raises:
            LimitReached: the call, or what it is estimated to use, would go over a bound.
        """
        ...


@dataclass(frozen=True, slots=True)
class Question:
    """What a human is asked."""

    node: str
    path: str
    text: str
    """The node's description."""
    inputs: tuple[Message, ...] = ()
    """What the human should see to answer."""


class HumanChannel(Protocol):
    """Where questions to humans go: answers given beforehand, a terminal, nobody."""

    async def ask(self, question: Question, /) -> str:
        """The human's words.

        Raises:
            AnswerNeeded: nobody can be asked.
        """
        ...


@dataclass(frozen=True, slots=True)
class NodeResult:
    """What one run of a node gives."""

    outputs: tuple[Message, ...] = ()
    """What goes along the edges, in order."""
    remembered: tuple[Message, ...] | None = None
    """What the node keeps of its own words where its `context_window` is not 0, tool calls
    and results included; None = the outputs."""
