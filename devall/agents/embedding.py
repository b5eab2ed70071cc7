"""Vectors from an endpoint: in portions, repeated like calls of models, cut where too long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from devall.agents.retry import Sleep, repeated
from devall.config.agents import RetryConfig
from devall.core.errors import ContextOverflow, ModelRefused
from devall.memory.vectors import Vector, unit
from devall.models.base import Embeddings

_BLANK = "(no text)"
"""What is embedded in the place of a text without words, which endpoints refuse."""
_SHORTEST = 200
"""Characters: a text that is too long for the endpoint is halved down to this."""
_TOO_MUCH = frozenset({400, 413, 422})
"""Statuses of requests that may hold too much."""


Tell = Callable[[int, float, Embeddings], None]
"""Takes what was asked of the endpoint: the number of texts, seconds, and what came back."""


class Embedder(Protocol):
    """An embedding model, one attempt at a time."""

    @property
    def name(self) -> str:
        """The model's name."""
        ...

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """The vectors of texts.

        Raises:
            ModelError: the attempt failed.
        """
        ...


@dataclass(slots=True)
class EndpointEmbedding:
    """An embedding model as memory stores want it."""

    model: Embedder
    batch_size: int = 64
    """Texts of a request at most; halved where the endpoint takes fewer."""
    max_length: int = 8191
    """Characters of a text that are embedded; the rest is left out."""
    retry: RetryConfig = field(default_factory=RetryConfig)
    sleep: Sleep = asyncio.sleep
    tell: Tell = lambda _texts, _seconds, _found: None

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    async def embed_query(self, text: str) -> Vector:
        """The vector of something that is looked for.

        Raises:
            ModelError: the endpoint refused, or stayed out of reach.
        """
        [vector] = await self.embed_texts([text])
        return vector

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of texts that are to be found.

        Raises:
            ModelError: the endpoint refused, or stayed out of reach.
        """
        return await self._all(
            [text[: self.max_length] if text.strip() else _BLANK for text in texts]
        )

    async def _all(self, texts: Sequence[str]) -> list[Vector]:
        found: list[Vector] = []
        while len(found) < len(texts):
            found += await self._some(texts[len(found) :][: self.batch_size])
        return found

    async def _some(self, texts: Sequence[str]) -> list[Vector]:
        try:
            found = await repeated(self._attempt(texts), self.retry, sleep=self.sleep)
        except ModelRefused as error:
            if len(texts) > 1 and error.status in _TOO_MUCH:
                # Servers differ in how many texts a request may hold, and say so in many ways.
                self.batch_size = min(self.batch_size, len(texts) // 2)
                return await self._all(texts)
            if isinstance(error, ContextOverflow) and len(texts[0]) > _SHORTEST:
                return await self._some([texts[0][: len(texts[0]) // 2]])
            raise
        return [unit(vector) for vector in found.vectors]

    def _attempt(self, texts: Sequence[str]) -> Callable[[], Awaitable[Embeddings]]:
        async def attempt() -> Embeddings:
            began = time.monotonic()
            found = await self.model.embed(texts)
            self.tell(len(texts), time.monotonic() - began, found)
            return found

        return attempt
