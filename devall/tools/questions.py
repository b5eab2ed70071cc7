"""A question that a tool puts to the human while it works."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Protocol, runtime_checkable

from devall.core.errors import AnswerNeeded
from devall.core.events import HumanAnswered, HumanAsked
from devall.core.ports import HumanChannel, Question, Scope


@runtime_checkable
class _Patient(Protocol):
    """A scope whose clocks can be held while a human thinks."""

    def waiting_for_human(self) -> AbstractContextManager[None]: ...


async def ask_human(human: HumanChannel | None, scope: Scope, text: str) -> str:
    """A human's words; no clock of the run goes on meanwhile.

    Raises:
        AnswerNeeded: nobody can be asked.
    """
    scope.emit(HumanAsked(path=scope.path, node=scope.node, question=text))
    if human is None:
        raise AnswerNeeded([(scope.path, text)])
    with scope.waiting_for_human() if isinstance(scope, _Patient) else nullcontext():
        words = await human.ask(Question(scope.node, scope.path, text))
    scope.emit(HumanAnswered(path=scope.path, node=scope.node, answer=words))
    return words
