"""Vectors by the thousand: as text, and which of them are most like one."""

from __future__ import annotations

import base64
import binascii
import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "array[float]"
"""32-bit numbers; length 1, or 0 where there is nothing to compare."""


class VectorTable:
    """Rows that one vector is compared with, all at once."""

    def __init__(self, rows: Iterable[bytes], count: int, dimensions: int) -> None:
        """Copy the rows into one matrix.

        It is numpy's own memory, in which a product is a third faster than in a buffer of
        Python's.

        Args:
            rows: The vectors, 32-bit numbers of this machine.
            count: How many there are at most.
            dimensions: How many numbers a vector has.
        """
        import numpy as np  # a tenth of a second, for those alone who compare

        matrix: NDArray[np.float32] = np.empty((count, dimensions), np.float32)
        taken = 0
        for row in rows:
            matrix[taken] = np.frombuffer(row, np.float32)
            taken += 1
        self._rows = matrix[:taken]
        self.dimensions = dimensions

    def __len__(self) -> int:
        return len(self._rows)

    def nearest(self, sought: Vector, top_k: int, threshold: float = -1) -> Sequence[int]:
        """The numbers of the rows most like a vector; of equals the last one first.

        Args:
            sought: What is looked for; it has the rows' dimensions.
            top_k: The most rows that are given.
            threshold: The least likeness; -1 = any.
        """
        import numpy as np

        if not len(self):
            return ()
        likeness: NDArray[np.float32] = self._rows @ np.frombuffer(sought, np.float32)
        # All that are as good as the last one that is wanted: the order decides below.
        last = max(len(likeness) - top_k, 0)
        least = np.partition(likeness, last)[last] if last else likeness.min()
        candidates: NDArray[np.intp] = np.flatnonzero(likeness >= least)
        order = np.lexsort((-candidates, -likeness[candidates]))
        found = candidates[order][:top_k]
        # A sum of roundings may be a little less than -1 or than what the file says.
        return [int(row) for row in found if likeness[row] >= threshold - 1e-6]


def unit(values: Sequence[float] | Vector) -> Vector:
    """The vector at length 1; one without length as it is."""
    length = sum(x * x for x in values) ** 0.5
    return array("f", (x / length for x in values) if length else values)


def likeness(one: Vector, other: Vector) -> float:
    """Cosine of the angle between two vectors of length 1."""
    return sum(map(float.__mul__, one, other))


def encoded(vector: Vector) -> str:
    """The vector as text: 32-bit little-endian numbers in base64."""
    return base64.b64encode(_little(vector).tobytes()).decode()


def decoded(text: object) -> Vector | None:
    """The vector that `encoded` wrote; None where it is none."""
    if not isinstance(text, str):
        return None
    try:
        return _little(array("f", base64.b64decode(text, validate=True)))
    except (binascii.Error, ValueError):
        return None


def _little(vector: Vector) -> Vector:
    """The vector with its bytes in little-endian order, or back in that of this machine."""
    if sys.byteorder == "big":
        vector = array("f", vector)
        vector.byteswap()
    return vector
