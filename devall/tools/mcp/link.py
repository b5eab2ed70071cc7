"""What a server of any kind offers to the one who supervises it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from devall.core.errors import SetupError, ToolError
from devall.core.messages import NOTHING, JsonValue
from devall.tools.mcp.elicitation import Elicitation, Reply

WAITS = (0.5, 1.0, 2.0)
"""Seconds before each further try to list a server's tools."""


@dataclass(frozen=True, slots=True)
class McpTool:
    """A tool as a server lists it."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments, as the server sent it."""
    annotations: Mapping[str, bool] = NOTHING
    """`readOnlyHint`, `idempotentHint`, ..., as far as the server says."""
    source: str | None = None
    """`meta.source`, where the server marks its tools."""
    output_schema: Mapping[str, JsonValue] | None = None
    """JSON Schema of the structured content that it promises."""

    @property
    def is_repeatable(self) -> bool:
        """Whether the server says that a second call does no harm."""
        return bool(self.annotations.get("readOnlyHint") or self.annotations.get("idempotentHint"))


@dataclass(frozen=True, slots=True)
class Listing:
    """All that a server offers at one time."""

    tools: tuple[McpTool, ...] = ()
    ttl: float | None = None
    """Seconds for which the server says it holds; None = it does not say."""
    raw: Any = None
    """As the library has it."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a call comes from."""

    tool: str
    node: str
    path: str
    """Of the node's run."""


class Caller(Protocol):
    """Who waits for a call: hears how far it is, and answers what the server asks meanwhile."""

    @property
    def place(self) -> Place:
        """Where the call comes from."""
        ...

    def progress(self, progress: float, total: float | None, message: str) -> None:
        """Take how far the call is."""
        ...

    async def elicit(self, question: Elicitation, among: Sequence[Place] = ()) -> Reply:
        """What a human says to a question of the server.

        Args:
            question: What the server asks.
            among: The calls that it may belong to, where the server does not say which.
        """
        ...

    def held(self) -> AbstractContextManager[None]:
        """A block during which no clock of the call goes on: a human is asked beside."""
        ...


class Link(Protocol):
    """One connection to a server, from its opening to its close.

    `open` and `close` are called by one task; `call` and `list` by any task in between.
    """

    on_changed: Callable[[], None]
    """Called when the server says that its tools are others now."""

    @property
    def protocol(self) -> str:
        """The revision of the protocol that was agreed on; empty before."""
        ...

    async def lost(self) -> None:
        """Return once the server is gone; never for a server that nobody watches."""
        ...

    async def open(self) -> Listing:
        """Reach or start the server, agree on a protocol, list its tools.

        Raises:
            Exception: whatever went wrong; `explain` tells it.
        """
        ...

    async def close(self) -> list[str]:
        """Let go of everything, in bounded time; what went wrong meanwhile, for the log."""
        ...

    async def relist(self) -> Listing:
        """The tools as they are now."""
        ...

    async def call(self, name: str, arguments: Mapping[str, JsonValue], caller: Caller) -> Any:
        """The server's result for a call, as its library has it."""
        ...

    async def explain(self, error: BaseException) -> SetupError:
        """What kept the server from being opened, in words that help."""
        ...

    async def explain_call(self, error: Exception, tool: str) -> CallFailure:
        """What made a call fail, in words that help."""
        ...


@dataclass(frozen=True, slots=True)
class CallFailure:
    """Why a call failed, and what that says of the connection."""

    error: ToolError
    is_lost: bool = False
    """The connection is of no more use: the next call needs another."""
    was_refused: bool = False
    """The server certainly did not begin the call, so that it may be sent again."""


class Connector(Protocol):
    """Makes links to one server, and knows what is worth another try."""

    @property
    def label(self) -> str:
        """What the server is called in errors."""
        ...

    @property
    def startup_timeout(self) -> float:
        """Seconds within which the server must be ready, all tries together."""
        ...

    def link(self) -> Link:
        """A link that is not open yet."""
        ...

    def retry_after(self, error: BaseException, attempt: int) -> float | None:
        """Seconds to wait before another try, None = another try is of no use.

        Args:
            error: What the last try ended with, as `Link.open` raised it.
            attempt: How many tries there were.
        """
        ...
