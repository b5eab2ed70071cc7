"""How many tokens a request will have, estimated before it is sent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple

from devall.core.messages import JsonValue, MediaPart, Message
from devall.core.usage import TokenUsage
from devall.models.base import ToolSchema

BYTES_PER_TOKEN = 4
"""Of UTF-8: near the truth for English and for most other writing, too few for code."""
MEDIA_TOKENS = 1_000
"""What an image or another file counts as."""
MESSAGE_TOKENS = 4
"""What goes around a message."""
LEAST_SCALE, MOST_SCALE = 0.5, 2.0
"""Between these times an estimate the truth is taken to be."""
_CALIBRATING = 200
"""Tokens from which on a request's count says something about text, and not about its frame."""
_OUTPUT_BOUNDS = ("max_tokens", "max_completion_tokens", "max_output_tokens")


class Size(NamedTuple):
    """How large a request is."""

    text: int
    """A quarter of its bytes."""
    tokens: int
    """That, corrected by what the provider last counted."""


class Sizes:
    """Token estimates: bytes of text through four, times what the provider last counted of it.

    The correction stays between a half and two, and is taken from requests of some length only.
    No tokenizer is loaded: each maker has its own, and they would have to be downloaded.
    """

    def __init__(self) -> None:
        self._scale = 1.0

    def of_request(self, messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Size:
        """Tokens of a request."""
        text = sum(map(_size, messages)) + _size_of_tools(tools)
        return Size(text, self._scaled(text))

    def of_message(self, message: Message) -> int:
        """Tokens of a message, its tool calls and media included."""
        return self._scaled(_size(message))

    def of_tools(self, tools: Sequence[ToolSchema]) -> int:
        """Tokens of what a model is offered."""
        return self._scaled(_size_of_tools(tools))

    def learn(self, request: Size, usage: TokenUsage) -> None:
        """Correct the estimates by what the provider counted."""
        if request.text >= _CALIBRATING and usage.input_tokens:
            self._scale = min(MOST_SCALE, max(LEAST_SCALE, usage.input_tokens / request.text))

    def _scaled(self, tokens: int) -> int:
        # Rounded up, so that a whole is never more than its parts.
        return ceil(tokens * self._scale)


def longest_output(params: Mapping[str, JsonValue]) -> int:
    """The tokens that an answer may have; 0 where nothing bounds it."""
    given = (params.get(name) for name in _OUTPUT_BOUNDS)
    return max((n for n in given if isinstance(n, int) and not isinstance(n, bool)), default=0)


def _size(message: Message) -> int:
    count = _bytes(message.text)
    count += sum(_bytes(call.name) + _bytes(call.arguments) for call in message.tool_calls)
    media = 0
    if not isinstance(message.content, str):
        media = sum(isinstance(part, MediaPart) for part in message.content)
    return -(-count // BYTES_PER_TOKEN) + media * MEDIA_TOKENS + MESSAGE_TOKENS


def _size_of_tools(tools: Sequence[ToolSchema]) -> int:
    count = sum(
        len(t.name) + len(t.description) + (t.size or len(str(t.parameters))) for t in tools
    )
    return -(-count // BYTES_PER_TOKEN)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
