"""A run of a node that is under way, with its calls and units; a loop that is."""

from __future__ import annotations

from dataclasses import dataclass, field

from devall.core.events import UnitStarted
from devall.core.messages import JsonValue

_TAIL = 4000
"""Characters of streaming text that are kept: what is shown is the end of it."""


@dataclass(slots=True)
class Call:
    """A tool call that is under way."""

    tool: str
    arguments: JsonValue
    began: float
    progress: str = ""


@dataclass(slots=True)
class Loop:
    """A loop that is under way."""

    nodes: tuple[str, ...]
    round: int
    bound: int | None = None
    """The round that is the last one at the latest."""


@dataclass(slots=True)
class Units:
    """The units of a dynamic edge that a node runs for; of a tree, those of one layer."""

    total: int
    layer: int = 0
    """Of a tree, from 1."""
    open: set[str] = field(default_factory=set[str])
    """Paths of those that run."""
    done: int = 0
    failed: int = 0

    @property
    def over(self) -> int:
        """How many have come to an end, good or bad."""
        return self.done + self.failed


@dataclass(slots=True)
class Visit:
    """A run of a node that is under way."""

    node: str
    number: int
    began: float
    turn: int = 0
    model: str = ""
    is_asking: bool = False
    """Whether its model was asked and has not said a word yet."""
    note: str = ""
    """Why it waits: a failed attempt that will be repeated, an endpoint that asked for time."""
    until: float = 0
    """When it goes on, where that is known."""
    question: str = ""
    tail: str = ""
    """The end of the text that streams in."""
    unit: str = ""
    """Path of the unit whose model was asked last; the text is that unit's."""
    calls: dict[tuple[str, str], Call] = field(default_factory=dict[tuple[str, str], Call])
    """Tool calls under way, by path and id."""
    units: Units | None = None

    def begin_unit(self, event: UnitStarted) -> None:
        """Take in that a unit begins: the first of a layer begins the layer."""
        if self.units is None or event.layer != self.units.layer:
            self.units = Units(event.units, event.layer)
        self.units.open.add(event.path)

    def end_unit(self, path: str, *, is_failed: bool) -> None:
        """Take in that a unit is over."""
        if self.units is None or path not in self.units.open:
            return
        self.units.open.discard(path)
        if is_failed:
            self.units.failed += 1
        else:
            self.units.done += 1

    def say(self, text: str) -> None:
        """Add a piece of streaming text."""
        self.is_asking = False
        self.tail += text
        if len(self.tail) > 2 * _TAIL:
            self.tail = self.tail[-_TAIL:]
