"""What ends a loop: a counter of rounds, a timer."""

from __future__ import annotations

import time
from collections.abc import Sequence

from devall.config.nodes import LoopCounterConfig, LoopTimerConfig
from devall.core.messages import Message, user
from devall.core.ports import NodeResult, Scope

_SILENT = NodeResult()
SECONDS = {"seconds": 1.0, "minutes": 60.0, "hours": 3600.0}
"""Of a timer's units."""


def counter_text(config: LoopCounterConfig) -> str:
    """What a counter says at its limit."""
    return config.message or f"Loop limit reached ({config.max_iterations})"


def timer_text(config: LoopTimerConfig) -> str:
    """What a timer says when its time is up."""
    return config.message or f"Time limit reached ({config.max_duration:g} {config.duration_unit})"


class LoopCounterExecutor:
    """Silent until it has run `max_iterations` times, then it speaks."""

    def __init__(self, node: str, config: LoopCounterConfig) -> None:
        self._node = node
        self._config = config
        self._count = 0

    async def run(self, _scope: Scope, _inputs: Sequence[Message], /) -> NodeResult:
        """Nothing, or that the limit is reached."""
        config = self._config
        self._count += 1
        if self._count < config.max_iterations:
            return _SILENT
        if config.reset_on_emit:
            self._count = 0
        return NodeResult((user(counter_text(config), self._node),))


class LoopTimerExecutor:
    """Silent, or handing on its inputs, until its time is up; then it speaks.

    The clock starts at the first run. Its readings are steps, so that a run that is resumed
    or replayed takes the same path.
    """

    def __init__(self, node: str, config: LoopTimerConfig) -> None:
        self._node = node
        self._config = config
        self._began: float | None = None

    async def run(self, scope: Scope, inputs: Sequence[Message], /) -> NodeResult:
        """The inputs or nothing, or that the time is up."""
        config = self._config
        now: float = await scope.step("clock", "now", None, _now)
        if self._began is None:
            self._began = now
        if now - self._began < config.max_duration * SECONDS[config.duration_unit]:
            return NodeResult(tuple(inputs)) if config.passthrough else _SILENT
        if config.reset_on_emit:
            self._began = None
        return NodeResult((user(timer_text(config), self._node),))


async def _now() -> float:
    return time.time()
