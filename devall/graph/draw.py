"""A graph as text for Mermaid or Graphviz.

Both are written from one scene: boxes (loops, subgraphs) that hold dots (nodes) and boxes,
and arrows between dots. Ids in the text are made up (`n1`, `b2`): a node's own id may be any
text, and stands in labels only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, assert_never

from devall.config.edges import (
    Always,
    Edge,
    ExpressionCondition,
    FunctionCondition,
    FunctionProcess,
    KeywordCondition,
    RegexExtract,
)
from devall.config.nodes import Node
from devall.graph.compile import compile_graph
from devall.graph.model import Plan
from devall.loading.loader import LoadedGraph

LONGEST_LABEL = 60
"""Characters of one line of a label."""

Kind = Literal[
    "agent", "human", "literal", "passthrough", "python", "subgraph", "loop_counter", "loop_timer"
]


@dataclass(slots=True)
class Dot:
    """A node."""

    key: str
    kind: Kind
    lines: tuple[str, ...]
    is_start: bool
    is_end: bool


@dataclass(slots=True)
class Box:
    """A loop or a subgraph, and what is in it."""

    key: str
    kind: Literal["loop", "subgraph"]
    title: str
    is_start: bool = False
    is_end: bool = False
    children: list[Dot | Box] = field(default_factory=list["Dot | Box"])


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge."""

    source: Dot | Box
    target: Dot | Box
    label: str
    is_dashed: bool
    is_thick: bool


@dataclass(slots=True)
class Scene:
    """Everything that is drawn."""

    title: str
    children: list[Dot | Box] = field(default_factory=list["Dot | Box"])
    arrows: list[Arrow] = field(default_factory=list[Arrow])
    starts: list[Dot | Box] = field(default_factory=list["Dot | Box"])
    """What the root graph starts with."""
    ends: list[Dot | Box] = field(default_factory=list["Dot | Box"])
    """What the root graph's answer comes from."""
    keys: int = 0
    """How many keys have been given away."""


def mermaid(graph: LoadedGraph) -> str:
    """The graph as a Mermaid flowchart.

    Dashed arrows trigger nothing, thick ones fan out; start and end stand in round nodes.
    """
    scene = _scene(graph)
    lines = ["flowchart TD"]
    lines += ['    start(["start"])', '    finish(["answer"])']
    lines += _mermaid_children(scene.children, "    ")
    lines += [f"    start --> {item.key}" for item in scene.starts]
    for arrow in scene.arrows:
        source, target = _apart(arrow)
        line = "-.->" if arrow.is_dashed else "==>" if arrow.is_thick else "-->"
        label = f'|"{_mermaid_text(arrow.label)}"|' if arrow.label else ""
        lines.append(f"    {source.key} {line}{label} {target.key}")
    lines += [f"    {item.key} --> finish" for item in scene.ends]
    lines.append("    classDef mark stroke-width:3px")
    marked = [item.key for item in _all(scene.children) if item.is_start or item.is_end]
    lines.append(f"    class {','.join(['start', 'finish', *marked])} mark")
    return "\n".join(lines) + "\n"


def dot(graph: LoadedGraph) -> str:
    """The graph in Graphviz' language.

    Dashed arrows trigger nothing, thick ones fan out; start and end stand in round nodes.
    """
    scene = _scene(graph)
    lines = [
        f"digraph {_dot_text(scene.title)} {{",
        "    compound=true",
        '    node [fontname="Helvetica", fontsize=11, style="rounded", shape=box]',
        '    edge [fontname="Helvetica", fontsize=9]',
        '    graph [fontname="Helvetica", fontsize=10, style="rounded"]',
        '    start [label="start", shape=oval, penwidth=2]',
        '    finish [label="answer", shape=oval, penwidth=2]',
    ]
    lines += _dot_children(scene.children, "    ")
    lines += [f"    start -> {_dot_end(item, 'lhead')}" for item in scene.starts]
    for arrow in scene.arrows:
        lines.append(f"    {_dot_arrow(arrow)}")
    for item in scene.ends:
        inner = _representative(item, "end")
        tail = f" [ltail=cluster_{item.key}]" if isinstance(item, Box) else ""
        lines.append(f"    {inner.key} -> finish{tail}")
    return "\n".join([*lines, "}"]) + "\n"


