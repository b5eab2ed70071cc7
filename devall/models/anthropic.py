"""Models behind Anthropic's Messages API."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from http import HTTPStatus

from devall.core.errors import ModelError, ModelRefused, ModelUnavailable
from devall.core.messages import JsonValue
from devall.models import convert_messages
from devall.models.base import ChatReply, ChatRequest, OnText
from devall.models.exchange import Endpoint
from devall.models.failures import Place, Said, from_said
from devall.models.habits import adapting

JsonObject = dict[str, JsonValue]

_OVERLOADED = 529
"""The API's own status, for which HTTP has a word that every retry policy knows."""
_TOO_MANY = re.compile(r"max_tokens: (\d+) > (\d+)")
_LENGTHS = {"max_tokens", "max_completion_tokens", "max_output_tokens"}
_most_tokens: dict[tuple[str, str], int] = {}
"""The longest answers of models that give fewer tokens than we ask for, by URL and name."""


@dataclass(frozen=True, slots=True)
class MessagesModel:
    """A model that speaks the Messages API."""

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

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt; two where the model gives fewer tokens than nobody but us asked for.

        Raises:
            ModelRefused: repeating cannot help.
            ModelUnavailable: repeating may help.
            BadModelResponse: the answer is no answer.
        """
        key = self.url, self.name

        def body_of() -> JsonObject:
            most = _most_tokens.get(key, convert_messages.MOST_TOKENS)
            return {"stream": True} | convert_messages.body_of(request, self.name, most)

        async def asked() -> ChatReply:
            return await adapting(
                self.place, request.params, body_of, lambda body: self._answer(body, on_text)
            )

        try:
            return await asked()
        except ModelRefused as error:
            found = _TOO_MANY.search(str(error))
            is_ours = not request.params.keys() & _LENGTHS
            if found is None or not is_ours or int(found[2]) >= int(found[1]):
                raise
            _most_tokens[key] = int(found[2])
        return await asked()

    async def _answer(self, body: JsonObject, on_text: OnText) -> ChatReply:
        answer = convert_messages.MessagesAnswer()
        first: JsonObject = {}

        def take(event: JsonObject) -> None:
            nonlocal first
            first = first or event
            if added := answer.feed(event):
                on_text(added)

        try:
            whole = await self.endpoint.exchange("/v1/messages", body, self.place, take)
            if whole is not None:
                take(whole)
            if answer.failure:
                raise from_said(Said.of(answer.failure), None, self.place)
            if not answer.has_begun or (whole is not None and not answer.is_whole):
                quoted = json.dumps(first, ensure_ascii=False) if first else ""
                raise self.place.bad("no message", quoted)
            if not answer.is_whole and not answer.reason:
                raise self.place.error(ModelUnavailable, "the answer broke off before its end")
        except ModelError as error:
            if error.status == _OVERLOADED:
                error.status = HTTPStatus.SERVICE_UNAVAILABLE
            error.usage = answer.usage or error.usage
            raise
        return answer.reply()
