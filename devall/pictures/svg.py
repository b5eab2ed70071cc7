"""A picture as SVG: one element that needs nothing else, for a file or within a page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from xml.sax.saxutils import escape

from devall.core.amounts import count
from devall.loading.loader import LoadedGraph
from devall.pictures import marks
from devall.pictures.course import Course
from devall.pictures.faces import ICON, LABEL_LINE, LINE, PAD
from devall.pictures.icons import KINDS, STATES
from devall.pictures.layout import layout_of
from devall.pictures.looks import Theme, style
from devall.pictures.places import Layout, PlacedArrow, PlacedBox, PlacedNode, Point, Rect
from devall.pictures.scene import Box, Dot, Scene, line_of, scene_of
from devall.pictures.widths import measure

Link = Callable[[str], str]
"""Where a click on a node leads, by its id (`S/X`); an empty text: nowhere."""

_end_width = measure(11, bold=True)


def svg(
    graph: LoadedGraph,
    course: Course | None = None,
    *,
    theme: Theme = "auto",
    ids: str = "",
    link: Link | None = None,
) -> str:
    """The graph as an `<svg>` element, and what a run of it did.

    Args:
        graph: The graph.
        course: What a run did.
        theme: `auto` follows the viewer, or a page's `data-theme` at its root.
        ids: What the ids within begin with; pictures on one page need different ones.
        link: Makes each node a link to there.

    Raises:
        SetupError: nothing is installed that lays out.
        DevallError: it could not be laid out.
    """
    return drawn(layout_of(scene_of(graph, course)), theme=theme, ids=ids, link=link)


def drawn(layout: Layout, *, theme: Theme = "auto", ids: str = "", link: Link | None = None) -> str:
    """A layout as an `<svg>` element; see `svg`."""
    return "\n".join(_Drawing(layout, theme, ids, link).lines()) + "\n"


class _Drawing:
    def __init__(self, layout: Layout, theme: Theme, ids: str, link: Link | None) -> None:
        self._layout = layout
        self._scene: Scene = layout.scene
        self._theme: Theme = theme
        self._ids = ids
        self._link = link

    def lines(self) -> Iterator[str]:
        """The lines of the element."""
        layout, ids = self._layout, self._ids
        width, height = _number(layout.width), _number(layout.height)
        role = "img" if self._link is None else "group"
        yield (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="devall-picture {self._theme}"'
            f' viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="{role}"'
            f' aria-labelledby="{_attribute(ids)}title" aria-describedby="{_attribute(ids)}desc">'
        )
        yield f'<title id="{_attribute(ids)}title">{_text(self._scene.title)}</title>'
        yield f'<desc id="{_attribute(ids)}desc">{_text(self._description())}</desc>'
        yield f"<style>\n{style(self._theme)}\n</style>"
        yield f'<rect class="ground" width="{width}" height="{height}"/>'
        for box in layout.boxes:
            yield from self._box(box)
        for arrow in layout.arrows:
            yield from self._arrow(arrow)
        for box in layout.boxes:
            yield from self._title(box)
        for arrow in layout.arrows:
            yield from self._label(arrow)
        for word, rect in layout.pills.items():
            yield from _pill(word, rect)
        for node in layout.nodes:
            yield from self._linked(node.dot, self._node(node))
        yield "</svg>"

    def _description(self) -> str:
        """The picture in words, for those who do not see it."""
        layout, scene = self._layout, self._scene
        nodes = len(layout.nodes) + sum(each.box.kind == "subgraph" for each in layout.boxes)
        told = f"A workflow of {count(nodes, 'node')} and {count(len(scene.arrows), 'edge')}"
        if scene.course is None:
            return f"{told}."
        states = [marks.state_of(scene, node.dot) or marks.UNBEGUN for node in layout.nodes]
        many = [f"{states.count(state)} {state}" for state in dict.fromkeys(states)]
        return f"{told}, as it ran: {', '.join(many)}. Dotted edges did not fire."

    def _linked(self, item: Dot | Box, lines: Iterable[str]) -> Iterator[str]:
        target = self._link(item.name) if self._link is not None and item.name else ""
        if not target:
            yield from lines
            return
        words = _attribute(marks.sentence(self._scene, item))
        yield f'<a href="{_attribute(target)}" aria-label="{words}">'
        yield from lines
        yield "</a>"

    def _node(self, node: PlacedNode) -> Iterator[str]:
        dot, face, rect = node.dot, node.face, node.rect
        state = marks.state_of(self._scene, dot)
        yield self._group(["node", dot.kind.replace("_", "-")], dot.name, node)
        rounding = {"passthrough": rect.height / 2, "python": 3, "literal": 3}.get(dot.kind, 9)
        yield _rect(rect, "face", rounding)
        left, y = rect.x + PAD, rect.y + PAD - 2
        yield _icon(dot.kind, left, y + 1)
        left += ICON
        for line in face.names:
            yield _words(left, y + 12.5, line, "name")
            y += LINE
        for line in face.about:
            yield _words(left, y + 11.5, line, "about")
            y += LINE
        if face.deeds:
            middle = Point(rect.x + PAD + 7, y + 8)
            yield f'<circle class="badge" cx="{_number(middle.x)}" cy="{_number(middle.y)}" r="6"/>'
            place = f"translate({_number(middle.x)} {_number(middle.y)})"
            yield f'<path class="mark" transform="{place}" d="{STATES[state]}"/>'
            yield _words(left, y + 11.5, face.deeds, "about")
        yield "</g>"

    def _group(self, classes: Sequence[str], name: str, placed: PlacedNode | PlacedBox) -> str:
        scene = self._scene
        item = placed.dot if isinstance(placed, PlacedNode) else placed.box
        told = list(classes)
        data = ""
        if scene.course is not None:
            state = marks.state_of(scene, item)
            told.append(state or "unbegun")
            told += ["dim"] if marks.is_dim(scene, item) else []
            data = f' data-state="{state or "unbegun"}"'
        words = _text(marks.sentence(scene, item))
        return f'<g class="{" ".join(told)}" data-node="{_attribute(name)}"{data}><title>{words}</title>'

    def _box(self, placed: PlacedBox) -> Iterator[str]:
        box, rect = placed.box, placed.rect
        if box.kind == "subgraph":
            opening = self._group(["subgraph"], box.name, placed)
        else:
            opening = f'<g class="loop"><title>{_text(marks.title(self._scene, box))}</title>'
        lines = [
            opening,
            _rect(rect, "box", 10),
            "</g>",
        ]
        yield from self._linked(box, lines)

    def _title(self, placed: PlacedBox) -> Iterator[str]:
        """What stands over a box, above the arrows that cross it."""
        rect = placed.rect
        dim = (
            " dim"
            if placed.box.kind == "subgraph" and marks.is_dim(self._scene, placed.box)
            else ""
        )
        yield f'<g class="{placed.box.kind}{dim}">'
        yield _icon(placed.box.kind, rect.x + 10, rect.y + 7)
        yield _words(rect.x + 10 + ICON, rect.y + 19, placed.title, "title")
        yield "</g>"

    def _arrow(self, placed: PlacedArrow) -> Iterator[str]:
        arrow, way, tip = placed.arrow, placed.way, placed.tip
        classes = ["edge", "silent"] if placed.is_silent else ["edge"]
        words = ""
        if arrow is not None:
            fired = self._scene.fired(arrow)
            classes += ["back"] if arrow.is_back else []
            classes += ["thick"] if arrow.is_thick else []
            classes += ["dashed"] if arrow.is_dashed else []
            words = f"{line_of(arrow.source.name)} → {line_of(arrow.target.name)}"
            words += f": {arrow.label}" if arrow.label else ""
            if fired is not None:
                words += f" (fired {count(fired, 'time')})" if fired else " (did not fire)"
        yield f'<g class="{" ".join(classes)}">' + (
            f"<title>{_text(words)}</title>" if words else ""
        )
        curves = " ".join(f"{_number(x)} {_number(y)}" for x, y in way[1:])
        yield f'<path class="way" d="M{_number(way[0].x)} {_number(way[0].y)}C{curves}"/>'
        yield f'<path class="head" d="{_head(way[-1], tip)}"/>'
        yield "</g>"

    def _label(self, placed: PlacedArrow) -> Iterator[str]:
        if placed.arrow is None or placed.label is None:
            return
        silent = " silent" if placed.is_silent else ""
        yield f'<g class="edge{silent}">'
        x, y = placed.label.x + placed.label.width / 2, placed.label.y + 11.5
        for line in placed.lines:
            yield _words(x, y, line, "label", "middle")
            y += LABEL_LINE
        yield "</g>"


def _pill(word: str, rect: Rect) -> Iterator[str]:
    yield f'<g class="end">{_rect(rect, "pill", rect.height / 2)}'
    yield _words(rect.x + rect.width / 2, rect.y + 18, word, "", "middle")
    yield "</g>"


def _head(base: Point, tip: Point) -> str:
    """The outline of an arrow's head."""
    along = tip.x - base.x, tip.y - base.y
    length = (along[0] ** 2 + along[1] ** 2) ** 0.5 or 1
    across = -along[1] / length * 3.6, along[0] / length * 3.6
    corners = (
        (base.x + across[0], base.y + across[1]),
        (base.x - across[0], base.y - across[1]),
        tip,
    )
    return "M" + "L".join(f"{_number(x)} {_number(y)}" for x, y in corners) + "z"


