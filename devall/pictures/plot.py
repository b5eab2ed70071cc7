"""A scene as Graphviz lays it out: nodes and boxes placed, the ways of arrows, their labels."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from devall.pictures import marks
from devall.pictures.dot import ends
from devall.pictures.faces import ICON, LABEL_LINE, LABEL_ROOM, face_of, text_width
from devall.pictures.graphviz import laid_out
from devall.pictures.places import Layout, PlacedArrow, PlacedBox, PlacedNode, Point, Rect
from devall.pictures.rows import holders_of, innermost
from devall.pictures.scene import Arrow, Box, Dot, Scene, every, representative
from devall.pictures.widths import wrapped

MARGIN = 16
"""Around the whole picture."""


def plotted(scene: Scene) -> Layout:
    """Where everything of the scene is.

    Raises:
        SetupError: nothing is installed that lays out.
        DevallError: it could not be laid out.
    """
    plot = _Plot(scene)
    return plot.read(laid_out("\n".join(plot.lines()) + "\n"))


class _Plot:
    """A scene in Graphviz' language with sizes, and its answer read."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        self._faces = {
            item.key: face_of(scene, item)
            for item in every(scene.children)
            if isinstance(item, Dot)
        }
        self._again = {
            arrow.source.key: " ".join(["again", *filter(None, [marks.label(scene, arrow)])])
            for arrow in scene.arrows
            if _is_of_box_to_itself(arrow)
        }
        self._titles = {
            item.key: self._title(item) for item in every(scene.children) if isinstance(item, Box)
        }
        holders = holders_of(scene)
        self._inside = innermost(scene, holders)
        self._numbers = {arrow.place: number for number, arrow in enumerate(scene.arrows)}
        self._labels = [
            wrapped(words, LABEL_ROOM, 4, text_width) if words else []
            for words in (marks.label(scene, arrow) for arrow in scene.arrows)
        ]

    def lines(self) -> Iterator[str]:
        """The scene in Graphviz' language."""
        scene = self._scene
        names = ("start", "finish") if scene.ends else ("start",)
        yield "digraph {"
        yield f"compound=true; nodesep=0.45; ranksep=0.5; margin=0; pad=0; labeljust=l; {_NO_TEXT}"
        yield f"node [shape=box, fixedsize=true, {_NO_TEXT}]; edge [{_NO_TEXT}, arrowsize=0.8]"
        for name in names:
            yield f"{name} [{_inches(72, 28)}]"
        yield from self._children(scene.children)
        for number, item in enumerate(scene.starts):
            head = f", lhead=cluster_{item.key}, {_FAR}" if isinstance(item, Box) else ""
            yield f"start -> {representative(item, 'start').key} [id=s{number}{head}]"
        yield from self._edges_in("")
        for number, item in enumerate(scene.ends):
            tail = f", ltail=cluster_{item.key}" if isinstance(item, Box) else ""
            yield f"{representative(item, 'end').key} -> finish [id=f{number}{tail}]"
        yield "}"

    def read(self, found: Mapping[str, Any]) -> Layout:
        """The layout that Graphviz answers with."""
        _, _, width, height = _numbers(found["bb"])
        self._top = height + MARGIN
        layout = Layout(self._scene, width + 2 * MARGIN, height + 2 * MARGIN)
        objects = {each["name"]: each for each in found.get("objects", ())}
        self._read_items(layout, objects, self._scene.children, 0)
        for name, shown in (("start", "start"), ("finish", "answer")):
            if name not in objects:
                continue
            layout.pills[shown] = self._rect(objects[name]["pos"], 72, 28)
        by_id = {each["id"]: each for each in found.get("edges", ())}
        scene = self._scene
        for number, item in enumerate(scene.starts):
            silent = scene.course is not None and scene.of(item) is None
            layout.arrows += self._arrow(None, by_id[f"s{number}"], [], is_silent=silent)
        for number, item in enumerate(scene.ends):
            silent = scene.course is not None and marks.state_of(scene, item) != "completed"
            layout.arrows += self._arrow(None, by_id[f"f{number}"], [], is_silent=silent)
        for number, arrow in enumerate(scene.arrows):
            if _is_of_box_to_itself(arrow):
                continue
            silent, lines = marks.is_silent(scene, arrow), self._labels[number]
            layout.arrows += self._arrow(arrow, by_id[f"e{number}"], lines, is_silent=silent)
        return layout

    def _title(self, box: Box) -> str:
        """What stands over a box, and the edge to itself that there is no room to draw."""
        words = [marks.title(self._scene, box)]
        if box.kind == "subgraph":
            words += [marks.deeds(self._scene, box), self._again.get(box.key, "")]
        return " · ".join(filter(None, words))

    def _children(self, items: Sequence[Dot | Box]) -> Iterator[str]:
        for item in items:
            if isinstance(item, Dot):
                face = self._faces[item.key]
                yield f"{item.key} [{_inches(face.width, face.height)}]"
            else:
                title = self._titles[item.key]
                yield f"subgraph cluster_{item.key} {{"
                yield f"margin=12; label={_space(text_width(title) + ICON + 16, 18)}"
                yield from self._children(item.children)
                yield from self._edges_in(item.key)
                yield "}"

    def _edges_in(self, key: str) -> Iterator[str]:
        """The edges that a box is the innermost around; their labels stay in it as well."""
        for arrow in self._inside.get(key, ()):
            if _is_of_box_to_itself(arrow):
                continue
            yield self._edge(self._numbers[arrow.place], arrow)

    def _edge(self, number: int, arrow: Arrow) -> str:
        source, target = representative(arrow.source, "end"), representative(arrow.target, "start")
        settings = [f"id=e{number}", *ends(arrow)]
        if isinstance(arrow.target, Box):
            settings.append(_FAR)
        if lines := self._labels[number]:
            width = max(map(text_width, lines)) + 8
            settings.append(f"label={_space(width, LABEL_LINE * len(lines) + 2)}")
        if arrow.is_back:  # said the other way round, it does not turn its loop upside down
            source, target = target, source
            settings = [_swapped(each) for each in settings] + ["dir=back"]
        return f"{source.key} -> {target.key} [{', '.join(settings)}]"

    def _read_items(
        self,
        layout: Layout,
        objects: Mapping[str, Mapping[str, Any]],
        items: Sequence[Dot | Box],
        depth: int,
    ) -> None:
        for item in items:
            if isinstance(item, Dot):
                face = self._faces[item.key]
                rect = self._rect(objects[item.key]["pos"], face.width, face.height)
                layout.nodes.append(PlacedNode(item, face, rect))
            else:
                left, low, right, high = _numbers(objects[f"cluster_{item.key}"]["bb"])
                rect = Rect(left + MARGIN, self._top - high, right - left, high - low)
                layout.boxes.append(PlacedBox(item, rect, self._titles[item.key], depth))
                self._read_items(layout, objects, item.children, depth + 1)

    def _arrow(
        self,
        arrow: Arrow | None,
        found: Mapping[str, Any],
        lines: Sequence[str],
        *,
        is_silent: bool,
    ) -> Iterator[PlacedArrow]:
        if "pos" not in found:
            return
        way: list[Point] = []
        tip: Point | None = None
        for word in str(found["pos"]).split():
            parts = word.split(",")
            if parts[0] in {"s", "e"}:
                tip = self._point(parts[1:])
            else:
                way.append(self._point(parts))
        if found.get("dir") == "back":
            way.reverse()
        label = None
        if lines and "lp" in found:
            width = max(map(text_width, lines)) + 8
            label = self._rect(found["lp"], width, LABEL_LINE * len(lines) + 2)
        yield PlacedArrow(arrow, is_silent, tuple(way), tip or way[-1], tuple(lines), label)

    def _point(self, parts: Sequence[str]) -> Point:
        return Point(round(float(parts[0]) + MARGIN, 2), round(self._top - float(parts[1]), 2))

    def _rect(self, centre: str, width: float, height: float) -> Rect:
        x, y = self._point(centre.split(","))
        return Rect(round(x - width / 2, 2), round(y - height / 2, 2), width, height)


_NO_TEXT = 'label=""'
_FAR = "minlen=2"
"""Of an arrow to a box: the title stands between its upper side and its first node."""


def _is_of_box_to_itself(arrow: Arrow) -> bool:
    return arrow.source is arrow.target and isinstance(arrow.source, Box)


def _inches(width: float, height: float) -> str:
    return f"width={width / 72:.4f}, height={height / 72:.4f}"


def _space(width: float, height: float) -> str:
    """A label that is nothing but room."""
    size = f'width="{round(width)}" height="{round(height)}"'
    table = 'border="0" cellborder="0" cellpadding="0" cellspacing="0" fixedsize="true"'
    return f"<<table {table} {size}><tr><td></td></tr></table>>"


def _swapped(setting: str) -> str:
    name, _, value = setting.partition("=")
    return f"{ {'ltail': 'lhead', 'lhead': 'ltail'}.get(name, name) }={value}"


def _numbers(text: str) -> list[float]:
    return [float(each) for each in text.split(",")]
