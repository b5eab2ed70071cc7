"""Embedding models behind an OpenAI-compatible `/embeddings`, one request at a time."""

from __future__ import annotations

import base64
import binascii
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from devall.core.messages import NOTHING, JsonValue
from devall.core.usage import TokenUsage
from devall.models.base import Embeddings
from devall.models.exchange import Endpoint
from devall.models.failures import Place
from devall.models.shapes import as_list, as_object

DEFAULT_MODEL = "text-embedding-3-small"
"""The model where a file names none."""


@dataclass(frozen=True, slots=True)
class EmbeddingsModel:
    """A model that makes vectors of texts."""

    endpoint: Endpoint
    place: Place
    params: Mapping[str, JsonValue] = NOTHING
    """Sent with every request."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.place.model

    async def embed(self, texts: Sequence[str]) -> Embeddings:
        """One attempt.

        Raises:
            ModelError: the endpoint refused, stayed out of reach, or answered with nonsense.
        """
        body: dict[str, JsonValue] = {"model": self.name, "input": list(texts), **self.params}
        answer = await self.endpoint.exchange("/embeddings", body, self.place, lambda _: None)
        listed = [as_object(each) for each in as_list((answer or {}).get("data"))]
        if all(isinstance(each.get("index"), int) for each in listed):
            listed.sort(key=lambda each: each["index"])
        vectors = [_numbers(each.get("embedding")) for each in listed]
        if len(vectors) != len(texts) or not all(vectors):
            raise self.place.bad(
                f"{sum(map(bool, vectors))} vectors for {len(texts)} texts",
                hint="check that the model is one for embeddings",
            )
        if len({len(vector) for vector in vectors}) > 1:
            raise self.place.bad("vectors of different sizes")
        return Embeddings(vectors, _usage((answer or {}).get("usage")))


def _usage(written: JsonValue) -> TokenUsage | None:
    """What it used; servers name it `prompt_tokens`, `total_tokens`, or not at all."""
    found = as_object(written)
    tokens = found.get("prompt_tokens", found.get("total_tokens"))
    return TokenUsage(tokens) if isinstance(tokens, int) and tokens >= 0 else None


def _numbers(written: JsonValue) -> Sequence[float]:
    """A vector, as a list or as base64 of 32-bit numbers; an empty one where it is none."""
    if isinstance(written, str):
        try:
            found: Sequence[float] = array("f", base64.b64decode(written, validate=True))
        except (binascii.Error, ValueError):
            return ()
    else:
        values = as_list(written)
        if not all(isinstance(value, int | float) for value in values):
            return ()
        found = cast(list[float], values)
    return found if all(map(math.isfinite, found)) else ()
