"""What a chat model is: a request in, a reply out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from devall.core.messages import NOTHING, JsonValue, Message
from devall.core.usage import TokenUsage


@dataclass(frozen=True, slots=True)
class ToolSchema:
    """A tool as a model is offered it."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments: an object."""
    size: int = field(default=0, compare=False)
    """Characters of the schema before it was put into a provider's words, so that estimates are
    the same whoever is asked; 0 = those of `parameters`."""


AttachmentReader = Callable[[str], bytes]
"""The bytes of the run's attachment of that name."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One call of a model."""

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    params: Mapping[str, JsonValue] = NOTHING
    """Sent as given: `temperature`, `max_tokens`, `tool_choice`, `response_format`, ..."""
    attachments: AttachmentReader | None = field(default=None, repr=False, compare=False)
    """Reads the attachments that the messages name; None where there are none."""
    answer_schema: Mapping[str, JsonValue] | None = field(default=None, compare=False)
    """What an answer must fit, as JSON Schema. A model in process holds its answer to it unless
    `response_format` says otherwise; to an endpoint goes only what was asked for."""


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A model's answer."""

    message: Message
    """Role assistant; text and tool calls, and unknown fields of the provider in `extra`."""
    finish_reason: str = "stop"
    """`stop`, `tool_calls`, `length`, `content_filter` or the provider's own word."""
    usage: TokenUsage | None = None
    """None: the provider did not say."""
    model: str = ""
    """The model that answered, as the endpoint names it."""
    notes: tuple[str, ...] = ()
    """What a user should know of how the answer came about."""


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Texts as vectors, all of one size, in the order of the texts."""

    vectors: Sequence[Sequence[float]]
    usage: TokenUsage | None = None
    """None: the endpoint did not say."""


OnText = Callable[[str], None]
"""Takes pieces of the answer's text as they stream in."""


def may_pass(status: int) -> bool:
    """Whether what an HTTP status tells may pass by itself."""
    return status in {408, 409, 425, 429} or status >= 500


class ChatModel(Protocol):
    """A model behind an endpoint, or in process."""

    @property
    def provider(self) -> str:
        """The provider's name in the workflow."""
        ...

    @property
    def name(self) -> str:
        """The model's name in the workflow."""
        ...

    @property
    def url(self) -> str:
        """The endpoint, for error texts; empty in process."""
        ...

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt: no retries here.

        Raises:
            ModelRefused: repeating cannot help.
            ModelUnavailable: repeating may help.
            BadModelResponse: the answer is no answer.
            SetupError: a key, an extra or a file is missing.
        """
        ...


class WrappedModel:
    """What wrappers of a model have in common: they go by its names."""

    __slots__ = ()

    model: ChatModel

    @property
    def provider(self) -> str:
        """The provider's name in the workflow."""
        return self.model.provider

    @property
    def name(self) -> str:
        """The model's name in the workflow."""
        return self.model.name

    @property
    def url(self) -> str:
        """The endpoint, for error texts."""
        return self.model.url


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """Which model, where: what a file and the command line decide together."""

    provider: str
    name: str
    base_url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    protocol: str = "chat"
    """`chat` or `responses`."""
    timeout: float = 300
    """Seconds for one attempt in all."""
    tool_mode: str | None = None
    """`native`, `json_schema` or `text`; None = the provider's default."""
    images: bool | None = None
    """Whether the model takes images; None = what the provider says, or it is found out."""
    echo_reasoning: str = "auto"
    """Whether an assistant's thoughts are sent back: `auto`, `always` or `never`."""
    api_version: str | None = None
    """Of the API, for providers that have versions."""


class ModelSource(Protocol):
    """Gives models; clients are shared by endpoint and key, and closed by the owner."""

    def model(self, choice: ModelChoice, /) -> ChatModel:
        """The model of that choice.

        Raises:
            SetupError: the provider is unknown, or a key, an extra or a file is missing.
        """
        ...

    async def aclose(self) -> None:
        """Close every client and process that was opened."""
        ...
