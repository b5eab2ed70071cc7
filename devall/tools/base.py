"""What a tool is, and what a set of tools is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from devall.core.messages import NOTHING, JsonValue, Part, TextPart
from devall.core.ports import Scope

IDEMPOTENT = "idempotent"
"""In a tool's metadata: the workflow or the function says that a call may be repeated."""
IN_DOUBT = "in_doubt"
"""In a tool's metadata: what is done with a call that an interrupted run leaves in doubt."""


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as it is offered."""

    name: str
    """What the model calls it: legal for every provider, unique within its node."""
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments: an object."""
    metadata: Mapping[str, JsonValue] = NOTHING
    """`source` (function, mcp), `server`, `mode` (remote, local), `original_name`, ..."""

    @property
    def is_repeatable(self) -> bool:
        """Whether a call may be made twice: it changes nothing, or nothing the second time."""
        marks = ("readOnlyHint", "idempotentHint", IDEMPOTENT)
        return any(self.metadata.get(mark) is True for mark in marks)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What a call gives to the model: parts, and whether it reports a failure."""

    parts: tuple[Part, ...]
    is_error: bool = False

    @property
    def text(self) -> str:
        """The text parts, joined by newline."""
        return "\n".join(part.text for part in self.parts if isinstance(part, TextPart))

    def redacted(self, redact: Callable[[str], str]) -> ToolResult:
        """The result without the secrets that its texts hold."""
        parts = tuple(
            TextPart(redact(part.text)) if isinstance(part, TextPart) else part
            for part in self.parts
        )
        return replace(self, parts=parts)


class Toolset(Protocol):
    """Tools from one source; wrappers (prefixed, filtered, ...) have the same shape."""

    async def open(self) -> None:
        """Get ready: reach the server, import the functions.

        Raises:
            SetupError: the source cannot be used.
        """
        ...

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools, in the source's order."""
        ...

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run one tool.

        Raises:
            ToolError: not found, wrong arguments, failed, timed out.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what `open` took."""
        ...


@runtime_checkable
class ChangingToolset(Protocol):
    """A toolset whose tools may become others while it is open."""

    async def refresh(self) -> bool:
        """Take over the tools as they are now; whether they are others than before.

        Raises:
            SetupError: the source cannot be used any more.
        """
        ...


@runtime_checkable
class HidingToolset(Protocol):
    """A toolset that keeps some tools of its source from the node."""

    def hidden(self) -> Collection[str]:
        """The names of the tools that are there and not offered, as `specs` last found them."""
        ...
