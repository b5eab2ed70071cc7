"""Boxes made wide enough for the edges in them.

Graphviz leaves curves and labels of a loop's edges partly outside of the loop's box.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from devall.pictures.curves import points_along
from devall.pictures.places import Layout, PlacedArrow, PlacedBox, Rect
from devall.pictures.rows import Holders, holders_of, innermost

_PAD = 8
_EDGE = 4
"""What is left to what stands beside a box, and to the end of the picture."""


def widened(layout: Layout) -> Layout:
    """The layout, boxes as wide as what is in them where there is room for it."""
    holders = holders_of(layout.scene)
    ways = {each.arrow.place: each for each in layout.arrows if each.arrow is not None}
    inside = {
        key: [ways[arrow.place] for arrow in arrows if arrow.place in ways]
        for key, arrows in innermost(layout.scene, holders).items()
    }
    before = {each.box.key: each.rect for each in layout.boxes}
    rects = dict(before)
    for placed in sorted(layout.boxes, key=lambda each: -each.depth):
        key = placed.box.key
        wanted = [rects[each.key] for each in placed.box.children if each.key in rects]
        wanted += [rect for each in inside.get(key, ()) for rect in _bounds(each)]
        left = min([placed.rect.x, *(rect.x - _PAD for rect in wanted)])
        right = max([placed.rect.right, *(rect.right + _PAD for rect in wanted)])
        if left < placed.rect.x or right > placed.rect.right:
            rects[key] = _stretched(layout, placed, (left, right), rects, holders)
    for placed in layout.boxes:  # outer ones first: an inner one has no more room than they have
        for child in placed.box.children:
            if child.key in rects:
                rects[child.key] = _within(
                    rects[child.key], rects[placed.box.key], before[child.key]
                )
    boxes = [replace(each, rect=rects[each.box.key]) for each in layout.boxes]
    return replace(layout, boxes=boxes)


def _within(rect: Rect, outer: Rect, least: Rect) -> Rect:
    """As much of a box as lies within another one, and no less than it was at first."""
    left = min(max(rect.x, outer.x + _EDGE), least.x)
    right = max(min(rect.right, outer.right - _EDGE), least.right)
    return Rect(left, rect.y, right - left, rect.height)


def _stretched(
    layout: Layout,
    placed: PlacedBox,
    wanted: tuple[float, float],
    rects: Mapping[str, Rect],
    holders: Holders,
) -> Rect:
    """A box from here to there, or as far as there is room."""
    key, rect = placed.box.key, placed.rect
    left, right = max(wanted[0], _EDGE), min(wanted[1], layout.width - _EDGE)
    for other in _beside(layout, key, rects, holders):
        if other.y - _EDGE < rect.bottom and other.bottom + _EDGE > rect.y:
            if rect.right <= other.x < right + _EDGE:
                right = max(rect.right, other.x - _EDGE)
            if left - _EDGE < other.right <= rect.x:
                left = min(rect.x, other.right + _EDGE)
    return Rect(left, rect.y, right - left, rect.height)


def _beside(
    layout: Layout, key: str, rects: Mapping[str, Rect], holders: Holders
) -> Iterator[Rect]:
    """What a box must keep away from."""
    yield from layout.pills.values()
    for node in layout.nodes:
        if key not in holders[node.dot.key]:
            yield node.rect
    for name, rect in rects.items():
        if key not in holders[name] and name not in holders[key]:
            yield rect
    for arrow in layout.arrows:
        if arrow.label is not None and not _is_within(arrow, key, holders):
            yield arrow.label


def _is_within(placed: PlacedArrow, key: str, holders: Holders) -> bool:
    if placed.arrow is None:
        return False
    source, target = placed.arrow.source, placed.arrow.target
    return key in holders[source.key][:-1] and key in holders[target.key][:-1]


def _bounds(placed: PlacedArrow) -> Iterator[Rect]:
    if placed.label is not None:
        yield placed.label
    points = list(points_along(placed.way))
    left, right = min(p.x for p in points), max(p.x for p in points)
    yield Rect(left, points[0].y, right - left, 0)
