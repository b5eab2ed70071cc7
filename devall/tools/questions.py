"""A question that a tool puts to the human while it works."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, runtime_checkable
from urllib.parse import quote

from devall.core.errors import AnswerNeeded
from devall.core.events import HumanAnswered, HumanAsked
from devall.core.ports import HumanChannel, Question, Scope


@runtime_checkable
class _Patient(Protocol):
    """A scope whose clocks can be held while a human thinks."""

    def waiting_for_human(self) -> AbstractContextManager[None]: ...


def human_waits(scope: Scope) -> AbstractContextManager[None]:
    """A block during which no clock of the scope's run goes on."""
    return scope.waiting_for_human() if isinstance(scope, _Patient) else nullcontext()


async def ask_human(
    human: HumanChannel | None, scope: Scope, text: str, name: str, asker: str = ""
) -> str:
    """A human's words, as a step; no clock of the run goes on meanwhile.

    Args:
        human: Who is asked, None = nobody can be.
        scope: The node's run that waits for the answer.
        text: What is asked.
        name: Tells the question from others of the same run of the node.
        asker: Who asks, where it is not (surely) the node; answers that were given to the node
            beforehand are not for it.

    Raises:
        AnswerNeeded: nobody can be asked.
    """
    step = f"ask:{quote(name, safe=' :.-')}"
    path = f"{scope.path}/{step}"
    scope.emit(HumanAsked(path=scope.path, node=scope.node, question=text))

    async def ask() -> str:
        if human is None:
            raise AnswerNeeded([(path, text)])
        with human_waits(scope):
            return await human.ask(Question(asker or scope.node, path, text))

    words: str = await scope.step("human", step, {"question": text}, ask, in_doubt=ask)
    scope.emit(HumanAnswered(path=scope.path, node=scope.node, answer=words))
    return words
