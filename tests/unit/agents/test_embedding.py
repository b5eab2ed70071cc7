"""Vectors from an endpoint, over real HTTP."""

from __future__ import annotations

import base64
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest

from devall.agents.embedding import EndpointEmbedding
from devall.config.agents import RetryConfig
from devall.core.errors import BadModelResponse, ModelError, ModelRefused, ModelUnavailable
from devall.memory.vectors import likeness
from devall.models.base import ModelChoice
from devall.models.providers import Models
from devall.testing.chat_server import ChatServer, refused_url

SOON = RetryConfig(min_wait_seconds=0, max_wait_seconds=0)


@pytest.fixture
async def models() -> AsyncIterator[Models]:
    found = Models({"API_KEY": "key-123456"})
    yield found
    await found.aclose()


def embedding(models: Models, url: str, **options: Any) -> EndpointEmbedding:
    params = options.pop("params", {})
    choice = ModelChoice("openai", "e", base_url=url, timeout=5)
    return EndpointEmbedding(models.embeddings(choice, params), retry=SOON, **options)


def texts_of(server: ChatServer) -> list[list[str]]:
    return [call["input"] for call in server.calls["e"]]


async def test_texts_go_in_portions_and_nothing_is_sent_that_was_not_asked_for(models: Models):
    texts = [f"number {n}" for n in range(150)]
    async with ChatServer() as server:
        found = await embedding(models, server.url, params={"dimensions": 32}).embed_texts(texts)
        assert [len(portion) for portion in texts_of(server)] == [64, 64, 22]
        assert [t for portion in texts_of(server) for t in portion] == texts
        assert all(c.keys() == {"model", "input", "dimensions"} for c in server.calls["e"])
        assert server.requests[0].headers["authorization"] == "Bearer key-123456"
        alone = await embedding(models, server.url, params={"dimensions": 32}).embed_query(
            texts[77]
        )
    assert {len(vector) for vector in found} == {32}
    assert likeness(alone, found[77]) == pytest.approx(1, abs=1e-5)


async def test_what_may_pass_is_repeated_as_calls_of_models_are(models: Models):
    script = {"e": [{"error": "rate_limit_exceeded", "retry_after": 0}, {"error": "server_error"}]}
    async with ChatServer(script) as server:
        assert len(await embedding(models, server.url).embed_texts(["a", "b"])) == 2
        assert len(server.requests) == 3


async def test_a_server_that_takes_fewer_texts_gets_fewer(models: Models):
    def answer(body: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"status": 400, "text": "at most 10 texts"} if len(body["input"]) > 10 else {}

    async with ChatServer({"e": [answer] * 100}) as server:
        model = embedding(models, server.url)
        found = await model.embed_texts([f"number {n}" for n in range(200)])
        assert len(found) == 200
        assert model.batch_size <= 10
        sizes = [len(portion) for portion in texts_of(server)]
        assert [size for size in sizes if size > 10] == [64, 32, 16]
        [alone] = await embedding(models, server.url).embed_texts(["number 123"])
    assert likeness(alone, found[123]) == pytest.approx(1, abs=1e-5)


async def test_a_text_that_is_too_long_is_cut(models: Models):
    def answer(body: Mapping[str, Any]) -> Mapping[str, Any]:
        is_long = any(len(text) > 3000 for text in body["input"])
        return {"error": "context_length_exceeded"} if is_long else {}

    async with ChatServer({"e": [answer] * 100}) as server:
        found = await embedding(models, server.url).embed_texts(["a", "word " * 10_000, "b"])
        assert len(found) == 3
        assert max(len(text) for portion in texts_of(server) for text in portion) == 8191


async def test_a_text_without_words_is_not_sent_empty(models: Models):
    async with ChatServer() as server:
        assert len(await embedding(models, server.url).embed_texts(["", " \n"])) == 2
        assert all(text.strip() for portion in texts_of(server) for text in portion)


async def test_a_refused_key_is_named_after_one_request(models: Models):
    async with ChatServer({"e": [{"error": "invalid_api_key"}]}) as server:
        with pytest.raises(ModelRefused) as caught:
            await embedding(models, server.url).embed_texts(["a", "b"])
        assert len(server.requests) == 1
    assert "variable API_KEY" in caught.value.hint
    assert "key-123456" not in str(caught.value)


async def test_a_wrong_parameter_is_named_and_not_repeated_for_ever(models: Models):
    refused = {"error": "unsupported_parameter", "param": "dimensions"}
    async with ChatServer({"e": [refused] * 100}) as server:
        with pytest.raises(ModelRefused, match="dimensions"):
            await embedding(models, server.url).embed_texts(["a"] * 64)
        assert len(server.requests) < 10


async def test_an_endpoint_out_of_reach_is_named(models: Models):
    with refused_url() as url, pytest.raises(ModelUnavailable) as caught:
        await embedding(models, url).embed_query("a")
    assert "base_url" in caught.value.hint


def data(*vectors: object) -> Mapping[str, Any]:
    return {"data": [{"index": n, "embedding": v} for n, v in enumerate(vectors)]}


@pytest.mark.parametrize(
    "body",
    [
        {"data": []},
        {"data": None},
        {"answer": 5},
        data([1, 0]),
        data([1, 0], []),
        data([1, 0], ["x", 1]),
        data([1, 0], [1, 0, 0]),
        data([1, 0], "no base64!"),
        "<html>",
    ],
)
async def test_an_answer_that_is_none_is_an_error_that_says_so(models: Models, body: Any):
    async with ChatServer({"e": [{"body": body}] * 9}) as server:
        with pytest.raises(BadModelResponse, match="the endpoint answered with"):
            await embedding(models, server.url).embed_texts(["a", "b"])


@pytest.mark.parametrize("values", [[3.0, 4.0], base64.b64encode(array("f", [3, 4])).decode()])
async def test_vectors_may_come_as_numbers_or_base64_and_in_any_order(
    models: Models, values: Sequence[float] | str
):
    body = {"data": [{"index": 1, "embedding": [0, 2]}, {"index": 0, "embedding": values}]}
    async with ChatServer({"e": [{"body": body}]}) as server:
        one, other = await embedding(models, server.url).embed_texts(["a", "b"])
    assert list(one) == pytest.approx([0.6, 0.8])
    assert list(other) == [0, 1]


async def test_errors_of_embeddings_are_those_of_models(models: Models):
    async with ChatServer({"e": [{"fault": "silence"}]}) as server:
        choice = ModelChoice("openai", "e", base_url=server.url, timeout=0.1)
        model = EndpointEmbedding(models.embeddings(choice, {}), retry=RetryConfig(enabled=False))
        with pytest.raises(ModelError, match="did not answer within"):
            await model.embed_query("a")
