"""Where a human's answers come from when no human is asked at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devall.core.errors import AnswerNeeded
from devall.core.ports import HumanChannel, Question


class Nobody:
    """Nobody can be asked: the run waits."""

    async def ask(self, question: Question, /) -> str:
        """No answer, ever.

        Raises:
            AnswerNeeded: always.
        """
        raise AnswerNeeded([(question.path, question.text)])


class GivenAnswers:
    """Answers that were given beforehand, by node; whoever is next is asked when they end."""

    def __init__(
        self, answers: Mapping[str, str | Sequence[str]], then: HumanChannel | None = None
    ) -> None:
        """Take the answers over; they are used up in the order in which they are asked for.

        Args:
            answers: By node id (`S/X` in a subgraph, or `X`): one text for every time the node
                asks, or a list of texts in order.
            then: Asked when there is no answer (left).
        """
        self._every = {node: text for node, text in answers.items() if isinstance(text, str)}
        self._queues = {
            node: list(texts) for node, texts in answers.items() if not isinstance(texts, str)
        }
        self._then = then or Nobody()

    async def ask(self, question: Question, /) -> str:
        """The next answer for the question's node."""
        for name in (question.node, question.node.rpartition("/")[2]):
            if name in self._every:
                return self._every[name]
            if self._queues.get(name):
                return self._queues[name].pop(0)
        return await self._then.ask(question)
