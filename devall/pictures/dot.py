"""A picture as text for Graphviz.

Ids in the text are made up (`n1`, `n2`): a node's own id may be any text, and stands in labels
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from devall.loading.loader import LoadedGraph
from devall.pictures.course import Course, State
from devall.pictures.marks import label, marked_deeds, state_of, title
from devall.pictures.scene import Arrow, Box, Dot, Kind, Scene, representative, scene_of

_SHAPES: Mapping[Kind, str] = {
    "agent": "shape=box",
    "human": "shape=trapezium, style=solid",
    "literal": "shape=note, style=solid",
    "passthrough": "shape=oval",
    "template": "shape=parallelogram, style=solid",
    "python": "shape=component, style=solid",
    "subgraph": "shape=box3d, style=solid",
    "loop_counter": "shape=hexagon, style=solid",
    "loop_timer": "shape=hexagon, style=solid",
}

_COLOURS: Mapping[State | None, tuple[str, str]] = {
    "completed": ("#1a7f37", "#e6f4ea"),
    "failed": ("#cf222e", "#ffebe9"),
    "skipped": ("#818b98", "#f6f8fa"),
    "waiting": ("#9a6700", "#fff8c5"),
    "cancelled": ("#bc4c00", "#fff1e5"),
    "running": ("#0969da", "#ddf4ff"),
    None: ("#818b98", "#f6f8fa"),
}
"""Line and surface of a node by its state."""


def dot(graph: LoadedGraph, course: Course | None = None) -> str:
    """The graph in Graphviz' language, and what a run of it did.

    Dashed arrows trigger nothing, thick ones fan out; start and end stand in round nodes.
    """
    scene = scene_of(graph, course)
    lines = [
        f"digraph {text(scene.title)} {{",
        "    compound=true",
        '    node [fontname="Helvetica", fontsize=11, style="rounded", shape=box]',
        '    edge [fontname="Helvetica", fontsize=9]',
        '    graph [fontname="Helvetica", fontsize=10, style="rounded"]',
        '    start [label="start", shape=oval, penwidth=2]',
    ]
    if scene.ends:
        lines.append('    finish [label="answer", shape=oval, penwidth=2]')
    lines += _children(scene, scene.children, "    ")
    lines += [f"    start -> {_end(item, 'lhead')}" for item in scene.starts]
    lines += [f"    {_arrow(scene, arrow)}" for arrow in scene.arrows]
    for item in scene.ends:
        inner = representative(item, "end")
        tail = f" [ltail=cluster_{item.key}]" if isinstance(item, Box) else ""
        lines.append(f"    {inner.key} -> finish{tail}")
    return "\n".join([*lines, "}"]) + "\n"


def text(words: str) -> str:
    """A quoted text; a line break is drawn as one, an entity (`&lt;`) as it is written."""
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in words)
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("&", "&amp;")):
        clean = clean.replace(char, escaped)
    return f'"{clean}"'


def ends(arrow: Arrow) -> list[str]:
    """What makes an edge end where a box does."""
    found: list[str] = []
    if arrow.source is not arrow.target:
        if isinstance(arrow.source, Box):
            found.append(f"ltail=cluster_{arrow.source.key}")
        if isinstance(arrow.target, Box):
            found.append(f"lhead=cluster_{arrow.target.key}")
    return found


def _children(scene: Scene, items: Sequence[Dot | Box], indent: str) -> Iterator[str]:
    for item in items:
        width = ", penwidth=2" if item.is_start or item.is_end else ""
        done = marked_deeds(scene, item)
        if isinstance(item, Dot):
            words = text("\n".join([*item.lines, *done]))
            look = f"{_SHAPES[item.kind]}{width}{_look(scene, item)}"
            yield f"{indent}{item.key} [label={words}, {look}]"
        else:
            style = "dashed,rounded" if item.kind == "loop" else "rounded"
            words = title(scene, item)
            if item.kind == "subgraph":
                words = " · ".join([words, *done])
            yield f"{indent}subgraph cluster_{item.key} {{"
            yield f'{indent}    label={text(words)}; style="{style}"'
            yield from _children(scene, item.children, indent + "    ")
            yield f"{indent}}}"


def _look(scene: Scene, dot: Dot) -> str:
    if scene.course is None:
        return ""
    state = state_of(scene, dot)
    line, surface = _COLOURS[state]
    round_off = "" if "style=" in _SHAPES[dot.kind] else "rounded,"
    dashes = ",dashed" if state in {"skipped", None} else ""
    grey = ', fontcolor="#59636e"' if dashes else ""
    return f', color="{line}", fillcolor="{surface}", style="{round_off}filled{dashes}"{grey}'


def _end(item: Dot | Box, attribute: str) -> str:
    inner = representative(item, "start")
    return f"{inner.key} [{attribute}=cluster_{item.key}]" if isinstance(item, Box) else inner.key


def _arrow(scene: Scene, arrow: Arrow) -> str:
    source, target = representative(arrow.source, "end"), representative(arrow.target, "start")
    settings: list[str] = []
    if words := label(scene, arrow):
        settings.append(f"label={text(words)}")
    if scene.fired(arrow) == 0:
        settings.append('style=dotted, color="#818b98", fontcolor="#59636e"')
    elif arrow.is_dashed:
        settings.append("style=dashed")
    if arrow.is_thick:
        settings.append("penwidth=3")
    settings += ends(arrow)
    found = f" [{', '.join(settings)}]" if settings else ""
    return f"{source.key} -> {target.key}{found}"
