"""Rules about loops: that they end, and that what should end them is in them."""

from __future__ import annotations

from collections.abc import Iterator

from devall.config.nodes import LoopCounterNode, LoopTimerNode
from devall.core.diagnostics import Diagnostic
from devall.graph.checks.shape import Shape, Way
from devall.graph.regions import Arc, Regions


def check_loops(shape: Shape) -> Iterator[Diagnostic]:
    """What is wrong with the loops of a graph, each of them."""
    if shape.loaded.config.is_majority_voting:
        return
    # An edge that never fires holds no loop together; numbers of ways are those of arcs.
    ways = [way for way in shape.ways if not way.is_dead]
    arcs = [Arc(way.source, way.target, way.edge.trigger) for way in ways]
    regions = Regions([node.id for node in shape.nodes], arcs)
    loops = regions.loops()
    looped = {number for loop in loops for number in loop}
    starts = [number for _, number in shape.starts]
    for loop in loops:
        yield from _check_exits(shape, frozenset(loop))
        yield from _check_ending(shape, loop, regions, starts)
    yield from _check_guards(shape, looped, {n: loop for loop in loops for n in loop})


def _check_ending(
    shape: Shape, loop: tuple[int, ...], regions: Regions, starts: list[int]
) -> Iterator[Diagnostic]:
    """Whether a loop, and each loop within it, can end by anything but its limit."""
    members = frozenset(loop)
    if not any(way.triggers and way.target not in members for n in loop for way in shape.out[n]):
        circle = _certain_circle(shape, members)
        if circle:
            limits = shape.loaded.config.limits
            is_error = ", which is an error" if limits.on_loop_limit == "fail" else ""
            yield shape.diagnostic(
                "endless-loop",
                f"the loop {shape.names(loop)} has no way out: it ends by its limit of"
                f" {limits.max_loop_iterations} rounds{is_error}",
                ("nodes", loop[0]),
                "give an edge of the loop a condition, or lead one out of it;"
                " a loop_counter in the loop ends it as well",
            )
            return
    entries = regions.entries(members, starts) or members
    for item in regions.round(members, frozenset(entries)).items:
        if item.is_loop:
            yield from _check_ending(shape, item.members, regions, [])


def _certain_circle(shape: Shape, members: frozenset[int]) -> bool:
    """Whether edges that fire for every output close a circle within a loop."""
    after = {
        number: [
            way.target
            for way in shape.out[number]
            if way.target in members and way.is_certain and not shape.is_silent(number)
        ]
        for number in members
    }
    before = dict.fromkeys(members, 0)
    for targets in after.values():
        for target in targets:
            before[target] += 1
    free = [number for number in members if not before[number]]
    for number in free:  # it grows
        for target in after[number]:
            before[target] -= 1
            if not before[target]:
                free.append(target)
    return len(free) < len(members)


def _check_exits(shape: Shape, members: frozenset[int]) -> Iterator[Diagnostic]:
    """A way out that is always taken leaves no second round to the edges beside it."""
    for number in sorted(members):
        if shape.is_silent(number):
            continue
        back = [way for way in shape.out[number] if way.target in members and way.triggers]
        out = [way for way in shape.out[number] if way.target not in members and way.is_certain]
        if not back or not out:
            continue
        way = out[0]
        node = shape.nodes[way.target]
        if isinstance(node, LoopCounterNode | LoopTimerNode):
            continue  # said by the rule about these
        yield shape.diagnostic(
            "exit-always-taken",
            f"the loop {shape.names(sorted(members))} starts no other round from node"
            f" {shape.name(number)}: edge {_name(way)} always fires, and the way out wins",
            ("edges", way.index),
            "give the edge a condition",
        )


def _check_guards(
    shape: Shape, looped: set[int], loop_of: dict[int, tuple[int, ...]]
) -> Iterator[Diagnostic]:
    """A counter or timer ends the loop that it is in; outside of it, it is a way out."""
    for number, node in enumerate(shape.nodes):
        if number in looped or shape.is_broken(number):
            continue
        match node:
            case LoopCounterNode(config=config) if config.max_iterations > 1:
                silence = f"silent until it has run {config.max_iterations} times"
            case LoopTimerNode(config=config) if not config.passthrough:
                silence = "silent until its time is up"
            case _:
                continue
        from_loop = next((way for way in shape.into[number] if way.source in looped), None)
        if from_loop is not None:
            loop = loop_of[from_loop.source]
            message = (
                f"{node.type} {node.id} is outside of the loop {shape.names(loop)}: reaching it"
                f" ends the loop in its first round, and it is {silence}"
            )
            hint = f"lead an edge from {node.id} back into the loop"
        elif shape.is_whole:
            message = f"{node.type} {node.id} is in no loop: it runs once, and is {silence}"
            hint = "lead edges through it that close a loop"
        else:
            continue
        yield shape.diagnostic("guard-outside-loop", message, ("nodes", number), hint)


def _name(way: Way) -> str:
    return f"{way.edge.from_} -> {way.edge.to}"
