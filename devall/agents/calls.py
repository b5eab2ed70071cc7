"""The tool calls of one turn: run side by side, each of them a step with its own result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from devall.core.errors import AnswerNeeded, ToolArguments
from devall.core.events import ToolCallFinished, ToolCallStarted
from devall.core.messages import (
    NOTHING,
    JsonValue,
    Message,
    Part,
    TextPart,
    ToolCall,
    from_json,
    to_json,
)
from devall.core.ports import Scope
from devall.tools.arguments import parse_arguments
from devall.tools.base import ToolResult, ToolSpec


class Tools(Protocol):
    """What runs the calls: a node's tools, opened."""

    def specs(self) -> Sequence[ToolSpec]:
        """The tools as the model is offered them."""
        ...

    async def call(self, call: ToolCall, scope: Scope) -> ToolResult:
        """What a call gives; whatever goes wrong in it is an error result."""
        ...

    async def ready(self) -> None:
        """Open what calls need; more than once is harmless.

        Raises:
            SetupError: a source that is required cannot be used.
        """
        ...

    async def settle(self, call: ToolCall, spec: ToolSpec, scope: Scope) -> ToolResult | None:
        """What a call gives of which nobody knows whether it was done; None: make it again.

        Raises:
            ToolInDoubt: that must be decided by somebody.
        """
        ...


@runtime_checkable
class ChangingTools(Protocol):
    """Tools that may be others from one turn to the next."""

    @property
    def may_change(self) -> bool:
        """Whether they ever are: known from the file alone."""
        ...

    async def refresh(self) -> None:
        """Take over what the sources offer now."""
        ...

    def beside(self, messages: Sequence[Message]) -> Sequence[ToolSpec]:
        """Tools that a conversation calls for by what stands in it."""
        ...


@dataclass(frozen=True, slots=True)
class Calls:
    """Runs the tool calls of one run of an agent."""

    node: str
    """Id of the node, for events."""
    source: str
    """Id of the node that results come from."""
    tools: Tools | None
    offered: Mapping[str, ToolSpec]
    """The tools by the names that the model knows."""
    scope: Scope
    at_once: int
    """How many calls run at one time."""
    refusal: Callable[[ToolCall, ToolSpec | None], str] = lambda call, spec: ""  # noqa: ARG005
    """What the model is told of a call that may not be made now; empty: it may."""

    async def run(self, turn: int, calls: Sequence[ToolCall]) -> tuple[Message, ...]:
        """The results, one tool message for each call, in the order of the calls.

        They start in that order. A call that fails gives an error result and leaves the
        others alone.

        Raises:
            LimitReached: a bound on tool calls was reached; the calls that had begun before
                were finished first.
            AnswerNeeded: some of them wait for humans; the others were finished.
        """
        gate = asyncio.Semaphore(self.at_once)
        is_stopped = False

        async def one(call: ToolCall) -> Message | None:
            nonlocal is_stopped
            async with gate:
                if is_stopped:
                    return None
                try:
                    self.scope.allow("tool_call")
                    return await self._step(turn, call)
                except Exception:
                    is_stopped = True
                    raise

        found = await asyncio.gather(*map(one, calls), return_exceptions=True)
        needs = [result for result in found if isinstance(result, AnswerNeeded)]
        for result in found:
            if isinstance(result, BaseException) and not isinstance(result, AnswerNeeded):
                raise result
        if needs:
            raise AnswerNeeded([question for need in needs for question in need.questions])
        return tuple(result for result in found if isinstance(result, Message))

    async def _step(self, turn: int, call: ToolCall) -> Message:
        scope = self.scope
        began = time.monotonic()
        is_replayed = True

        async def effect() -> JsonValue:
            nonlocal is_replayed
            is_replayed = False
            return self._to_json(call, await self._result(call))

        name = f"turn:{turn}/tool:{_escaped(call.id)}"

        async def in_doubt() -> JsonValue:
            nonlocal is_replayed
            is_replayed = False
            spec = self.offered.get(call.name)
            assert self.tools is not None
            assert spec is not None
            known = await self.tools.settle(call, spec, scope)
            return await effect() if known is None else self._to_json(call, known)

        request = {"name": call.name, "arguments": call.arguments}
        self._announce(call)
        if text := self.refusal(call, self.offered.get(call.name)):
            # No step: it follows from the conversation, and nothing is done.
            is_replayed = False
            refused = ToolResult((TextPart(text),), is_error=True)
            message = from_json(self._to_json(call, refused))
        else:
            repeats = self.tools is None or self._may_repeat(call)
            message = from_json(
                await scope.step("tool", name, request, effect, None if repeats else in_doubt)
            )
        scope.emit(
            ToolCallFinished(
                path=scope.path,
                node=self.node,
                call_id=call.id,
                tool=call.name,
                seconds=0.0 if is_replayed else time.monotonic() - began,
                result=message.text,
                is_error=message.is_error,
                replayed=is_replayed,
            )
        )
        return message

    def _may_repeat(self, call: ToolCall) -> bool:
        """Whether a call may be made twice: it changes nothing, or the second changes nothing."""
        spec = self.offered.get(call.name)
        return spec is None or spec.is_repeatable

    def _to_json(self, call: ToolCall, result: ToolResult) -> JsonValue:
        return to_json(
            Message(
                "tool",
                _content(result.parts),
                self.source,
                tool_call_id=call.id,
                is_error=result.is_error,
            )
        )

    def _announce(self, call: ToolCall) -> None:
        spec = self.offered.get(call.name)
        try:
            arguments: JsonValue = parse_arguments(call.arguments, NOTHING)
        except ToolArguments:
            arguments = call.arguments
        self.scope.emit(
            ToolCallStarted(
                path=self.scope.path,
                node=self.node,
                call_id=call.id,
                tool=call.name,
                arguments=arguments,
                server=str(spec.metadata.get("server", "")) if spec else "",
            )
        )

    async def _result(self, call: ToolCall) -> ToolResult:
        if self.tools is None or not self.offered:
            text = f"there is no tool {call.name}: no tools are offered now, answer without one"
            return ToolResult((TextPart(text),), is_error=True)
        await self.tools.ready()
        return await self.tools.call(call, self.scope)


def with_unique_ids(
    calls: Sequence[ToolCall], turn: int, taken: Collection[str]
) -> tuple[ToolCall, ...]:
    """The calls, each with an id that no other call of the conversation has.

    An id that is empty, repeated or no text (half of a surrogate pair) gives way to
    `call_TURN_POSITION`: always the same one for the same conversation.
    """
    used: set[str] = set()
    found: list[ToolCall] = []
    for position, call in enumerate(calls, 1):
        name = call.id if _is_text(call.id) else ""
        made = f"call_{turn}_{position}"
        while not name or name in used or name in taken:
            name, made = made, f"{made}_"
        used.add(name)
        found.append(call if name == call.id else replace(call, id=name))
    return tuple(found)


def _is_text(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _content(parts: tuple[Part, ...]) -> str | tuple[Part, ...]:
    """Parts as a message holds them: text alone is one text."""
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return "\n".join(texts) if len(texts) == len(parts) else parts


def _escaped(call_id: str) -> str:
    """The id as a piece of a step's name: no `/`, and different for different ids."""
    return call_id.replace("%", "%25").replace("/", "%2F")
