"""What a picture of a workflow shows: boxes (loops, subgraphs) with dots (nodes), and arrows."""

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
from devall.graph.regions import Order
from devall.loading.loader import LoadedGraph
from devall.pictures.course import Course, NodeCourse

LONGEST_LABEL = 60
"""Characters of a line of a node, and of each thing that is said about an edge."""

Kind = Literal[
    "agent",
    "human",
    "literal",
    "passthrough",
    "template",
    "python",
    "subgraph",
    "loop_counter",
    "loop_timer",
]


@dataclass(slots=True)
class Dot:
    """A node."""

    key: str
    name: str
    """Its id, `S/X` in a subgraph."""
    kind: Kind
    lines: tuple[str, ...]
    is_start: bool
    is_end: bool


@dataclass(slots=True)
class Box:
    """A loop or a subgraph, and what is in it."""

    key: str
    kind: Literal["loop", "subgraph"]
    name: str
    """Id of the subgraph's node; of a loop nothing."""
    title: str
    members: frozenset[str] = frozenset()
    """The ids of a loop's nodes."""
    is_start: bool = False
    is_end: bool = False
    children: list[Dot | Box] = field(default_factory=list["Dot | Box"])


@dataclass(frozen=True, slots=True)
class Arrow:
    """An edge."""

    source: Dot | Box
    target: Dot | Box
    label: str
    place: tuple[str, int]
    """Its graph (empty for the root, `S` for what stands in node S) and position in the file."""
    is_dashed: bool
    """Whether it triggers nothing."""
    is_thick: bool
    """Whether it fans out."""
    is_back: bool
    """Whether it leads to where a loop's round begins."""


@dataclass(slots=True)
class Scene:
    """Everything that is drawn."""

    title: str
    course: Course | None = None
    children: list[Dot | Box] = field(default_factory=list["Dot | Box"])
    arrows: list[Arrow] = field(default_factory=list[Arrow])
    starts: list[Dot | Box] = field(default_factory=list["Dot | Box"])
    """What the root graph starts with."""
    ends: list[Dot | Box] = field(default_factory=list["Dot | Box"])
    """What the root graph's answer comes from."""
    keys: int = 0
    """How many keys have been given away."""

    def key(self) -> str:
        """A key that nothing else in the scene has."""
        self.keys += 1
        return f"n{self.keys}"

    def of(self, item: Dot | Box) -> NodeCourse | None:
        """What a node did in the run that is shown; None: there is none, or it did not begin."""
        return self.course.nodes.get(item.name) if self.course is not None else None

    def rounds(self, box: Box) -> int:
        """How many rounds a loop took in the run that is shown."""
        return self.course.rounds.get(box.members, 0) if self.course is not None else 0

    def fired(self, arrow: Arrow) -> int | None:
        """How often an edge fired in the run that is shown; None: no run is shown."""
        return self.course.edges.get(arrow.place, 0) if self.course is not None else None


Items = list[Dot | Box]


def scene_of(graph: LoadedGraph, course: Course | None = None) -> Scene:
    """What a picture of the graph shows, and of a run of it, if one is given."""
    scene = Scene(graph.config.id or graph.file.stem, course)
    scene.children, scene.starts, scene.ends = _add_graph(scene, compile_graph(graph), "")
    return scene


def every(items: Sequence[Dot | Box]) -> Iterator[Dot | Box]:
    """The items and all that is in them, outer ones first."""
    for item in items:
        yield item
        if isinstance(item, Box):
            yield from every(item.children)


