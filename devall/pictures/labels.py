"""Labels of edges moved to where they can be read.

Graphviz now and then puts one upon a node, where clusters meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from devall.pictures.curves import points_along
from devall.pictures.places import Layout, PlacedArrow, Rect

_GAP = 6
"""Between a label and its edge."""


def cleared(layout: Layout) -> Layout:
    """The layout, labels beside their edges where they lay upon nodes."""
    nodes = [*(node.rect for node in layout.nodes), *layout.pills.values()]
    arrows: list[PlacedArrow] = []
    for placed in layout.arrows:
        label = placed.label
        if label is not None and any(label.overlaps(node) for node in nodes):
            taken = [each.label for each in layout.arrows if each.label and each is not placed]
            moved = _moved(placed, label, [*nodes, *taken], layout)
            arrows.append(replace(placed, label=moved))
        else:
            arrows.append(placed)
    return replace(layout, arrows=arrows)


def _moved(placed: PlacedArrow, label: Rect, taken: Sequence[Rect], layout: Layout) -> Rect:
    """The free place beside the edge that is nearest to where the label was."""
    free = [
        rect
        for rect in _places(placed, label)
        if not any(rect.overlaps(each) for each in taken)
        and rect.x >= 0
        and rect.right <= layout.width
    ]
    return min(free, key=lambda rect: abs(rect.x - label.x) + abs(rect.y - label.y), default=label)


def _places(placed: PlacedArrow, label: Rect) -> Iterator[Rect]:
    width, height = label.width, label.height
    for point in points_along(placed.way):
        for x in (point.x + _GAP, point.x - width - _GAP, point.x - width / 2):
            yield Rect(round(x, 2), round(point.y - height / 2, 2), width, height)
