"""What a picture says in words and marks about what a run did."""

from __future__ import annotations

from collections.abc import Mapping

from devall.core.amounts import count, duration
from devall.pictures.course import State
from devall.pictures.scene import Arrow, Box, Dot, Scene, line_of

MARKS: Mapping[State | None, str] = {
    "completed": "✓",
    "failed": "✗",
    "skipped": "–",
    "waiting": "?",
    "cancelled": "■",
    "running": "…",
    None: "·",
}
"""A sign for each state beside its colour; None: it did not begin."""

ASCII_MARKS: Mapping[State | None, str] = {
    "completed": "+",
    "failed": "x",
    "skipped": "-",
    "waiting": "?",
    "cancelled": "#",
    "running": "~",
    None: ".",
}
"""The same where there is nothing but ASCII."""

UNBEGUN = "did not begin"
_LEAST = 0.005
"""Seconds that are worth telling."""


def state_of(scene: Scene, item: Dot | Box) -> State | None:
    """How a node ended in the run that is shown; None: it did not begin."""
    found = scene.of(item)
    return found.state if found is not None else None


def is_dim(scene: Scene, item: Dot | Box) -> bool:
    """Whether a node did nothing in the run that is shown."""
    return scene.course is not None and state_of(scene, item) in {"skipped", None}


def deeds(scene: Scene, item: Dot | Box, times: str = "×") -> str:
    """What a node did in the run that is shown, in short: `×3 · 2.4 s · 5 units`.

    Args:
        scene: The picture.
        item: The node.
        times: What stands before how often.
    """
    if scene.course is None:
        return ""
    found = scene.of(item)
    if found is None:
        return UNBEGUN
    words: list[str] = [] if found.state == "completed" else [found.state]
    if found.runs > 1:
        words.append(f"{times}{found.runs:,}")
    if found.seconds >= _LEAST:
        words.append(duration(found.seconds))
    if found.units:
        words.append(count(found.units, "unit"))
    words = words or ["ran"]
    return " · ".join(words) if times == "×" else ", ".join(words)


def marked_deeds(scene: Scene, item: Dot | Box) -> list[str]:
    """A line of what a node did in the run that is shown, its mark first; none: no run is."""
    if scene.course is None:
        return []
    return [f"{MARKS[state_of(scene, item)]} {deeds(scene, item)}"]


def is_silent(scene: Scene, arrow: Arrow) -> bool:
    """Whether an edge did not fire in the run that is shown."""
    return scene.fired(arrow) == 0


def title(scene: Scene, box: Box, between: str = " · ") -> str:
    """What stands over a box."""
    if box.kind == "subgraph":
        return box.title
    rounds = scene.rounds(box)
    return f"loop{between}{count(rounds, 'round')}" if rounds else "loop"


def label(scene: Scene, arrow: Arrow, times: str = "×") -> str:
    """What stands beside an edge: what is special about it, and how often it fired."""
    fired = scene.fired(arrow) or 0
    often = f"{times}{fired:,}" if fired > 1 else ""
    return " ".join(word for word in (arrow.label, often) if word)


def sentence(scene: Scene, item: Dot | Box) -> str:
    """A node in words, for a screen reader: `poet, openai: gpt-5, completed, 3 runs, 2.4 s`."""
    kind = "subgraph" if isinstance(item, Box) else item.kind.replace("_", " ")
    about = [item.lines[1]] if isinstance(item, Dot) and item.lines[1] != kind else []
    words = [item.name, kind, *about]
    if scene.course is not None:
        found = scene.of(item)
        if found is None:
            words.append(UNBEGUN)
        else:
            words.append(found.state)
            if found.runs:
                words += [count(found.runs, "run"), duration(found.seconds)]
            if found.units:
                words.append(count(found.units, "unit"))
    return line_of(", ".join(words))
