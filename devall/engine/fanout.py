"""Dynamic edges: one run of a node for each unit, side by side, in a fixed order."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import assert_never, cast

from devall.config.edges import Dynamic
from devall.core.errors import AnswerNeeded, RunError
from devall.core.messages import Message, as_input
from devall.core.ports import NodeResult
from devall.engine.splitting import split_messages


@dataclass(frozen=True, slots=True)
class Unit:
    """One of the pieces that a node runs for."""

    number: int
    """From 1."""
    of: int
    """How many there are; of a tree, in its layer."""
    layer: int = 0
    """0 for map, from 1 for tree."""

    @property
    def name(self) -> str:
        """The last piece of its logical path."""
        return f"unit:{self.layer}.{self.number}" if self.layer else f"unit:{self.number}"


RunUnit = Callable[[Unit, Sequence[Message]], Awaitable[NodeResult | RunError]]
"""Runs a unit on what it sees; an error is one that the others go on without."""


async def run_units(
    dynamic: Dynamic, others: Sequence[Message], parts: Sequence[Message], run_unit: RunUnit
) -> NodeResult | None:
    """The outputs of all units in the order of the units; None: there is nothing to run.

    With no unit at all the node runs once on its other inputs, if it has any. Units that failed
    and may be done without are left out; where all of them failed the first failure is raised.

    Args:
        dynamic: How to split, and what to do with the units.
        others: What every unit sees too.
        parts: The messages that are split.
        run_unit: Runs one of them.
    """
    units = split_messages(dynamic.split, parts)
    room = asyncio.Semaphore(dynamic.config.max_parallel)
    if not units:
        return (await _side_by_side(room, run_unit, 0, [others]))[0] if others else None
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
        if len(groups) == 1:
            return NodeResult(results[0].outputs)
        units = tuple(as_input(result.outputs[-1]) for result in results if result.outputs)
        if not units:
            return NodeResult()


async def _side_by_side(
    room: asyncio.Semaphore, run_unit: RunUnit, layer: int, inputs: Sequence[Sequence[Message]]
) -> list[NodeResult]:
    """The units of a layer that did not fail; a failure that is raised cancels the rest.

    Raises:
        AnswerNeeded: some wait for humans, and the others have run.
        RunError: every unit failed.
    """

    async def one(number: int, seen: Sequence[Message]) -> NodeResult | RunError | AnswerNeeded:
        async with room:
            try:
                return await run_unit(Unit(number, len(inputs), layer), seen)
            except AnswerNeeded as need:
                return need

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(at + 1, seen)) for at, seen in enumerate(inputs)]
    found = [task.result() for task in tasks]
    needs = [each for each in found if isinstance(each, AnswerNeeded)]
    if needs:
        raise AnswerNeeded([question for need in needs for question in need.questions])
    done = [each for each in found if isinstance(each, NodeResult)]
    failures = [each for each in found if isinstance(each, RunError)]
    if failures and not done:
        raise failures[0]
    return done


def first_leaf(error: BaseException) -> BaseException:
    """The failure that came first, out of however many groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error
