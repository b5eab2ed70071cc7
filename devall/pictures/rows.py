"""The order in which things stand in a picture from top to bottom, by what leads to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devall.pictures.scene import Arrow, Box, Dot, Scene, every

Holders = Mapping[str, Sequence[str]]
"""By an item's key: the keys of the boxes that it is in, and its own, from the outermost on."""


def holders_of(scene: Scene) -> Holders:
    """What each item of the scene is in."""
    found: dict[str, tuple[str, ...]] = {}

    def go(items: Sequence[Dot | Box], outer: tuple[str, ...]) -> None:
        for item in items:
            found[item.key] = (*outer, item.key)
            if isinstance(item, Box):
                go(item.children, found[item.key])

    go(scene.children, ())
    return found


def rows_of(
    items: Sequence[Dot | Box], arrows: Sequence[Arrow], holders: Holders
) -> list[list[Dot | Box]]:
    """The items in rows: each below all that leads to it, cycles broken where they close.

    Args:
        items: The children of one box, or of the scene.
        arrows: Those that the box is the innermost around.
        holders: What each item is in.
    """
    number = {item.key: at for at, item in enumerate(items)}
    after: list[dict[int, None]] = [{} for _ in items]
    for arrow in arrows:
        if arrow.is_back:
            continue
        source = _within(holders[arrow.source.key], number)
        target = _within(holders[arrow.target.key], number)
        if source is not None and target is not None and source != target:
            after[source][target] = None
    levels = _levels([list(each) for each in after])
    rows: list[list[Dot | Box]] = [[] for _ in range(max(levels, default=-1) + 1)]
    for item, level in zip(items, levels, strict=True):
        rows[level].append(item)
    return rows


def innermost(scene: Scene, holders: Holders) -> dict[str, list[Arrow]]:
    """The arrows by the key of the innermost box around both their ends; empty for the scene."""
    found: dict[str, list[Arrow]] = {}
    for arrow in scene.arrows:
        ends = holders[arrow.source.key][:-1], holders[arrow.target.key][:-1]
        around = ""
        for one, other in zip(*ends, strict=False):
            if one != other:
                break
            around = one
        found.setdefault(around, []).append(arrow)
    return found


def arrows_from(scene: Scene) -> dict[str, list[Arrow]]:
    """The arrows out of each item, by its key, in file order."""
    found: dict[str, list[Arrow]] = {item.key: [] for item in every(scene.children)}
    for arrow in scene.arrows:
        found[arrow.source.key].append(arrow)
    return found


def _within(keys: Sequence[str], number: Mapping[str, int]) -> int | None:
    return next((number[key] for key in keys if key in number), None)


def _levels(after: Sequence[Sequence[int]]) -> list[int]:
    """The longest way to each number over arrows that close no cycle (depth first, in order)."""
    order: list[int] = []
    state = [0] * len(after)
    forward: list[list[int]] = [[] for _ in after]
    for root in range(len(after)):
        if state[root]:
            continue
        state[root] = 1
        stack = [(root, iter(after[root]))]
        while stack:
            number, rest = stack[-1]
            target = next(rest, None)
            if target is None:
                stack.pop()
                state[number] = 2
                order.append(number)
            elif state[target] != 1:
                forward[number].append(target)
                if not state[target]:
                    state[target] = 1
                    stack.append((target, iter(after[target])))
    levels = [0] * len(after)
    for number in reversed(order):
        for target in forward[number]:
            levels[target] = max(levels[target], levels[number] + 1)
    return levels
