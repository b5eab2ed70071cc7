"""Which endpoint and key a choice of model leads to."""

from __future__ import annotations

import pytest

from devall.core.errors import SetupError
from devall.core.messages import user
from devall.models.base import ChatRequest, ModelChoice
from devall.models.providers import PROVIDERS, Models
from devall.testing.chat_server import ChatServer


def refused(choice: ModelChoice, **environ: str) -> SetupError:
    with pytest.raises(SetupError) as caught:
        Models(environ).model(choice)
    assert caught.value.exit_code == 4
    return caught.value


@pytest.mark.parametrize(
    ("provider", "names"),
    [("openai", ["API_KEY", "OPENAI_API_KEY"]), ("gemini", ["API_KEY", "GEMINI_API_KEY"])],
)
def test_a_missing_key_names_the_variable_and_the_way_without(provider, names):
    error = refused(ModelChoice(provider, "m"))
    assert "API_KEY is not set" in str(error)
    assert all(name in error.hint for name in names)
    assert "--provider local --model smollm2" in error.hint


def test_an_empty_key_is_a_missing_one():
    assert "API_KEY is not set" in str(refused(ModelChoice("openai", "m", "", ""), API_KEY=""))


def test_an_unknown_provider_is_told_with_the_nearest():
    error = refused(ModelChoice("opanai", "m"))
    assert "opanai" in str(error)
    assert "did you mean openai?" in error.hint
    assert all(name in error.hint for name in PROVIDERS)


@pytest.mark.parametrize("url", ["localhost:8000/v1", "ftp://x/v1", "http://", "/v1"])
def test_a_base_url_that_is_none_is_told(url):
    assert url in str(refused(ModelChoice("openai", "m", url, "k")))


def test_a_protocol_that_the_provider_does_not_speak_is_told():
    error = refused(ModelChoice("gemini", "m", api_key="k", protocol="responses"))
    assert "`chat`" in error.hint


def test_an_unknown_tool_mode_is_told():
    choice = ModelChoice("openai", "m", api_key="k", tool_mode="magic")
    assert "magic" in str(refused(choice))


@pytest.mark.parametrize(
    ("choice", "environ", "url"),
    [
        ({}, {"OPENAI_API_KEY": "k"}, "https://api.openai.com/v1"),
        ({}, {"API_KEY": "k", "OPENAI_BASE_URL": "https://b/v1"}, "https://b/v1"),
        (
            {},
            {"API_KEY": "k", "BASE_URL": "https://a/v1", "OPENAI_BASE_URL": "https://b/v1"},
            "https://a/v1",
        ),
        (
            {"base_url": "https://c/v1"},
            {"API_KEY": "k", "BASE_URL": "https://a/v1"},
            "https://c/v1",
        ),
        (
            {"provider": "gemini"},
            {"GOOGLE_API_KEY": "k"},
            "https://generativelanguage.googleapis.com/v1beta/openai/",
        ),
    ],
)
async def test_the_url_is_the_file_s_then_base_url_then_the_provider_s_own(choice, environ, url):
    models = Models(environ)
    model = models.model(ModelChoice(**{"provider": "openai", "name": "m"} | choice))
    assert model.url == url
    await models.aclose()


@pytest.mark.parametrize(
    ("key", "environ", "sent"),
    [
        ("file", {"API_KEY": "first", "OPENAI_API_KEY": "own"}, "Bearer file"),
        (None, {"API_KEY": "first", "OPENAI_API_KEY": "own"}, "Bearer first"),
        (None, {"OPENAI_API_KEY": "own"}, "Bearer own"),
        (None, {}, "Bearer none"),
    ],
)
async def test_the_key_is_the_file_s_then_api_key_then_the_provider_s_own(key, environ, sent):
    models = Models(environ)
    async with ChatServer() as server:
        model = models.model(ModelChoice("openai", "m", server.url, key))
        await model.complete(ChatRequest((user("hi"),)), lambda _: None)
        assert server.requests[0].headers["authorization"] == sent
    await models.aclose()


@pytest.mark.parametrize(
    ("environ", "source"),
    [({"API_KEY": "k1234"}, "variable API_KEY"), ({"OPENAI_API_KEY": "k1234"}, "OPENAI_API_KEY"),
     ({}, "no key was given")],
)  # fmt: skip
async def test_a_401_says_where_the_key_came_from(environ, source):
    models = Models(environ)
    async with ChatServer({"m": [{"status": 401}]}) as server:
        model = models.model(ModelChoice("openai", "m", server.url))
        with pytest.raises(Exception, match="status 401") as caught:
            await model.complete(ChatRequest((user("hi"),)), lambda _: None)
    assert source in caught.value.hint
    await models.aclose()


def test_neither_choice_nor_source_shows_a_key():
    assert "sk-sentinel" not in repr(ModelChoice("openai", "m", api_key="sk-sentinel"))
    assert "sk-sentinel" not in repr(Models({"API_KEY": "sk-sentinel"}))
