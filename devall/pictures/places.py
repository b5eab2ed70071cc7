"""Where everything of a picture is, in pixels; y grows downwards."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from devall.pictures.faces import Face
from devall.pictures.scene import Arrow, Box, Dot, Scene


class Point(NamedTuple):
    """A place."""

    x: float
    y: float


class Rect(NamedTuple):
    """A rectangle by its top left corner."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its lower side."""
        return self.y + self.height

    def overlaps(self, other: Rect) -> bool:
        """Whether they have more than a border in common."""
        return (
            self.x < other.right
            and other.x < self.right
            and self.y < other.bottom
            and other.y < self.bottom
        )


@dataclass(frozen=True, slots=True)
class PlacedNode:
    """Where a node is."""

    dot: Dot
    face: Face
    rect: Rect


@dataclass(frozen=True, slots=True)
class PlacedBox:
    """Where a loop or subgraph is."""

    box: Box
    rect: Rect
    title: str
    depth: int
    """How many boxes it is in."""


@dataclass(frozen=True, slots=True)
class PlacedArrow:
    """The way of an arrow."""

    arrow: Arrow | None
    """None: it comes from `start`, or leads to `answer`."""
    is_silent: bool
    """Whether nothing went along it in the run that is shown."""
    way: tuple[Point, ...]
    """A start and three points for each Bézier curve."""
    tip: Point
    """Where its head points, from the end of the way."""
    lines: tuple[str, ...] = ()
    label: Rect | None = None


@dataclass(slots=True)
class Layout:
    """A picture laid out."""

    scene: Scene
    width: float = 0
    height: float = 0
    nodes: list[PlacedNode] = field(default_factory=list[PlacedNode])
    boxes: list[PlacedBox] = field(default_factory=list[PlacedBox])
    """Outer ones first."""
    arrows: list[PlacedArrow] = field(default_factory=list[PlacedArrow])
    pills: dict[str, Rect] = field(default_factory=dict[str, Rect])
    """`start` and `answer`."""
