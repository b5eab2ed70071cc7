"""What stays of a conversation: cuts that never part a tool call from its results."""

from __future__ import annotations

from collections.abc import Sequence

from devall.core.messages import Message


def units(messages: Sequence[Message]) -> list[list[int]]:
    """The positions of messages that are kept or dropped together, oldest unit first.

    An assistant message with tool calls and the tool messages that answer it are one unit,
    also where something stands between them; every other message is one by itself. A tool
    message answers the nearest message before it with a call of that id that is still open.
    A unit's age is that of its newest message.
    """
    found: list[list[int]] = []
    open_calls: dict[str, list[int]] = {}
    for position, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id in open_calls:
            open_calls.pop(message.tool_call_id).append(position)
            continue
        unit = [position]
        found.append(unit)
        for call in message.tool_calls:
            open_calls[call.id] = unit
    found.sort(key=lambda unit: unit[-1])
    return found


def trim(messages: Sequence[Message], window: int) -> tuple[Message, ...]:
    """What a node still remembers of what it saw, in order.

    Args:
        messages: What the run saw, oldest first.
        window: The node's `context_window`: 0 leaves only messages marked *keep*, a negative
            number everything, n the newest messages up to n in all, where kept ones take
            places but are never dropped. A unit too large for the places left goes as a
            whole, and all that is older with it. A unit with a kept message is kept whole.
    """
    if window < 0:
        return tuple(messages)
    if not any(message.keep for message in messages):
        if window == 0:
            return ()
        if len(messages) <= window:
            return tuple(messages)
    staying: set[int] = set()
    loose: list[list[int]] = []
    for unit in units(messages):
        if any(messages[position].keep for position in unit):
            staying.update(unit)
        else:
            loose.append(unit)
    room = window - len(staying)
    for unit in reversed(loose):
        room -= len(unit)
        if room < 0:
            break
        staying.update(unit)
    return tuple(message for position, message in enumerate(messages) if position in staying)