def line_of(text: str) -> str:
    """The text on one line, without control characters."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def representative(item: Dot | Box, side: Literal["start", "end"]) -> Dot:
    """A node within a box: one that it starts with, or ends with."""
    while isinstance(item, Box):
        inner = [i for i in item.children if (i.is_start if side == "start" else i.is_end)]
        item = (inner or item.children)[0]
    return item


def _add_graph(scene: Scene, plan: Plan, graph: str) -> tuple[Items, Items, Items]:
    """Put a graph's edges into the scene; its items, those it starts with, its ends."""
    prefix = f"{graph}/" if graph else ""
    starts, ends = set(plan.starts), set(plan.ends or plan.sinks)
    placed: dict[int, Dot | Box] = {}
    for node in plan.nodes:
        key, is_start, is_end = scene.key(), node.index in starts, node.index in ends
        name = prefix + node.id
        did = scene.course.nodes.get(name) if scene.course is not None else None
        lines = _lines(node.config, did)
        child = plan.subplans.get(node.id)
        if child is None:
            placed[node.index] = Dot(key, name, node.config.type, lines, is_start, is_end)
        else:
            box = Box(key, "subgraph", name, lines[0], is_start=is_start, is_end=is_end)
            box.children = _add_graph(scene, child, name)[0]
            placed[node.index] = box
    groups = _Groups(scene, plan, prefix, placed)
    children = groups.of(plan.regions.outermost(), None)
    scene.arrows += [
        Arrow(
            placed[edge.source],
            placed[edge.target],
            _label(edge.config),
            (graph, edge.index),
            is_dashed=not edge.config.trigger,
            is_thick=edge.config.dynamic is not None,
            is_back=edge.index in groups.back,
        )
        for edge in plan.edges
    ]
    return children, [placed[i] for i in sorted(starts)], [placed[i] for i in sorted(ends)]


@dataclass(slots=True)
class _Groups:
    """The nodes of a graph, loops as boxes."""

    scene: Scene
    plan: Plan
    prefix: str
    placed: dict[int, Dot | Box]
    back: set[int] = field(default_factory=set[int])
    """Edges to where a loop's round begins."""

    def of(
        self, order: Order, members: frozenset[int] | None, entries: frozenset[int] = frozenset()
    ) -> Items:
        """The items of a graph or loop in file order, inner loops as boxes."""
        regions = self.plan.regions
        found: list[tuple[int, Dot | Box]] = []
        for item in order.items:
            inside = frozenset(item.members)
            if not item.is_loop or len(inside) == 1 or inside == members:
                found += [(index, self.placed[index]) for index in item.members]
                continue
            names = frozenset(self.prefix + name for name in self.plan.names(item.members))
            box = Box(self.scene.key(), "loop", "", "loop", names)
            inner = regions.entries(inside, set(self.plan.starts) | entries)
            turn = regions.round(inside, inner)
            self._find_back(turn, inner)
            box.children = self.of(turn, inside, inner)
            found.append((item.members[0], box))
        return [item for _, item in sorted(found, key=lambda pair: pair[0])]

    def _find_back(self, turn: Order, entries: frozenset[int]) -> None:
        for edge in self.plan.edges:
            source, target = turn.item_of.get(edge.source), turn.item_of.get(edge.target)
            if source is None or target is None or source == target or edge.target not in entries:
                continue
            if target not in turn.items[source].after:
                self.back.add(edge.index)


def _lines(node: Node, did: NodeCourse | None) -> tuple[str, ...]:
    """A node's label: its id, and what tells its kind from others of the same shape.

    Of an agent that ran it is the model that was really asked, whatever the file names.
    """
    name = _short(node.id)
    match node.type:
        case "agent" if did is not None and did.models:
            return name, _short(", ".join(did.models))
        case "agent":
            return name, _short(f"{node.config.provider}: {node.config.name}")
        case "human" | "python" | "literal" | "passthrough" | "template" | "subgraph":
            return name, node.type
        case "loop_counter":
            return name, f"{node.config.max_iterations} rounds"
        case "loop_timer":
            return name, f"{node.config.max_duration:g} {node.config.duration_unit}"
        case _:
            assert_never(node.type)


def _label(edge: Edge) -> str:
    """What is special about an edge."""
    words = [_short(text) for text in (*_condition(edge), *_process(edge))]
    if edge.dynamic is not None:
        words.append(f"{edge.dynamic.type} by {edge.dynamic.split.type}")
    if not edge.carry_data:
        words.append("no data")
    if not edge.trigger:
        words.append("no trigger")
    return "; ".join(words)


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
    text = line_of(text)
    return text if len(text) <= LONGEST_LABEL else text[: LONGEST_LABEL - 1] + "…"
