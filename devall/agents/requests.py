"""An agent's calls of its model, numbered by turn, each of them a step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from devall.agents.history import answered
from devall.agents.retry import complete_with_retry
from devall.config.agents import RetryConfig
from devall.core.errors import ModelError
from devall.core.events import ModelCallFailed, ModelCallFinished, ModelCallStarted, TextDelta
from devall.core.messages import NOTHING, JsonValue, Message, from_json, to_json
from devall.core.ports import Scope
from devall.core.usage import TokenUsage
from devall.models.base import (
    AttachmentReader,
    ChatModel,
    ChatReply,
    ChatRequest,
    OnText,
    ToolSchema,
    WrappedModel,
)

CHARACTERS_PER_TOKEN = 4
"""Rule of thumb by which a request's tokens are estimated before it is sent."""


@dataclass(slots=True)
class Requests:
    """The model calls of one run of an agent: checked, made once, told of."""

    node: str
    """Id of the node, for events."""
    model: ChatModel
    retry: RetryConfig
    scope: Scope
    attachments: AttachmentReader | None = None
    turn: int = field(default=0, init=False)
    """Number of the newest request, from 1."""

    async def send(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        params: Mapping[str, JsonValue] = NOTHING,
    ) -> ChatReply:
        """The model's reply, retries included; from the journal where it stands there.

        Raises:
            LimitReached: the call would go over a bound.
            ModelError: the model refused, or stayed out of reach.
            SetupError: a key, an extra or a file is missing.
        """
        self.turn += 1
        turn = self.turn
        request = ChatRequest(answered(messages), tuple(tools), params, self.attachments)
        scope, model = self.scope, self.model
        scope.allow("model_call", estimated_tokens(request))
        began = time.monotonic()
        is_replayed = True

        def on_text(text: str) -> None:
            scope.emit(TextDelta(path=scope.path, node=self.node, text=text))

        def on_failure(error: ModelError, attempt: int, wait: float | None) -> None:
            scope.emit(
                ModelCallFailed(
                    path=scope.path,
                    node=self.node,
                    provider=model.provider,
                    model=model.name,
                    turn=turn,
                    attempt=attempt,
                    message=str(error),
                    wait=wait,
                )
            )

        async def call() -> JsonValue:
            nonlocal is_replayed
            is_replayed = False
            told = _Announced(model, self.node, scope, turn)
            reply = await complete_with_retry(
                told, request, on_text, self.retry, on_failure=on_failure
            )
            return _reply_to_json(reply)

        reply = _reply_from_json(
            await scope.step("model", f"turn:{turn}", _request_to_json(model, request), call)
        )
        scope.emit(
            ModelCallFinished(
                path=scope.path,
                node=self.node,
                provider=model.provider,
                model=model.name,
                turn=turn,
                seconds=0.0 if is_replayed else time.monotonic() - began,
                usage=reply.usage,
                finish_reason=reply.finish_reason,
                replayed=is_replayed,
            )
        )
        return reply


def estimated_tokens(request: ChatRequest) -> int:
    """About how many tokens the request will be charged as input."""
    characters = sum(
        len(message.text) + sum(len(c.name) + len(c.arguments) for c in message.tool_calls)
        for message in request.messages
    )
    characters += sum(
        len(tool.name) + len(tool.description) + len(str(tool.parameters)) for tool in request.tools
    )
    return -(-characters // CHARACTERS_PER_TOKEN)


@dataclass(slots=True)
class _Announced(WrappedModel):
    """A model that tells of each attempt as it begins."""

    model: ChatModel
    node: str
    scope: Scope
    turn: int
    attempt: int = 0

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        self.attempt += 1
        self.scope.emit(
            ModelCallStarted(
                path=self.scope.path,
                node=self.node,
                provider=self.provider,
                model=self.name,
                turn=self.turn,
                attempt=self.attempt,
            )
        )
        return await self.model.complete(request, on_text)


def _request_to_json(model: ChatModel, request: ChatRequest) -> JsonValue:
    return {
        "provider": model.provider,
        "model": model.name,
        "messages": [to_json(message) for message in request.messages],
        "tools": [
            {
                "name": tool.name,
                "description": tool.description,
                "parameters": dict(tool.parameters),
            }
            for tool in request.tools
        ],
        "params": dict(request.params),
    }


def _reply_to_json(reply: ChatReply) -> JsonValue:
    return {
        "message": to_json(reply.message),
        "finish_reason": reply.finish_reason,
        "usage": asdict(reply.usage) if reply.usage else None,
        "model": reply.model,
    }


def _reply_from_json(value: JsonValue) -> ChatReply:
    usage = value["usage"]
    return ChatReply(
        from_json(value["message"]),
        value["finish_reason"],
        TokenUsage(**usage) if usage else None,
        value["model"],
    )
