"""A text that is always the same."""

from __future__ import annotations

from collections.abc import Sequence

from devall.config.nodes import LiteralConfig
from devall.core.messages import Message
from devall.core.ports import NodeResult, Scope


class LiteralExecutor:
    """Says its text, in a role that it keeps along edges."""

    def __init__(self, node: str, config: LiteralConfig) -> None:
        self._node = node
        self._config = config

    async def run(self, _scope: Scope, _inputs: Sequence[Message], /) -> NodeResult:
        """The text."""
        config = self._config
        return NodeResult((Message(config.role, config.content, self._node, preserve_role=True),))