def _rect(rect: Rect, name: str, rounding: float) -> str:
    return (
        f'<rect class="{name}" x="{_number(rect.x)}" y="{_number(rect.y)}"'
        f' width="{_number(rect.width)}" height="{_number(rect.height)}"'
        f' rx="{_number(min(rounding, rect.height / 2))}"/>'
    )


def _icon(kind: str, x: float, y: float) -> str:
    place = f"translate({_number(x)} {_number(y)})"
    return f'<path class="icon" transform="{place} scale(0.9)" d="{KINDS[kind]}"/>'


def _words(x: float, y: float, words: str, name: str, anchor: str = "") -> str:
    named = f' class="{name}"' if name else ""
    anchored = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{named} x="{_number(x)}" y="{_number(y)}"{anchored}>{_text(words)}</text>'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


def _text(words: str) -> str:
    """Words between tags; what XML may not hold is a replacement character."""
    return escape("".join(c if _is_legal(c) else "\ufffd" for c in words))


def _attribute(words: str) -> str:
    return _text(words).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")


def _is_legal(char: str) -> bool:
    """Whether XML 1.0 may hold the character, and a terminal would do nothing upon it."""
    code = ord(char)
    return (
        char in "\t\n"
        or 0x20 <= code < 0x7F
        or 0xA0 <= code < 0xD800
        or 0xE000 <= code < 0xFFFE
        or code >= 0x10000
    )
