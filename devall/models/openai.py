"""Models behind an OpenAI-compatible endpoint, by Chat Completions or the Responses API."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from devall.core.errors import ModelError, ModelRefused, ModelUnavailable
from devall.core.messages import JsonValue
from devall.models import convert, convert_responses
from devall.models.base import ChatReply, ChatRequest, OnText
from devall.models.openai_client import Endpoint
from devall.models.openai_errors import Place, Said, from_said

JsonObject = dict[str, JsonValue]
Path = Literal["/chat/completions", "/responses"]


@dataclass(frozen=True, slots=True)
class EndpointModel:
    """A model of an endpoint; what the two protocols share."""

    endpoint: Endpoint
    place: Place

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
        body = {"stream": True} | convert.body_of(request, self.name)
        rejected = self.endpoint.rejected
        if body["stream"] and not ({"stream_options"} & (body.keys() | rejected)):
            try:
                usage = {"stream_options": {"include_usage": True}}
                return await self._answer(body | usage, on_text)
            except ModelRefused as error:
                # Some older servers do not know the one field that the file did not ask for.
                if error.status not in {400, 422} or "stream_options" not in str(error):
                    raise
                rejected.add("stream_options")
        return await self._answer(body, on_text)

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
        body = {"stream": True} | convert_responses.body_of(request, self.name)
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


def _quoted(event: JsonObject) -> str:
    return json.dumps(event, ensure_ascii=False) if event else ""
