"""An agent's calls of its model, numbered by turn, each of them a step."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from urllib.parse import urlsplit

from devall.agents.gates import Gate
from devall.agents.history import answered
from devall.agents.retry import complete_with_retry
from devall.agents.sizes import Size, Sizes, longest_output
from devall.agents.told import Told
from devall.agents.window import KeepText, fit
from devall.config.agents import HistoryConfig, RetryConfig
from devall.core.errors import ModelError, PromptTooLong
from devall.core.events import (
    HistoryCut,
    ModelCallDelayed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    Warned,
)
from devall.core.messages import NOTHING, JsonValue, Message, from_json, to_json
from devall.core.ports import Scope
from devall.core.usage import NOTHING_USED, Estimate, TokenUsage
from devall.models.base import (
    AttachmentReader,
    ChatModel,
    ChatReply,
    ChatRequest,
    OnText,
    ToolSchema,
    WrappedModel,
)
from devall.models.prices import SMALLEST_WINDOW, window_of

_PAUSING = frozenset({429, 503})
"""Statuses whose `Retry-After` is meant for all who call."""


@dataclass(slots=True)
class Requests:
    """The model calls of one run of an agent: made to fit, checked, made once, told of."""

    node: str
    """Id of the node, for events."""
    model: ChatModel
    retry: RetryConfig
    scope: Scope
    attachments: AttachmentReader | None = None
    history: HistoryConfig = field(default_factory=HistoryConfig)
    """What is sent of a conversation that is longer than the model's window."""
    keep_text: KeepText | None = None
    """Keeps what is shortened."""
    gate: Gate = field(default_factory=Gate)
    """The way to the endpoint, shared with other agents."""
    told: set[str] = field(default_factory=set[str])
    """What was said once of the agent, and need not be said for each of its runs."""
    turn: int = field(default=0, init=False)
    """Number of the newest request, from 1."""
    _sizes: Sizes = field(default_factory=Sizes, init=False)
    _size: Size = field(default=Size(0, 0), init=False)
    """Of the request that was fitted last."""
    _fitted: tuple[tuple[Message, ...], int] = field(default=((), -1), init=False)
    """That request's messages, and the number of its tools."""
    _told: Told = field(default_factory=Told, init=False)

    def fitted(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        params: Mapping[str, JsonValue] = NOTHING,
    ) -> tuple[Message, ...]:
        """The conversation as the next request can hold it; what fits stays as it is.

        Raises:
            PromptTooLong: it cannot fit, whatever may be cut.
        """
        if messages is self._fitted[0] and len(tools) == self._fitted[1]:
            return self._fitted[0]
        found = self._cut(answered(messages), tools, params)
        self._size = self._sizes.of_request(found, tools)
        self._fitted = found, len(tools)
        return found

    def _cut(
        self,
        whole: tuple[Message, ...],
        tools: Sequence[ToolSchema],
        params: Mapping[str, JsonValue],
    ) -> tuple[Message, ...]:
        """The conversation, cut if need be."""
        size = self._sizes.of_request(whole, tools)
        most, source = self._most(size.tokens, longest_output(params))
        if most is None or size.tokens <= most:
            return whole
        offered = self._sizes.of_tools(tools)
        cut = fit(whole, most - offered, self.history, self._sizes.of_message, self.keep_text)
        tokens = cut.tokens + offered
        if tokens > most:
            raise PromptTooLong(self.model.name, tokens, most, source)
        scope = self.scope
        scope.emit(
            HistoryCut(
                path=scope.path,
                node=self.node,
                turn=self.turn + 1,
                left_out=cut.left_out,
                shortened=cut.shortened,
                tokens=tokens,
                most=most,
            )
        )
        text = (
            f"the conversation is longer than {source} ({most:,} tokens): the model does not"
            " see all of it any more"
        )
        if text not in self.told:
            self.told.add(text)
            self._warn("history_cut", text)
        return cut.messages

    def _most(self, tokens: int, output: int) -> tuple[int | None, str]:
        """The tokens that a request may have, and where that is said; None: nobody knows."""
        if self.history.max_tokens is not None:
            return self.history.max_tokens, "`history.max_tokens`"
        if tokens + output <= SMALLEST_WINDOW:
            return None, ""
        window = window_of(self.model.provider, self.model.name)
        if window is None:
            return None, ""
        # An answer that may fill the whole window is no reason to send nothing.
        return max(window - output, window // 2), "the model's window"

    async def send(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),
        params: Mapping[str, JsonValue] = NOTHING,
        answer_schema: Mapping[str, JsonValue] | None = None,
    ) -> ChatReply:
        """The model's reply, retries included; from the journal where it stands there.

        Raises:
            LimitReached: the call would go over a bound.
            PromptTooLong: the request cannot fit the model's window.
            ModelError: the model refused, or stayed out of reach.
            SetupError: a key, an extra or a file is missing.
        """
        shown = self.fitted(messages, tools, params)
        self.turn += 1
        turn = self.turn
        request = ChatRequest(shown, tuple(tools), params, self.attachments, answer_schema)
        scope, model = self.scope, self.model
        size = self._size
        used = TokenUsage(size.tokens, longest_output(params))
        starting = ModelCallStarted(
            path=scope.path,
            node=self.node,
            provider=model.provider,
            model=model.name,
            turn=turn,
            messages=self._told.news(shown),
            tools=tuple(tool.name for tool in tools),
            server=_server(model.url),
        )
        scope.allow("model_call", Estimate(model.provider, model.name, used))
        began = time.monotonic()
        is_replayed = True
        failures: list[JsonValue] = []

        def on_text(text: str) -> None:
            scope.emit(TextDelta(path=scope.path, node=self.node, text=text))

        def on_failure(error: ModelError, attempt: int, wait: float | None) -> None:
            charged = _charged(error)
            failures.append(
                {
                    "attempt": attempt,
                    "message": str(error),
                    "code": str(error.status or error.code),
                    "wait": wait,
                    "usage": asdict(charged) if charged else None,
                }
            )
            self._tell_failure(turn, failures[-1])

        async def call() -> JsonValue:
            nonlocal is_replayed
            is_replayed = False
            told = _Announced(model, starting, scope, self.gate)
            reply = await complete_with_retry(
                told, request, on_text, self.retry, on_failure=on_failure
            )
            return _reply_to_json(reply) | {"failures": failures}

        value = await scope.step("model", f"turn:{turn}", _request_to_json(model, request), call)
        if is_replayed:
            self._tell_again(starting, value["failures"])
        reply = _reply_from_json(value)
        self._told.reply(reply.message)
        for note in reply.notes:
            self._warn("model", note)
        usage = reply.usage
        if usage is not None:
            self._sizes.learn(size, usage)
        scope.emit(
            ModelCallFinished(
                path=scope.path,
                node=self.node,
                provider=model.provider,
                model=model.name,
                turn=turn,
                seconds=0.0 if is_replayed else time.monotonic() - began,
                usage=usage,
                finish_reason=reply.finish_reason,
                replayed=is_replayed,
                answered_by=reply.model,
                estimate=TokenUsage(size.tokens, self._sizes.of_message(reply.message))
                if usage is None
                else None,
                reply=reply.message,
            )
        )
        return reply

    def _tell_again(self, starting: ModelCallStarted, failures: Sequence[JsonValue]) -> None:
        """Tell of the attempts of a call that stands in the journal."""
        for attempt in range(1, len(failures) + 2):
            self.scope.emit(_of_attempt(starting, attempt, replayed=True))
            if attempt <= len(failures):
                self._tell_failure(starting.turn, failures[attempt - 1])

    def _tell_failure(self, turn: int, failure: JsonValue) -> None:
        usage = failure["usage"]
        self.scope.emit(
            ModelCallFailed(
                path=self.scope.path,
                node=self.node,
                provider=self.model.provider,
                model=self.model.name,
                turn=turn,
                attempt=failure["attempt"],
                message=failure["message"],
                code=failure.get("code", ""),
                wait=failure["wait"],
                usage=TokenUsage(**usage) if usage else None,
            )
        )

    def _warn(self, code: str, text: str) -> None:
        scope = self.scope
        scope.emit(Warned(path=scope.path, code=code, message=text, node=scope.node))


