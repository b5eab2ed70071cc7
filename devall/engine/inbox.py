"""What waits for a node: messages in the order of the moment at which they were sent.

The order never depends on timing. Each entry stands at the place of its *moment*: the level
of its source in the round, below it the round of the loop it lies in, the level there, and so
on inwards; then the position of the edge in the file; then the order of the outputs. An
entry may also clear what came before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import NamedTuple

from devall.core.history import trim
from devall.core.messages import Message

Moment = tuple[int, ...]
"""Where in the run's order a node ran; `()` is before everything."""

Place = tuple[Moment, int, int, int]
"""Moment, edge, output, and 0 for a clearing or 1 for a message."""

TASK: Place = ((), -1, 0, 1)
_by_place = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Clear:
    """Forget what came before: what is not kept, what is kept, or both."""

    context: bool
    kept: bool


class Inputs(NamedTuple):
    """What a node's run sees."""

    messages: tuple[Message, ...]
    """Remembered ones first; those for units of a dynamic edge left out."""
    units: tuple[Message, ...] = ()
    """What came over dynamic edges, to be split into units."""


@dataclass(slots=True)
class Inbox:
    """One node's remembered and waiting messages."""

    window: int
    """The node's `context_window`."""
    dynamic: frozenset[int] = frozenset()
    """Edges whose messages are for units."""
    _remembered: tuple[Message, ...] = ()
    _waiting: list[tuple[Place, Message | Clear]] = field(default_factory=list)

    def put(self, place: Place, entry: Message | Clear) -> None:
        """Add a message or a clearing at its place."""
        self._waiting.append((place, entry))

    def take(self) -> Inputs:
        """Consume what waits; what the window lets stay is remembered for the next run."""
        waiting = self._waiting
        if len(waiting) == 1 and not self._remembered and not self.window and not self.dynamic:
            entry = waiting.pop()[1]
            if isinstance(entry, Message):
                if entry.keep:
                    self._remembered = (entry,)
                return Inputs((entry,))
            return Inputs(())
        waiting.sort(key=_by_place)
        seen: list[tuple[Message, bool]] = [(message, False) for message in self._remembered]
        for (_, edge, _, _), entry in waiting:
            if isinstance(entry, Message):
                seen.append((entry, edge in self.dynamic))
            else:
                seen = [
                    (message, unit)
                    for message, unit in seen
                    if not (entry.kept if message.keep else entry.context)
                ]
        waiting.clear()
        self._remembered = trim([message for message, _ in seen], self.window)
        return Inputs(
            tuple(message for message, unit in seen if not unit),
            tuple(message for message, unit in seen if unit),
        )

    def remember(self, words: Sequence[Message]) -> None:
        """Add the node's own words, where its window is not 0."""
        if self.window:
            self._remembered += tuple(words)
