"""Dynamic edges: one run of a node for each unit, side by side, in a fixed order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import assert_never

from devall.config.edges import Dynamic
from devall.core.errors import AnswerNeeded
from devall.core.messages import Message, as_input
from devall.core.ports import NodeResult
from devall.engine.splitting import split_messages

RunUnit = Callable[[int, int, Sequence[Message]], Awaitable[NodeResult]]
"""Runs one unit: its layer (0 for map, from 1 for tree), its number from 1, what it sees."""


async def run_units(
    dynamic: Dynamic, others: Sequence[Message], parts: Sequence[Message], run_unit: RunUnit
) -> NodeResult | None:
    """The outputs of all units in the order of the units; None: there is nothing to run.

    With no unit at all the node runs once on its other inputs, if it has any.

    Args:
        dynamic: How to split, and what to do with the units.
        others: What every unit sees too.
        parts: The messages that are split.
        run_unit: Runs one of them.
    """
    units = split_messages(dynamic.split, parts)
    room = asyncio.Semaphore(dynamic.config.max_parallel)
    if not units:
        return await run_unit(0, 1, others) if others else None
    match dynamic.type:
        case "map":
            results = await _side_by_side(room, run_unit, 0, [(*others, unit) for unit in units])
            return NodeResult(tuple(message for result in results for message in result.outputs))
        case "tree":
            return await _reduce(room, run_unit, dynamic.config.group_size, others, units)
        case _:
            assert_never(dynamic.type)


async def _reduce(
    room: asyncio.Semaphore,
    run_unit: RunUnit,
    size: int,
    others: Sequence[Message],
    units: Sequence[Message],
) -> NodeResult:
    """Groups become one output each, layer by layer; `others` go to the first layer only.

    A group counts as its last output, so that every layer is smaller than the one before.
    """
    layer = 0
    while True:
        layer += 1
        groups = [units[at : at + size] for at in range(0, len(units), size)]
        results = await _side_by_side(
            room, run_unit, layer, [(*(others if layer == 1 else ()), *group) for group in groups]
        )
        if len(results) == 1:
            return NodeResult(results[0].outputs)
        units = tuple(as_input(result.outputs[-1]) for result in results if result.outputs)
        if not units:
            return NodeResult()


async def _side_by_side(
    room: asyncio.Semaphore, run_unit: RunUnit, layer: int, inputs: Sequence[Sequence[Message]]
) -> list[NodeResult]:
    """All units of a layer; the first failure cancels the rest.

    Raises:
        AnswerNeeded: some wait for humans, and the others have run.
    """

    async def one(number: int, seen: Sequence[Message]) -> NodeResult | AnswerNeeded:
        async with room:
            try:
                return await run_unit(layer, number, seen)
            except AnswerNeeded as need:
                return need

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(at + 1, seen)) for at, seen in enumerate(inputs)]
    found = [task.result() for task in tasks]
    needs = [each for each in found if isinstance(each, AnswerNeeded)]
    if needs:
        raise AnswerNeeded([question for need in needs for question in need.questions])
    return [each for each in found if isinstance(each, NodeResult)]
