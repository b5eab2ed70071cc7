"""Where in a file each key and value stands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from devall.core.diagnostics import Position

Path: TypeAlias = tuple[str | int, ...]
"""Keys and indices from the root to a value."""


Spot: TypeAlias = tuple[int, int, int, int]
"""The place of a value with nothing in it, as its parent keeps it: line, column, line and
column of the key. A tuple of numbers, unlike an object, is nothing to the garbage collector;
most of what a large file leaves behind is these."""


class Place:
    """Where a value begins, and what is in it; lines and columns count from 1."""

    __slots__ = ("children", "column", "key_column", "key_line", "line")

    def __init__(
        self,
        line: int,
        column: int,
        children: dict[str, Place | Spot] | list[Place | Spot] | None = None,
        key: tuple[int, int] | None = None,
    ) -> None:
        self.line = line
        self.column = column
        self.children = children
        self.key_line, self.key_column = key or (line, column)

    def child(self, step: str | int) -> Place | None:
        """The place of a key or an item; None where there is none."""
        children = self.children
        kept = None
        if isinstance(children, dict):
            kept = children.get(step) if isinstance(step, str) else None
        elif isinstance(children, list) and isinstance(step, int) and step < len(children):
            kept = children[step]
        return None if kept is None else unpacked(kept)

    @property
    def packed(self) -> Place | Spot:
        """The place as its parent keeps it."""
        if self.children is not None:
            return self
        return self.line, self.column, self.key_line, self.key_column

    def find(self, path: Sequence[str | int]) -> Place:
        """The place of the value at the path, or of the deepest part of it that is there."""
        place = self
        for step in path:
            inner = place.child(step)
            if inner is None:
                return place
            place = inner
        return place

    def find_written(self, path: Sequence[str | int]) -> Place:
        """Like `find`, where the file may have a short form of what the path says.

        An item of a list may be written without the list, and a `config` block left out.
        """
        place = self
        for step in path:
            inner = place.child(step)
            if inner is None and step != "config" and not isinstance(step, int):
                return place
            place = inner or place
        return place

    def position(self, file: str) -> Position:
        """Where the value begins."""
        return Position(file, self.line, self.column)

    def key_position(self, file: str) -> Position:
        """Where the value's key begins; of an item, where the item does."""
        return Position(file, self.key_line, self.key_column)


def unpacked(kept: Place | Spot) -> Place:
    """The place that a parent keeps."""
    if isinstance(kept, Place):
        return kept
    line, column, key_line, key_column = kept
    return Place(line, column, None, (key_line, key_column))
