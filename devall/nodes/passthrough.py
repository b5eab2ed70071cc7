"""A place where ways meet."""

from __future__ import annotations

from collections.abc import Sequence

from devall.config.nodes import PassthroughConfig
from devall.core.messages import Message, user
from devall.core.ports import NodeResult, Scope


class PassthroughExecutor:
    """Hands on its inputs, or the last of them; with none, one empty user message."""

    def __init__(self, config: PassthroughConfig) -> None:
        self._only_last = config.only_last_message

    async def run(self, _scope: Scope, inputs: Sequence[Message], /) -> NodeResult:
        """The inputs that go on."""
        if not inputs:
            return NodeResult((user(""),))
        return NodeResult((inputs[-1],) if self._only_last else tuple(inputs))
