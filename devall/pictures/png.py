"""A picture as PNG: its SVG, drawn by resvg."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from devall.core.errors import SetupError, UsageError
from devall.loading.loader import LoadedGraph
from devall.pictures.course import Course
from devall.pictures.fonts import font_files, unusual
from devall.pictures.layout import layout_of
from devall.pictures.looks import FONTS
from devall.pictures.places import Layout
from devall.pictures.scene import scene_of
from devall.pictures.svg import drawn

MOST_PIXELS = 32_000_000
"""Of a whole picture; four bytes each are needed to draw it."""
LONGEST_SIDE = 32_000
"""Pixels; viewers show nothing that is longer."""
LEAST_SCALE = 0.25
"""Below it nothing can be read."""
MOST_LOOKED_AT = 200
"""Characters that are looked for in the fonts."""
_UNKNOWN = "\U0010fffd"
"""A character that no font has."""


@dataclass(frozen=True, slots=True)
class Png:
    """A picture of pixels."""

    data: bytes
    notes: tuple[str, ...] = ()
    """What is otherwise than asked for, in words."""


def png(
    graph: LoadedGraph,
    course: Course | None = None,
    *,
    theme: Literal["light", "dark"] = "light",
    scale: float = 2,
    clean: Callable[[str], str] = str,
) -> Png:
    """The graph as a PNG picture, and what a run of it did.

    Args:
        graph: The graph.
        course: What a run did.
        theme: A PNG cannot follow its viewer.
        scale: Pixels for each pixel of the SVG; less is taken where it would become too large.
        clean: Takes out of the SVG what must not be seen.

    Raises:
        SetupError: nothing is installed that lays out or draws, or there is no font.
        UsageError: the picture would be too large to be of use.
        DevallError: it could not be laid out.
    """
    draw = _resvg()
    layout = layout_of(scene_of(graph, course))
    fitting = _fitting(layout, scale)
    texts = _texts(layout)
    notes: list[str] = []
    _check_font(draw)
    if fitting < scale:
        notes.append(f"the picture is so large that it is drawn at scale {fitting:g}")
    if missing := _missing(draw, texts):
        shown = ", ".join(missing[:8]) + (", …" if len(missing) > 8 else "")
        notes.append(
            f"no font on this machine has {shown}: boxes stand for them"
            " (a font for Chinese, Japanese and Korean is fonts-noto-cjk)"
        )
    return Png(draw(clean(drawn(layout, theme=theme)), fitting), tuple(notes))


def _fitting(layout: Layout, scale: float) -> float:
    width, height = layout.width, layout.height
    most = min(math.sqrt(MOST_PIXELS / (width * height)), LONGEST_SIDE / max(width, height))
    if most < LEAST_SCALE:
        raise UsageError(
            f"a PNG picture of this graph would be too large ({width:.0f} × {height:.0f})",
            hint="--format svg has no such bound",
        )
    return scale if scale <= most else math.floor(most * 100) / 100


def _texts(layout: Layout) -> list[str]:
    found = [box.title for box in layout.boxes]
    for node in layout.nodes:
        found += [*node.face.names, *node.face.about, node.face.deeds]
    for arrow in layout.arrows:
        found += arrow.lines
    return found


_Draw = Callable[[str, float], bytes]


def _resvg() -> _Draw:
    try:
        from resvg_py import svg_to_bytes
    except ImportError as error:
        raise SetupError(
            "nothing is installed that draws PNG pictures",
            hint="pip install devall[pictures]; --format svg needs less",
        ) from error
    extra = font_files()

    def draw(text: str, scale: float) -> bytes:
        return svg_to_bytes(svg_string=text, zoom=scale, font_files=extra)

    return draw


def _check_font(draw: _Draw) -> None:
    """See that letters are drawn at all: without a font they vanish, and nothing else says so."""
    if draw(_probe("A"), 1) == draw(_probe(""), 1):
        raise SetupError(
            "there is no font on this machine, so that a PNG picture would have no text",
            hint="pip install devall[pictures] brings one; or install fonts-dejavu-core",
        )


def _missing(draw: _Draw, texts: list[str]) -> list[str]:
    """Characters of the texts that no font has."""
    unknown = draw(_probe(_UNKNOWN), 1)
    looked_at = unusual(texts)[:MOST_LOOKED_AT]
    return [char for char in looked_at if draw(_probe(char), 1) == unknown]


def _probe(text: str) -> str:
    quoted = FONTS.replace('"', "'")
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 30" width="40" height="30">'
        f'<text x="5" y="20" font-size="14" font-family="{quoted}">{text}</text></svg>'
    )
