"""A picture as text for a terminal: nodes one below the other, their edges beneath each.

What leads on to the node right below is an arrow down; every other edge names where it leads,
so that the drawing holds in any width. More than `MOST_BOXES` nodes are listed without boxes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devall.loading.loader import LoadedGraph
from devall.pictures import marks
from devall.pictures.course import Course
from devall.pictures.rows import Holders, arrows_from, holders_of, innermost, rows_of
from devall.pictures.scene import Arrow, Box, Dot, Scene, every, line_of, scene_of
from devall.pictures.widths import columns, cut, wrapped

MOST_BOXES = 40
"""Nodes that are drawn as boxes."""
MOST_LINES = 4
"""Of what is said about an edge."""
LEAST_WIDTH = 24


@dataclass(frozen=True, slots=True)
class _Signs:
    """What lines are made of."""

    node: str
    """Corners and sides: top left, across, top right, side, bottom left, bottom right."""
    loop: str
    sub: str
    stem: str
    branch: str
    last: str
    tip: str
    plain: str
    dashed: str
    thick: str
    silent: str
    head: str
    back: str
    dot: str
    times: str
    between: str
    ellipsis: str


_UNICODE = _Signs(
    node="╭─╮│╰╯",
    loop="┏╍┓┇┗┛",
    sub="┌─┐│└┘",
    stem="│",
    branch="├",
    last="└",
    tip="▼",
    plain="──",
    dashed="╌╌",
    thick="══",
    silent="··",
    head="▶",
    back="↺ ",
    dot="●",
    times="×",
    between=" · ",
    ellipsis="…",
)
_ASCII = _Signs(
    node="+-+|++",
    loop="#~#:##",
    sub="+=+|++",
    stem="|",
    branch="|",
    last="`",
    tip="v",
    plain="--",
    dashed="- -",
    thick="==",
    silent="..",
    head=">",
    back="back to ",
    dot="*",
    times="x",
    between=", ",
    ellipsis="~",
)


def ascii_art(
    graph: LoadedGraph, course: Course | None = None, *, width: int = 80, plain: bool = False
) -> str:
    """The graph as lines of text, and what a run of it did.

    Args:
        graph: The graph.
        course: What a run did.
        width: Columns that a line may have.
        plain: Whether there is nothing but ASCII; letters of names that are not are `?`.
    """
    drawing = _Drawing(scene_of(graph, course), _ASCII if plain else _UNICODE)
    lines = drawing.lines(max(width, LEAST_WIDTH))
    text = "\n".join(line.rstrip() for line in lines) + "\n"
    return "".join(c if c.isascii() else "?" * columns(c) for c in text) if plain else text


class _Drawing:
    def __init__(self, scene: Scene, signs: _Signs) -> None:
        self._scene = scene
        self._signs = signs
        self._out = arrows_from(scene)
        self._holders: Holders = holders_of(scene)
        self._inside = innermost(scene, self._holders)
        nodes = [item for item in every(scene.children) if isinstance(item, Dot)]
        self._is_list = len(nodes) > MOST_BOXES
        names = [item.lines[0] for item in every(scene.children) if isinstance(item, Dot)]
        self._is_clear = len(set(names)) == len(names)
        self._ends = {item.key for item in scene.ends}
        self._last = ""
        """Key of what stands above `answer`."""

    def lines(self, width: int) -> Iterator[str]:
        """The lines of the drawing."""
        signs = self._signs
        starts = self._scene.starts
        rows = [
            item
            for row in rows_of(self._scene.children, self._inside.get("", ()), self._holders)
            for item in row
        ]
        yield f"{signs.dot} start"
        leads = bool(rows) and len(starts) == 1 and self._leads(starts[0], rows[0])
        if leads:
            yield from self._down("")
        else:
            for at, item in enumerate(starts):
                is_last = at == len(starts) - 1
                yield from self._branch(signs.plain, self._named(item), is_last, width)
            yield ""
        self._last = rows[-1].key if rows else ""
        yield from self._items(rows, width)
        if self._ends:
            yield f"{signs.dot} answer"

    def _items(self, items: Sequence[Dot | Box], width: int) -> Iterator[str]:
        for at, item in enumerate(items):
            below = items[at + 1] if at + 1 < len(items) else None
            if isinstance(item, Dot):
                yield from self._dot(item, width)
            else:
                yield from self._box(item, width)
            yield from self._edges(item, below, width)

    def _dot(self, dot: Dot, width: int) -> Iterator[str]:
        scene, signs = self._scene, self._signs
        deeds = marks.deeds(scene, dot, signs.times)
        if deeds:
            deeds = f"{self._mark(dot)} {deeds}"
        if self._is_list:
            name = f"{signs.dot} {dot.lines[0]}"
            yield self._fit("  ".join(filter(None, [name, *dot.lines[1:], deeds])), width)
            return
        about = signs.between.join([*self._kind(dot), *dot.lines[1:]])
        texts = [self._fit(text, width - 4) for text in (dot.lines[0], about, deeds) if text]
        yield from self._frame(texts, signs.node, "", min(width, _widest(texts) + 4))

    def _kind(self, dot: Dot) -> list[str]:
        kind = dot.kind.replace("_", " ")
        return [] if kind in dot.lines else [kind]

    def _box(self, box: Box, width: int) -> Iterator[str]:
        signs = self._signs
        title = marks.title(self._scene, box, signs.between)
        if box.kind == "subgraph":
            title = f"{title} (subgraph)"
            if deeds := marks.deeds(self._scene, box, signs.times):
                title = f"{title} {self._mark(box)} {deeds}"
        rows = rows_of(box.children, self._inside.get(box.key, ()), self._holders)
        items = [item for row in rows for item in row]
        inner = list(self._items(items, max(width - 4, LEAST_WIDTH - 8)))
        while inner and not inner[-1]:
            inner.pop()
        title = self._fit(title, width - 6)
        most = min(width, max(_widest(inner) + 4, columns(title) + 6))
        yield from self._frame(inner, signs.loop if box.kind == "loop" else signs.sub, title, most)

    def _frame(self, lines: Sequence[str], line: str, title: str, width: int) -> Iterator[str]:
        left, across, right, side, low_left, low_right = line
        head = f"{left}{across}{f' {title} ' if title else ''}"
        yield head + across * (width - columns(head) - 1) + right
        for each in lines:
            text = self._fit(each, width - 4)
            yield f"{side} {text}{' ' * (width - 4 - columns(text))} {side}"
        yield low_left + across * (width - 2) + low_right

    def _edges(self, item: Dot | Box, below: Dot | Box | None, width: int) -> Iterator[str]:
        """The edges out of an item, the one that leads to what is below it at the end."""
        on: list[Arrow] = []
        others: list[tuple[str, str]] = []
        for arrow in self._out[item.key]:
            if below is not None and not on and self._leads(arrow.target, below):
                on.append(arrow)
            else:
                others.append((self._line(arrow), self._told(arrow)))
        is_last = item.key == self._last and item.key in self._ends
        if item.key in self._ends and not is_last:
            others.append((self._signs.plain, "answer"))
        for at, (line, words) in enumerate(others):
            is_end = at == len(others) - 1 and not on and not is_last
            yield from self._branch(line, words, is_end, width)
        if is_last:
            yield from self._down("", width)
        elif on:
            yield from self._down(self._beside(on[0]), width, self._line(on[0]))
        elif not (self._is_list and below is not None and isinstance(below, Dot)):
            yield ""

    def _down(self, words: str, width: int = 80, line: str = "") -> Iterator[str]:
        """An arrow to what stands below, what is said of it beside it."""
        signs = self._signs
        stem = "║" if line == "══" else signs.stem
        stem = {"╌╌": "╎", "··": "┊", "..": ":", "- -": ":"}.get(line, stem)
        if self._is_list:
            yield from self._lines_of(f"  {signs.tip} ", "    ", words, width)
            return
        yield from self._lines_of(f"  {stem} ", f"  {stem} ", words, width)
        yield f"  {signs.tip}"

    def _branch(self, line: str, words: str, is_last: bool, width: int) -> Iterator[str]:
        """An edge that leads elsewhere."""
        signs = self._signs
        corner, stem = (signs.last, " ") if is_last else (signs.branch, signs.stem)
        head = f"  {corner}{line}{signs.head} "
        yield from self._lines_of(head, f"  {stem}".ljust(len(head) + 2), words, width)

    def _lines_of(self, first: str, other: str, words: str, width: int) -> Iterator[str]:
        """Words on as many lines as they need, up to `MOST_LINES`."""
        room = width - max(len(first), len(other))
        lines = wrapped(words, room, MOST_LINES, lambda each: float(columns(each)))
        for at, each in enumerate(lines):
            text = each.replace("…", self._signs.ellipsis)
            yield ((other if at else first) + text).rstrip()

    def _told(self, arrow: Arrow) -> str:
        back = self._signs.back if arrow.is_back or arrow.source is arrow.target else ""
        return "  ".join(filter(None, [back + self._named(arrow.target), self._beside(arrow)]))

    def _beside(self, arrow: Arrow) -> str:
        words = marks.label(self._scene, arrow, self._signs.times)
        if marks.is_silent(self._scene, arrow):
            return f"(did not fire) {words}".strip()
        return words

    def _line(self, arrow: Arrow) -> str:
        signs = self._signs
        if marks.is_silent(self._scene, arrow):
            return signs.silent
        if arrow.is_dashed:
            return signs.dashed
        return signs.thick if arrow.is_thick else signs.plain

    def _named(self, item: Dot | Box) -> str:
        """A node as an edge names it: with its subgraph only where it must be told apart."""
        name = item.lines[0] if isinstance(item, Dot) else item.title
        return name if self._is_clear else line_of(item.name)

    def _leads(self, target: Dot | Box, below: Dot | Box) -> bool:
        """Whether an arrow to a target ends at what is drawn next."""
        while target is not below:
            if not isinstance(below, Box) or below.kind != "loop":
                return False
            arrows = self._inside.get(below.key, ())
            below = rows_of(below.children, arrows, self._holders)[0][0]
        return True

    def _mark(self, item: Dot | Box) -> str:
        table = marks.MARKS if self._signs is _UNICODE else marks.ASCII_MARKS
        return table[marks.state_of(self._scene, item)]

    def _fit(self, text: str, width: int) -> str:
        if columns(text) <= width:
            return text
        return cut(text, width, lambda each: float(columns(each))).replace(
            "…", self._signs.ellipsis
        )


def _widest(lines: Sequence[str]) -> int:
    return max(map(columns, lines), default=0)
