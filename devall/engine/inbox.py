"""What waits for a node: messages in the order of the moment at which they were sent.

The order never depends on timing. Each entry stands at the place of its *moment*: the level
of its source in the round, below it the round of the loop it lies in, the level there, and so
on inwards; then the position of the edge in the file; then the order of the outputs. An
entry may also clear what came before it.

An inbox is a plain list of entries, and an entry one flat tuple: each node of a wide graph has
one, and the garbage collector looks through them all.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from operator import itemgetter

from devall.core.history import trim
from devall.core.messages import Message

Moment = tuple[int, ...]
"""Where in the run's order a node ran; `()` is before everything."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget what came before: what is not kept, what is kept, or both."""

    context: bool
    kept: bool


Entry = tuple[Moment, int, int, int, Message | Clear]
"""Moment, edge (-1: the task), output, 0 for a clearing or 1 for a message, and what it is."""

_by_place = itemgetter(0, 1, 2, 3)


Seen = tuple[tuple[Message, ...], tuple[Message, ...]]
"""Messages, remembered ones first; and apart from them those for units of a dynamic edge."""


def consume(
    waiting: list[Entry],
    remembered: tuple[Message, ...],
    window: int,
    dynamic: Collection[int],
) -> tuple[Seen, tuple[Message, ...]]:
    """What a run sees, and what is remembered of it for the next run.

    Args:
        waiting: What came in, in any order; it is put in order.
        remembered: What was kept of earlier runs.
        window: The node's `context_window`.
        dynamic: Edges whose messages are for units.
    """
    if len(waiting) == 1 and not (remembered or window or dynamic):
        only = waiting[0][4]  # what nearly every run sees
        if isinstance(only, Message) and not only.keep:
            return ((only,), ()), ()
    waiting.sort(key=_by_place)
    messages = [entry for *_, entry in waiting if isinstance(entry, Message)]
    if not dynamic and len(messages) == len(waiting):
        seen = (*remembered, *messages)
        return (seen, ()), trim(seen, window)
    found = [(message, False) for message in remembered]
    for _, edge, _, _, entry in waiting:
        if isinstance(entry, Message):
            found.append((entry, edge in dynamic))
        else:
            found = [
                (message, unit)
                for message, unit in found
                if not (entry.kept if message.keep else entry.context)
            ]
    plain = tuple(message for message, unit in found if not unit)
    units = tuple(message for message, unit in found if unit)
    return (plain, units), trim([message for message, _ in found], window)