def _scene(graph: LoadedGraph) -> Scene:
    title = graph.config.id or graph.file.stem
    scene = Scene(title)
    plan = compile_graph(graph)
    scene.children, scene.starts, scene.ends = _add_graph(scene, plan)
    return scene


Items = list[Dot | Box]


def _add_graph(scene: Scene, plan: Plan) -> tuple[Items, Items, Items]:
    """Put a graph's edges into the scene; its items, those it starts with, its ends."""
    starts, ends = set(plan.starts), set(plan.ends or plan.sinks)
    placed: dict[int, Dot | Box] = {}
    for node in plan.nodes:
        scene.keys += 1
        key, is_start, is_end = f"n{scene.keys}", node.index in starts, node.index in ends
        child = plan.subplans.get(node.id)
        if child is None:
            lines = _lines(node.config)
            placed[node.index] = Dot(key, node.config.type, lines, is_start, is_end)
        else:
            box = Box(key, "subgraph", _lines(node.config)[0], is_start, is_end)
            box.children = _add_graph(scene, child)[0]
            placed[node.index] = box
    scene.arrows += [
        Arrow(
            placed[edge.source],
            placed[edge.target],
            _label(edge.config),
            is_dashed=not edge.config.trigger,
            is_thick=edge.config.dynamic is not None,
        )
        for edge in plan.edges
    ]
    children = _grouped(scene, plan, placed, None, frozenset())
    return children, [placed[i] for i in sorted(starts)], [placed[i] for i in sorted(ends)]


def _grouped(
    scene: Scene,
    plan: Plan,
    placed: dict[int, Dot | Box],
    members: frozenset[int] | None,
    entries: frozenset[int],
) -> Items:
    """The nodes of a graph or loop in file order, inner loops as boxes."""
    regions = plan.regions
    order = regions.outermost() if members is None else regions.round(members, entries)
    found: list[tuple[int, Dot | Box]] = []
    for item in order.items:
        inside = frozenset(item.members)
        if not item.is_loop or len(inside) == 1 or inside == members:
            found += [(index, placed[index]) for index in item.members]
            continue
        scene.keys += 1
        box = Box(f"n{scene.keys}", "loop", "loop")
        inner = regions.entries(inside, set(plan.starts) | entries)
        box.children = _grouped(scene, plan, placed, inside, inner)
        found.append((item.members[0], box))
    return [item for _, item in sorted(found, key=lambda pair: pair[0])]


def _lines(node: Node) -> tuple[str, ...]:
    """A node's label: its id, and what tells its kind from others of the same shape."""
    name = _short(node.id)
    match node.type:
        case "agent":
            return name, _short(f"{node.config.provider}: {node.config.name}")
        case "human" | "python" | "literal" | "passthrough" | "subgraph":
            return name, node.type
        case "loop_counter":
            return name, f"{node.config.max_iterations} rounds"
        case "loop_timer":
            return name, f"{node.config.max_duration:g} {node.config.duration_unit}"
        case _:
            assert_never(node.type)


def _label(edge: Edge) -> str:
    """What is special about an edge."""
    words = [*_condition(edge), *_process(edge)]
    if edge.dynamic is not None:
        words.append(f"{edge.dynamic.type} by {edge.dynamic.split.type}")
    if not edge.carry_data:
        words.append("no data")
    if not edge.trigger:
        words.append("no trigger")
    return _short("; ".join(words))


def _condition(edge: Edge) -> Iterator[str]:
    condition = edge.condition
    match condition:
        case Always():
            if not condition.value:
                yield "never"
        case FunctionCondition():
            yield f"if {condition.config.name}"
        case KeywordCondition():
            found = condition.config
            wanted = [*found.any, *(f"/{pattern}/" for pattern in found.regex)]
            parts = [" or ".join(wanted)] if wanted else []
            if found.none:
                parts.append("not " + " or ".join(found.none))
            yield "if " + ", ".join(parts)
        case ExpressionCondition():
            yield f"if {condition.config.when}"
        case _:
            assert_never(condition)


def _process(edge: Edge) -> Iterator[str]:
    match edge.process:
        case None:
            return
        case FunctionProcess():
            yield f"{edge.process.config.name}()"
        case RegexExtract():
            yield f"extract /{edge.process.config.pattern}/"
        case _:
            assert_never(edge.process)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"


def _all(items: Sequence[Dot | Box]) -> Iterator[Dot | Box]:
    for item in items:
        yield item
        if isinstance(item, Box):
            yield from _all(item.children)


