"""Places along the ways of arrows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from devall.pictures.places import Point

_STEPS = 8


def points_along(way: Sequence[Point]) -> Iterator[Point]:
    """Places along a way: a start, and three corners for each Bézier curve."""
    for start in range(0, len(way) - 3, 3):
        a, b, c, d = way[start : start + 4]
        for step in range(_STEPS + 1):
            t = step / _STEPS
            u = 1 - t
            weights = u**3, 3 * u**2 * t, 3 * u * t**2, t**3
            yield Point(
                sum(w * corner.x for w, corner in zip(weights, (a, b, c, d), strict=True)),
                sum(w * corner.y for w, corner in zip(weights, (a, b, c, d), strict=True)),
            )
