"""Whether an agent gets anywhere, or makes the same calls with the same results."""

from __future__ import annotations

import json
from collections.abc import Iterable

from devall.core.errors import NoProgress
from devall.core.messages import ToolCall


class Repeats:
    """Counts the turns in a row in which the same calls gave the same results.

    A turn's calls are looked at together and without their order, so that a call that is
    repeated beside others that do change is no standstill.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._newest: frozenset[tuple[str, str, str]] = frozenset()
        self._times = 0

    def note(self, turn: Iterable[tuple[ToolCall, str]]) -> str:
        """Take in a turn's calls and the texts of their results.

        Returns:
            What the model must be told; empty while all is well.

        Raises:
            NoProgress: the model was told, and has done it once more.
        """
        calls = frozenset((call.name, _canonical(call.arguments), text) for call, text in turn)
        self._times = self._times + 1 if calls == self._newest else 1
        self._newest = calls
        if not self._limit or self._times < self._limit:
            return ""
        names = ", ".join(sorted({name for name, _, _ in calls}))
        if self._times > self._limit:
            raise NoProgress(names, self._times)
        return (
            f"You have now called {names} {self._times} times in a row with the same arguments"
            " and the same result. Another identical call will not help and will stop you:"
            " use the result, try something else, or answer."
        )


def _canonical(arguments: str) -> str:
    """The arguments in one spelling; as they stand where they are no JSON."""
    try:
        return json.dumps(json.loads(arguments), sort_keys=True)
    except (ValueError, RecursionError):
        return arguments
