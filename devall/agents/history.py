"""A conversation as an endpoint takes it: each tool call followed by its one result."""

from __future__ import annotations

from collections.abc import Sequence

from devall.core.history import units
from devall.core.messages import Message

UNKNOWN_OUTCOME = "Cancelled before its result was known; whether it had an effect is unknown."
"""Stands as the result of a call that has none."""


def answered(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The conversation with exactly one result for each call, right behind it, in order.

    A missing result is filled in as an error with `UNKNOWN_OUTCOME`; a result that belongs
    to no call is dropped. A conversation that is whole is given back unchanged.
    """
    found: list[Message] = []
    for unit in sorted(units(messages)):
        head = messages[unit[0]]
        if head.role == "tool":
            continue
        found.append(head)
        results = {messages[p].tool_call_id: messages[p] for p in unit[1:]}
        for call in head.tool_calls:
            result = results.pop(call.id, None)
            found.append(
                result
                or Message(
                    "tool", UNKNOWN_OUTCOME, head.source, tool_call_id=call.id, is_error=True
                )
            )
    return tuple(found)
