"""A question to a human."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from devall.config.nodes import HumanConfig
from devall.core.errors import AnswerNeeded, NodeTimeout
from devall.core.events import HumanAnswered, HumanAsked
from devall.core.messages import Message, user
from devall.core.ports import HumanChannel, NodeResult, Question
from devall.engine.context import NodeScope


class HumanExecutor:
    """Asks a human, and passes the words on; no clock of the run goes on meanwhile."""

    def __init__(self, node: str, config: HumanConfig, channel: HumanChannel) -> None:
        self._node = node
        self._config = config
        self._channel = channel

    async def run(self, scope: NodeScope, inputs: Sequence[Message], /) -> NodeResult:
        """The human's words as a user message.

        Raises:
            AnswerNeeded: nobody can be asked, and there is no default.
            NodeTimeout: nobody answered in time, and there is no default.
        """
        question = Question(scope.node, scope.path, self._config.description, tuple(inputs))
        request = {"question": question.text, "inputs": [message.text for message in inputs]}

        scope.emit(HumanAsked(path=scope.path, node=scope.node, question=question.text))

        async def ask() -> str:
            with scope.waiting_for_human():
                return await self._answer(question)

        answer: str = await scope.step("human", "answer", request, ask, in_doubt=ask)
        scope.emit(HumanAnswered(path=scope.path, node=scope.node, answer=answer))
        return NodeResult((user(answer, self._node),))

    async def _answer(self, question: Question) -> str:
        config = self._config
        timeout = asyncio.timeout(config.timeout)
        try:
            async with timeout:
                return await self._channel.ask(question)
        except AnswerNeeded:
            if config.default is None:
                raise
            return config.default
        except TimeoutError:
            if not timeout.expired():
                raise
            if config.default is None:
                raise NodeTimeout(config.timeout or 0) from None
            return config.default
