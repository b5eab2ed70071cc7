"""Calls that an interrupted run leaves in doubt: whether they were done is not known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase

from devall.config.tools import InDoubt
from devall.core.errors import ToolInDoubt
from devall.core.messages import TextPart, ToolCall
from devall.core.ports import HumanChannel, Scope
from devall.tools.base import IDEMPOTENT, IN_DOUBT, ToolResult, Toolset, ToolSpec
from devall.tools.questions import ask_human
from devall.tools.wrapped import WrappedToolset

RETRY, GIVE_UP = "retry", "fail"


class MarkedToolset(WrappedToolset):
    """Notes on each tool what its source says of calls in doubt."""

    def __init__(self, inner: Toolset, idempotent: Sequence[str], in_doubt: InDoubt) -> None:
        super().__init__(inner)
        self._idempotent = idempotent
        self._in_doubt = in_doubt

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools with their marks."""
        return [self._marked(each) for each in await self.inner.specs()]

    def _marked(self, spec: ToolSpec) -> ToolSpec:
        marks = dict(spec.metadata)
        if any(fnmatchcase(spec.name, glob) for glob in self._idempotent):
            marks[IDEMPOTENT] = True
        if self._in_doubt != "fail":
            marks[IN_DOUBT] = self._in_doubt
        return replace(spec, metadata=marks) if len(marks) > len(spec.metadata) else spec


def policy_of(spec: ToolSpec) -> InDoubt:
    """What the tool's source wants done with a call in doubt."""
    match spec.metadata.get(IN_DOUBT):
        case "retry":
            return "retry"
        case "ask":
            return "ask"
        case _:
            return "fail"


async def settle(
    policy: InDoubt,
    call: ToolCall,
    scope: Scope,
    human: HumanChannel | None,
) -> ToolResult | None:
    """What a call in doubt gives; None: it is to be made again.

    Args:
        policy: What the source or the command line wants done.
        call: The call.
        scope: The node's run.
        human: Asked where the policy says so.

    Raises:
        ToolInDoubt: the run is not to go on.
        AnswerNeeded: a human has to decide, and nobody can be asked.
    """
    doubt = ToolInDoubt(call.name, call.arguments, f"{scope.path}/{call.id}")
    if policy == "retry":
        return None
    if policy == "fail":
        raise doubt
    words = await ask_human(
        human,
        scope,
        f"{doubt}. Answer `{RETRY}` to call it again, `{GIVE_UP}` to stop, or with what it gave.",
        f"doubt:{call.id}",
    )
    word = words.strip().lower()
    if word == RETRY:
        return None
    if word == GIVE_UP:
        raise doubt
    return ToolResult((TextPart(words),))
