"""Models of a run that is replayed: known by name, and opened only where a call is really made."""

from __future__ import annotations

from dataclasses import dataclass

from devall.core.errors import ModelRefused, SetupError
from devall.models.base import (
    ChatModel,
    ChatReply,
    ChatRequest,
    ModelChoice,
    ModelSource,
    OnText,
)


@dataclass(frozen=True, slots=True)
class RecordedModel:
    """Stands for a model whose replies are in a journal; what is not there goes to the real one."""

    choice: ModelChoice
    source: ModelSource | None
    """Gives the real one; None: there is none, and nothing goes to the network."""

    @property
    def provider(self) -> str:
        """The provider's name in the workflow."""
        return self.choice.provider

    @property
    def name(self) -> str:
        """The model's name in the workflow."""
        return self.choice.name

    @property
    def url(self) -> str:
        """The endpoint of the real model; empty where it cannot be had."""
        if self.source is None:
            return ""
        try:
            return self.source.model(self.choice).url
        except SetupError:  # a key is missing that may never be needed
            return ""

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """One attempt of the real model.

        Raises:
            ModelRefused: there is none.
        """
        if self.source is None:
            raise ModelRefused("a replay calls no model", provider=self.provider, model=self.name)
        return await self.source.model(self.choice).complete(request, on_text)


@dataclass(frozen=True, slots=True)
class RecordedModels:
    """The source of models that need no key, no endpoint and no weights before they are called."""

    source: ModelSource | None = None

    def model(self, choice: ModelChoice, /) -> ChatModel:
        """The model of that choice, in name."""
        return RecordedModel(choice, self.source)

    async def aclose(self) -> None:
        """Close what was opened."""
        if self.source is not None:
            await self.source.aclose()
