"""What went wrong with a server, from what its library raised."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import mcp_types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

SHOWN = 200
"""Characters of a foreign text that an error shows."""


def chain(error: BaseException) -> Iterator[BaseException]:
    """An error and all that stands behind it, members of groups included, outermost first."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        each = waiting.pop(0)
        if id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(each, BaseExceptionGroup):
            waiting.extend(cast("BaseExceptionGroup[BaseException]", each).exceptions)
            continue
        yield each
        behind = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
        if behind is not None:
            waiting.append(behind)


def is_closed(error: BaseException) -> bool:
    """Whether the conversation ended under a request.

    Servers use the same code for errors of their own, so the library's words count as well.
    """
    return any(
        isinstance(each, MCPError)
        and each.code == mcp_types.CONNECTION_CLOSED
        and str(each).startswith(("Connection closed", "SSE stream"))
        for each in chain(error)
    )


def describe(error: BaseException) -> str:
    """An error in one line that a user can read."""
    known = list(chain(error))
    for each in known:
        if isinstance(each, MCPError):
            return _shown(str(each))
        if isinstance(each, ValidationError):
            first = each.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            return f"an answer that is not as the protocol has it: {place}: {first['msg']}"
    for each in reversed(known):
        if isinstance(each, ConnectionRefusedError):
            return "connection refused"
        if isinstance(each, OSError) and each.errno is not None:
            return _shown(each.strerror or str(each))
    spoken = [each for each in known if str(each)] or known
    found = spoken[-1]
    return _shown(f"{type(found).__name__}: {found}")


def _shown(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 2 * SHOWN else f"{line[:SHOWN]} ... {line[-SHOWN:]}"
