"""The texts of a node in a picture, and how large they make it, in pixels."""

from __future__ import annotations

from typing import NamedTuple

from devall.pictures import marks
from devall.pictures.scene import Dot, Scene
from devall.pictures.widths import measure, wrapped

NAME_SIZE = 13
TEXT_SIZE = 11
LINE = 16
"""Height of a line of a node."""
LABEL_LINE = 14
ICON = 22
"""Room for a node's icon, at its left."""
PAD = 10
NAME_ROOM = 220
LABEL_ROOM = 170
LEAST_WIDTH = 96

name_width = measure(NAME_SIZE, bold=True)
text_width = measure(TEXT_SIZE)


class Face(NamedTuple):
    """The texts of a node, and how large they make it."""

    names: list[str]
    """Lines of its id."""
    about: list[str]
    """What is below it."""
    deeds: str
    """What it did in a run."""
    width: float
    height: float


def face_of(scene: Scene, dot: Dot) -> Face:
    """The texts of a node, and how large they make it."""
    names = wrapped(dot.lines[0], NAME_ROOM, 2, name_width)
    about = [line for text in dot.lines[1:] for line in wrapped(text, NAME_ROOM, 2, text_width)]
    deeds = marks.deeds(scene, dot)
    widths = [*map(name_width, names), *map(text_width, about)]
    if deeds:
        widths.append(text_width(deeds) + 2)
    lines = len(names) + len(about) + bool(deeds)
    return Face(
        names,
        about,
        deeds,
        max(LEAST_WIDTH, round(max(widths) + ICON + 2 * PAD)),
        lines * LINE + 2 * PAD - 4,
    )
