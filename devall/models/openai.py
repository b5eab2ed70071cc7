"""Models behind an OpenAI-compatible endpoint, by Chat Completions or the Responses API."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from devall.core.errors import ModelError, ModelUnavailable
from devall.core.messages import JsonValue
from devall.models import convert, convert_responses
from devall.models.base import ChatReply, ChatRequest, OnText
from devall.models.exchange import Endpoint
from devall.models.failures import Place, Said, from_said
from devall.models.habits import Habits, adapting, habits_of
from devall.models.histories import HISTORIES, normalised
from devall.models.shapes import as_list, as_object
from devall.models.tool_schemas import profile_of

JsonObject = dict[str, JsonValue]
Path = Literal["/chat/completions", "/responses"]


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """A model of an endpoint; what the two protocols share."""

    endpoint: Endpoint
    place: Place
    echo: str = "auto"
    """Whether an assistant's thoughts are sent back: `auto`, `always` or `never`."""

    @property
    def provider(self) -> str:
        """The provider's name in the workflow."""
        return self.place.provider

    @property
    def name(self) -> str:
        """The model's name in the workflow."""
        return self.place.model

    @property
    def url(self) -> str:
        """The endpoint, for error texts."""
        return self.place.url

    @property
    def habits(self) -> Habits:
        """What is known of what the model takes."""
        return habits_of(self.place)

    def fitted(self, request: ChatRequest) -> ChatRequest:
        """The request, its conversation as the model takes it."""
        habits = self.habits
        kind = profile_of(self.provider, self.url).name
        kind = "compatible" if kind == "lenient" else kind
        messages = normalised(request.messages, HISTORIES["strict" if habits.is_strict else kind])
        return replace(request, messages=habits.echoed(messages, self.echo))

    async def exchange(
        self, path: Path, body: JsonObject, feed: Callable[[JsonObject], str], on_text: OnText
    ) -> tuple[bool, JsonObject]:
        """Send a request and feed its answer, be it a stream or one JSON object.

        Returns:
            Whether it was a stream, and what came in first.

        Raises:
            ModelError: whatever went wrong.
        """
        first: JsonObject = {}

        def take(event: JsonObject) -> None:
            nonlocal first
            first = first or event
            if added := feed(event):
                on_text(added)

        whole = await self.endpoint.exchange(path, body, self.place, take)
        if whole is not None:
            take(whole)
        return whole is None, first


@dataclass(frozen=True, slots=True)
class ChatCompletionsModel(EndpointModel):
    """A model that speaks Chat Completions."""

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt.

        Raises:
            ModelRefused: repeating cannot help.
            ModelUnavailable: repeating may help.
            BadModelResponse: the answer is no answer.
        """

        def body_of() -> JsonObject:
            body = {"stream": True} | convert.body_of(self.fitted(request), self.name)
            if self.habits.is_strict:
                body["messages"] = [_without_empty(m) for m in as_list(body["messages"])]
            if body["stream"] and "stream" not in self.habits.left_out:
                body.setdefault("stream_options", {"include_usage": True})
            return body

        return await adapting(
            self.place,
            request.params,
            body_of,
            lambda body: self._answer(body, on_text),
            echo=self.echo,
        )

    async def _answer(self, body: JsonObject, on_text: OnText) -> ChatReply:
        answer = convert.ChatAnswer()
        try:
            is_stream, first = await self.exchange("/chat/completions", body, answer.feed, on_text)
            if not answer.has_choice:
                raise self.place.bad("no choices", _quoted(first))
            if is_stream and not answer.finish_reason and answer.usage is None:
                raise self.place.error(ModelUnavailable, "the answer broke off before its end")
        except ModelError as error:
            # It was charged, though nothing came of it.
            error.usage = answer.usage or error.usage
            raise
        return answer.reply()


@dataclass(frozen=True, slots=True)
class ResponsesModel(EndpointModel):
    """A model that speaks the Responses API."""

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt.

        Raises:
            ModelRefused: repeating cannot help.
            ModelUnavailable: repeating may help.
            BadModelResponse: the answer is no answer.
        """

        def body_of() -> JsonObject:
            return {"stream": True} | convert_responses.body_of(self.fitted(request), self.name)

        return await adapting(
            self.place,
            request.params,
            body_of,
            lambda body: self._answer(body, on_text),
            echo=self.echo,
        )

    async def _answer(self, body: JsonObject, on_text: OnText) -> ChatReply:
        answer = convert_responses.ResponsesAnswer()
        try:
            is_stream, first = await self.exchange("/responses", body, answer.feed, on_text)
            if answer.failure:
                raise from_said(Said.of(answer.failure), None, self.place)
            if is_stream and first and not answer.response:
                raise self.place.error(ModelUnavailable, "the answer broke off before its end")
            if not answer.has_output:
                raise self.place.bad("no output", _quoted(first))
        except ModelError as error:
            error.usage = answer.usage or error.usage
            raise
        return answer.reply()


def _without_empty(message: JsonValue) -> JsonObject:
    """The message; where nothing may be empty, nothing is said beside calls."""
    sent = as_object(message)
    return sent | {"content": None} if sent.get("tool_calls") and not sent["content"] else sent


def _quoted(event: JsonObject) -> str:
    return json.dumps(event, ensure_ascii=False) if event else ""