def _of_attempt(
    first: ModelCallStarted, attempt: int, *, replayed: bool = False
) -> ModelCallStarted:
    """What is said of an attempt as it begins; the messages are those of the first one.

    Written out, since `dataclasses.replace` takes five times as long, and replays feel it.
    """
    return ModelCallStarted(
        path=first.path,
        node=first.node,
        provider=first.provider,
        model=first.model,
        turn=first.turn,
        attempt=attempt,
        messages=first.messages if attempt == 1 else (),
        tools=first.tools,
        server=first.server,
        replayed=replayed,
    )


@lru_cache(maxsize=64)
def _server(url: str) -> str:
    """Host and port of an endpoint; never what else an address may hold."""
    try:
        parts = urlsplit(url)
        port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    except ValueError:
        return ""
    host = parts.hostname or ""
    return f"{f'[{host}]' if ':' in host else host}:{port}" if host and port else host


def _charged(error: ModelError) -> TokenUsage | None:
    """What a failed attempt was charged; a refusal with a status was charged nothing."""
    if error.usage is None and error.status is not None:
        return NOTHING_USED
    return error.usage


@dataclass(slots=True)
class _Announced(WrappedModel):
    """A model that tells of each attempt as it begins, and keeps the pauses of its endpoint."""

    model: ChatModel
    starting: ModelCallStarted
    """What is said of the first attempt."""
    scope: Scope
    gate: Gate
    attempt: int = 0

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        await self.gate.passed(self._tell_wait)
        self.attempt += 1
        self.scope.emit(_of_attempt(self.starting, self.attempt))
        try:
            return await self.model.complete(request, on_text)
        except ModelError as error:
            if error.status in _PAUSING and error.retry_after:
                self.gate.shut(error.retry_after)
            raise

    def _tell_wait(self, seconds: float) -> None:
        starting = self.starting
        self.scope.emit(
            ModelCallDelayed(
                path=starting.path,
                node=starting.node,
                provider=starting.provider,
                model=starting.model,
                turn=starting.turn,
                seconds=seconds,
            )
        )


def _request_to_json(model: ChatModel, request: ChatRequest) -> JsonValue:
    """What the reply is known by: the words, and not the provider's way to write them.

    A tool's schema is written otherwise for each endpoint, and a replay has none.
    """
    return {
        "provider": model.provider,
        "model": model.name,
        "messages": [to_json(message) for message in request.messages],
        "tools": [{"name": tool.name, "description": tool.description} for tool in request.tools],
        "params": dict(request.params),
    }


def _reply_to_json(reply: ChatReply) -> dict[str, JsonValue]:
    return {
        "message": to_json(reply.message),
        "finish_reason": reply.finish_reason,
        "usage": asdict(reply.usage) if reply.usage else None,
        "model": reply.model,
        "notes": list(reply.notes),
    }


def _reply_from_json(value: JsonValue) -> ChatReply:
    usage = value["usage"]
    return ChatReply(
        from_json(value["message"]),
        value["finish_reason"],
        TokenUsage(**usage) if usage else None,
        value["model"],
        tuple(value["notes"]),
    )