def _representative(item: Dot | Box, side: Literal["start", "end"]) -> Dot:
    """A node within a box: one that it starts with, or ends with."""
    while isinstance(item, Box):
        inner = [i for i in item.children if (i.is_start if side == "start" else i.is_end)]
        item = (inner or item.children)[0]
    return item


def _apart(arrow: Arrow) -> tuple[Dot | Box, Dot | Box]:
    """An arrow's ends; those of a box to itself lie within, since Mermaid draws no other."""
    if arrow.source is arrow.target and isinstance(arrow.source, Box):
        return _representative(arrow.source, "end"), _representative(arrow.target, "start")
    return arrow.source, arrow.target


_MERMAID_SHAPES: dict[Kind, tuple[str, str]] = {
    "agent": ("(", ")"),
    "human": ("[/", "\\]"),
    "literal": (">", "]"),
    "passthrough": ("([", "])"),
    "python": ("[[", "]]"),
    "subgraph": ("[", "]"),
    "loop_counter": ("{{", "}}"),
    "loop_timer": ("{{", "}}"),
}


def _mermaid_children(items: Items, indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Dot):
            left, right = _MERMAID_SHAPES[item.kind]
            text = "<br/>".join(map(_mermaid_text, item.lines))
            yield f'{indent}{item.key}{left}"{text}"{right}'
        else:
            title = item.title if item.kind == "loop" else f"{item.title} (subgraph)"
            yield f'{indent}subgraph {item.key}["{_mermaid_text(title)}"]'
            yield from _mermaid_children(item.children, indent + "    ")
            yield f"{indent}end"


def _mermaid_text(text: str) -> str:
    """Text for a quoted label: everything that could mean something is a character's number."""
    return "".join(
        c if c.isalnum() or c in " _-.,:/()=" or ord(c) > 127 else f"#{ord(c)};" for c in text
    )


_DOT_SHAPES: dict[Kind, str] = {
    "agent": "shape=box",
    "human": "shape=trapezium, style=solid",
    "literal": "shape=note, style=solid",
    "passthrough": "shape=oval",
    "python": "shape=component, style=solid",
    "subgraph": "shape=box3d, style=solid",
    "loop_counter": "shape=hexagon, style=solid",
    "loop_timer": "shape=hexagon, style=solid",
}


def _dot_children(items: Items, indent: str) -> Iterator[str]:
    for item in items:
        width = ", penwidth=2" if item.is_start or item.is_end else ""
        if isinstance(item, Dot):
            label = _dot_text("\n".join(item.lines))
            yield f"{indent}{item.key} [label={label}, {_DOT_SHAPES[item.kind]}{width}]"
        else:
            style = "dashed,rounded" if item.kind == "loop" else "rounded"
            yield f"{indent}subgraph cluster_{item.key} {{"
            yield f'{indent}    label={_dot_text(item.title)}; style="{style}"'
            yield from _dot_children(item.children, indent + "    ")
            yield f"{indent}}}"


def _dot_end(item: Dot | Box, attribute: str) -> str:
    inner = _representative(item, "start")
    return f"{inner.key} [{attribute}=cluster_{item.key}]" if isinstance(item, Box) else inner.key


def _dot_arrow(arrow: Arrow) -> str:
    source, target = _representative(arrow.source, "end"), _representative(arrow.target, "start")
    settings: list[str] = []
    if arrow.label:
        settings.append(f"label={_dot_text(arrow.label)}")
    if arrow.is_dashed:
        settings.append("style=dashed")
    if arrow.is_thick:
        settings.append("penwidth=3")
    if arrow.source is not arrow.target:
        if isinstance(arrow.source, Box):
            settings.append(f"ltail=cluster_{arrow.source.key}")
        if isinstance(arrow.target, Box):
            settings.append(f"lhead=cluster_{arrow.target.key}")
    found = f" [{', '.join(settings)}]" if settings else ""
    return f"{source.key} -> {target.key}{found}"


def _dot_text(text: str) -> str:
    """A quoted text; a line break is drawn as one, an entity (`&lt;`) as it is written."""
    clean = "".join(c if c.isprintable() or c == "\n" else " " for c in text)
    for char, escaped in (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("&", "&amp;")):
        clean = clean.replace(char, escaped)
    return f'"{clean}"'
