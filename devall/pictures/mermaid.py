"""A picture as text for Mermaid.

Ids in the text are made up (`n1`, `n2`): a node's own id may be any text, and stands in labels
only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from devall.loading.loader import LoadedGraph
from devall.pictures.course import Course, State
from devall.pictures.marks import is_dim, label, marked_deeds, state_of, title
from devall.pictures.scene import Arrow, Box, Dot, Kind, Scene, every, representative, scene_of

_SHAPES: Mapping[Kind, tuple[str, str]] = {
    "agent": ("(", ")"),
    "human": ("[/", "\\]"),
    "literal": (">", "]"),
    "passthrough": ("([", "])"),
    "template": ("[/", "/]"),
    "python": ("[[", "]]"),
    "subgraph": ("[", "]"),
    "loop_counter": ("{{", "}}"),
    "loop_timer": ("{{", "}}"),
}

_CLASSES: Mapping[State | None, str] = {
    "completed": "fill:#e6f4ea,stroke:#1a7f37,color:#1f2328",
    "failed": "fill:#ffebe9,stroke:#cf222e,color:#1f2328,stroke-width:2px",
    "skipped": "fill:#f6f8fa,stroke:#818b98,color:#59636e,stroke-dasharray:4 3",
    "waiting": "fill:#fff8c5,stroke:#9a6700,color:#1f2328",
    "cancelled": "fill:#fff1e5,stroke:#bc4c00,color:#1f2328",
    "running": "fill:#ddf4ff,stroke:#0969da,color:#1f2328",
    None: "fill:#f6f8fa,stroke:#818b98,color:#59636e,stroke-dasharray:1 4",
}
"""Colours of a node by its state; each names its text's too, so that dark themes can be read."""


def mermaid(graph: LoadedGraph, course: Course | None = None) -> str:
    """The graph as a Mermaid flowchart, and what a run of it did.

    Dashed arrows trigger nothing, thick ones fan out; start and end stand in round nodes.
    """
    scene = scene_of(graph, course)
    lines = ["flowchart TD"]
    ends = {"start": "start", "finish": "answer"} if scene.ends else {"start": "start"}
    lines += [f'    {key}(["{word}"])' for key, word in ends.items()]
    lines += _children(scene, scene.children, "    ")
    lines += [f"    start --> {item.key}" for item in scene.starts]
    silent: list[int] = []
    for number, arrow in enumerate(scene.arrows, len(scene.starts)):
        source, target = _apart(arrow)
        line = "-.->" if arrow.is_dashed else "==>" if arrow.is_thick else "-->"
        words = label(scene, arrow)
        said = f'|"{_text(words)}"|' if words else ""
        lines.append(f"    {source.key} {line}{said} {target.key}")
        if scene.fired(arrow) == 0:
            silent.append(number)
    lines += [f"    {item.key} --> finish" for item in scene.ends]
    lines.append("    classDef mark stroke-width:3px")
    marked = [item.key for item in every(scene.children) if item.is_start or item.is_end]
    lines.append(f"    class {','.join([*ends, *marked])} mark")
    if course is not None:
        lines += _states(scene)
    if silent:
        numbers = ",".join(map(str, silent))
        lines.append(f"    linkStyle {numbers} stroke:#9198a1,stroke-dasharray:2 4")
    return "\n".join(lines) + "\n"


def _apart(arrow: Arrow) -> tuple[Dot | Box, Dot | Box]:
    """An arrow's ends; those of a box to itself lie within, since Mermaid draws no other."""
    if arrow.source is arrow.target and isinstance(arrow.source, Box):
        return representative(arrow.source, "end"), representative(arrow.target, "start")
    return arrow.source, arrow.target


def _children(scene: Scene, items: Sequence[Dot | Box], indent: str) -> Iterator[str]:
    for item in items:
        if isinstance(item, Dot):
            left, right = _SHAPES[item.kind]
            text = "<br/>".join(map(_text, [*item.lines, *marked_deeds(scene, item)]))
            yield f'{indent}{item.key}{left}"{text}"{right}'
        else:
            words = title(scene, item)
            if item.kind == "subgraph":
                words = " · ".join([f"{words} (subgraph)", *marked_deeds(scene, item)])
            yield f'{indent}subgraph {item.key}["{_text(words)}"]'
            yield from _children(scene, item.children, indent + "    ")
            yield f"{indent}end"


def _states(scene: Scene) -> Iterator[str]:
    """The classes of states that occur, and which nodes are of them."""
    for state, look in _CLASSES.items():
        found = [
            item.key
            for item in every(scene.children)
            if not (isinstance(item, Box) and (item.kind == "loop" or not is_dim(scene, item)))
            and state_of(scene, item) == state
        ]
        if found:
            name = state or "unbegun"
            yield f"    classDef {name} {look}"
            yield f"    class {','.join(found)} {name}"


def _text(text: str) -> str:
    """Text for a quoted label: everything that could mean something is a character's number."""
    return "".join(
        c if c.isalnum() or c in " _-.,:/()=" or ord(c) > 127 else f"#{ord(c)};" for c in text
    )
