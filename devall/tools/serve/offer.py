"""What a server offers: a tool's description, and the call behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from devall.core.messages import NOTHING, JsonValue
from devall.core.ports import Scope
from devall.tools.base import ToolResult, ToolSpec


@dataclass(frozen=True, slots=True)
class Reply:
    """What a call gives to a client."""

    result: ToolResult
    read: Callable[[str], bytes]
    """The bytes of an attachment that the result names.

    It raises FileNotFoundError where there is none.
    """
    metadata: Mapping[str, JsonValue] = NOTHING
    """What a program may want to know beside the result."""


class Call(Protocol):
    """Does the work of a tool."""

    def __call__(
        self, arguments: Mapping[str, JsonValue], scope: Scope, session: str, /
    ) -> Awaitable[Reply]:
        """What the tool gives; a failure is a result that says so.

        Args:
            arguments: As the client sent them.
            scope: Takes what the tool reports meanwhile.
            session: The same text for all calls of one session; empty where there is none.
        """
        ...


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool of a server."""

    spec: ToolSpec
    call: Call
