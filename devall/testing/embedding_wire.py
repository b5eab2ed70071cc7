"""What a scripted endpoint answers to `POST /v1/embeddings`: vectors by spelling."""

from __future__ import annotations

from collections.abc import Mapping

from devall.core.messages import JsonValue
from devall.memory.embedding import HashedNgrams
from devall.models.shapes import as_list

DIMENSIONS = 64
"""Numbers of a vector, unless the request asks for more or less."""


def embeddings(body: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The answer to a request: texts that share words have vectors that are alike."""
    model = HashedNgrams()
    model.dimensions = int(body.get("dimensions") or DIMENSIONS)
    given: JsonValue = body.get("input")
    texts = [given] if isinstance(given, str) else as_list(given)
    words = sum(len(str(text).split()) for text in texts)
    return {
        "object": "list",
        "model": body.get("model"),
        "data": [
            {"object": "embedding", "index": index, "embedding": list(model.vector(str(text)))}
            for index, text in enumerate(texts)
        ],
        "usage": {"prompt_tokens": words, "total_tokens": words},
    }
