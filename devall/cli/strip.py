"""All nodes of a graph in a few lines: by name where they fit, else a mark for each, or for many."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from rich.cells import cell_len
from rich.text import Text

from devall.cli.board import State

MARKS: Mapping[State, tuple[str, str, str]] = {
    "waiting": ("·", ".", "dim"),
    "running": ("●", ">", "bold cyan"),
    "asking": ("?", "?", "bold yellow"),
    "done": ("✓", "+", "green"),
    "failed": ("✗", "x", "bold red"),
    "skipped": ("–", "-", "dim"),
}
"""A sign for each state, the same in ASCII, and its colour."""
_WEIGHTS: Mapping[State, int] = {
    "failed": 0,
    "asking": 1,
    "running": 2,
    "waiting": 3,
    "done": 4,
    "skipped": 5,
}
"""What a mark that stands for many nodes says of them: what a person should see first."""
_LONGEST_NAME = 24


def strip_of(
    nodes: Sequence[tuple[str, State]],
    width: int,
    most_lines: int,
    *,
    is_ascii: bool,
    shown: Callable[[str, int], str],
) -> list[Text]:
    """The nodes in file order, in at most so many lines of at most `width` cells.

    Args:
        nodes: Name and state of each.
        width: Cells of a line.
        most_lines: Lines at most.
        is_ascii: Whether there is nothing but ASCII.
        shown: A name as it may stand on the terminal, in at most so many characters.
    """
    if len(nodes) * 4 <= width * most_lines:  # a mark, a space, a letter, a space
        parts = [_named(name, state, is_ascii, shown) for name, state in nodes]
        lines = packed(parts, width)
        if len(lines) <= most_lines:
            return lines
    size = -(-len(nodes) // (width * most_lines)) if nodes else 1
    groups = (nodes[at : at + size] for at in range(0, len(nodes), size))
    states: list[State] = [_gravest(state for _, state in group) for group in groups]
    return [
        _marked(states[at : at + width], is_ascii=is_ascii) for at in range(0, len(states), width)
    ]


def packed(parts: Iterable[Text], width: int, between: str = "  ") -> list[Text]:
    """The parts on as few lines as hold them, none of them broken."""
    lines: list[Text] = []
    room = 0
    for part in parts:
        size = part.cell_len
        if lines and size + len(between) <= room:
            lines[-1].append(between, "dim")
            lines[-1].append_text(part)
            room -= size + len(between)
        else:
            lines.append(part.copy())
            room = width - size
    return lines


def bar(counts: Iterable[tuple[State, int]], total: int, width: int, *, is_ascii: bool) -> Text:
    """A bar of how many of all are in which state; what is there at all has a mark of its own.

    Args:
        counts: The states from left to right, each with its number; the rest waits.
        total: Of how many.
        width: Cells of the bar.
        is_ascii: Whether there is nothing but ASCII.
    """
    text = Text()
    so_far = left = 0
    for state, number in counts:
        so_far += number
        until = min(width, max(round(so_far * width / total), left + 1)) if number else left
        if so_far < total:
            until = min(until, width - 1)
        text.append(_BAR[state][is_ascii] * (until - left), MARKS[state][2])
        left = max(left, until)
    text.append(_BAR["waiting"][is_ascii] * (width - left), "dim")
    return text


_BAR: Mapping[State, tuple[str, str]] = {
    "waiting": ("─", "-"),
    "running": ("╍", ">"),
    "asking": ("?", "?"),
    "done": ("━", "="),
    "failed": ("✗", "x"),
    "skipped": ("–", "-"),
}


def _gravest(states: Iterable[State]) -> State:
    return min(states, key=lambda state: _WEIGHTS[state])


def _named(name: str, state: State, is_ascii: bool, shown: Callable[[str, int], str]) -> Text:
    sign, ascii_sign, style = MARKS[state]
    text = shown(name, _LONGEST_NAME)
    dim = "dim" if state in {"waiting", "skipped"} else ""
    return Text.assemble((f"{ascii_sign if is_ascii else sign} ", style), (text, dim))


def _marked(states: Sequence[State], *, is_ascii: bool) -> Text:
    text = Text()
    for state, number in _runs(states):
        sign, ascii_sign, style = MARKS[state]
        text.append((ascii_sign if is_ascii else sign) * number, style)
    return text


def _runs(states: Sequence[State]) -> Iterator[tuple[State, int]]:
    at = 0
    while at < len(states):
        end = at
        while end < len(states) and states[end] == states[at]:
            end += 1
        yield states[at], end - at
        at = end


def end_of(text: str, width: int, mark: str = "…") -> str:
    """As much of the end of a text as fits, behind a mark; wide characters count as two."""
    if len(text) <= width and cell_len(text) <= width:
        return text
    width -= len(mark)
    text = text[-width:]
    while (over := cell_len(text) - width) > 0:
        text = text[-(-over // 2) :]
    return mark + text
