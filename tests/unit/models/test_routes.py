"""Where choices of models lead: azure, ollama, anthropic, and the order of their variables."""

from __future__ import annotations

import pytest

from devall.core.errors import SetupError
from devall.core.messages import user
from devall.models.base import ChatRequest, ModelChoice
from devall.models.providers import Models
from devall.models.routes import AZURE_VERSION, PROVIDERS, find_route, route_of
from devall.testing.chat_server import ChatServer


def route(provider: str, environ=(), **choice):
    return route_of(ModelChoice(provider, "m", **choice), PROVIDERS[provider], dict(environ))


async def ask(choice: ModelChoice, environ=(), **params):
    models = Models(dict(environ))
    try:
        request = ChatRequest((user("hi"),), params=params)
        return await models.model(choice).complete(request, lambda _: None)
    finally:
        await models.aclose()


@pytest.mark.parametrize("ending", ["", "/", "/openai", "/openai/deployments/gpt-prod"])
async def test_azure_is_asked_by_deployment_version_and_api_key(ending):
    async with ChatServer() as server:
        root = server.url.removesuffix("/v1")
        await ask(ModelChoice("azure", "gpt-prod", root + ending, "azure-key"))
        (request,) = server.requests
    assert request.path == "/openai/deployments/gpt-prod/chat/completions"
    assert request.query == f"api-version={AZURE_VERSION}"
    assert request.headers["api-key"] == "azure-key"
    assert "authorization" not in request.headers


async def test_azure_s_api_without_versions_is_asked_by_its_path():
    async with ChatServer() as server:
        url = server.url.removesuffix("/v1") + "/openai/v1"
        await ask(ModelChoice("azure", "gpt-prod", url, "azure-key"))
        (request,) = server.requests
    assert (request.path, request.model) == ("/openai/v1/chat/completions", "gpt-prod")
    assert request.headers["api-key"] == "azure-key"


@pytest.mark.parametrize(
    ("query", "given", "environ", "version"),
    [
        ("?api-version=q", "p", {"AZURE_OPENAI_API_VERSION": "a"}, "q"),
        ("", "p", {"AZURE_OPENAI_API_VERSION": "a"}, "p"),
        ("", None, {"AZURE_OPENAI_API_VERSION": "a", "OPENAI_API_VERSION": "b"}, "a"),
        ("", None, {"OPENAI_API_VERSION": "b"}, "b"),
    ],
)
async def test_azure_s_version_is_that_of_the_url_the_file_then_the_environment(
    query, given, environ, version
):
    async with ChatServer() as server:
        root = server.url.removesuffix("/v1")
        environ = {"AZURE_OPENAI_ENDPOINT": root + query, "AZURE_OPENAI_API_KEY": "k", **environ}
        await ask(ModelChoice("azure", "d", api_version=given), environ)
        assert server.requests[0].query == f"api-version={version}"


async def test_azure_speaks_responses_too():
    async with ChatServer() as server:
        root = server.url.removesuffix("/v1")
        await ask(ModelChoice("azure", "d", root, "k", protocol="responses"))
        (request,) = server.requests
    assert (request.path, request.model) == ("/openai/responses", "d")


async def test_a_token_of_the_environment_does_not_stand_before_azure_s_key(monkeypatch):
    monkeypatch.setenv("AZURE_OPENAI_AD_TOKEN", "ad-token")
    async with ChatServer() as server:
        await ask(ModelChoice("azure", "d", server.url.removesuffix("/v1"), "k"))
        headers = server.requests[0].headers
    assert headers["api-key"] == "k"
    assert "authorization" not in headers


def test_azure_without_an_endpoint_says_which_variable_is_missing():
    with pytest.raises(SetupError, match="AZURE_OPENAI_ENDPOINT is not set") as caught:
        route("azure", {"AZURE_OPENAI_API_KEY": "k"})
    assert caught.value.exit_code == 4
    assert "base_url" in caught.value.hint


async def test_ollama_needs_no_key_and_is_on_this_machine():
    found = route("ollama")
    assert (found.url, found.key, found.url_source) == ("http://localhost:11434/v1", "", "")
    assert route("ollama", {"OLLAMA_BASE_URL": "http://farm:1/v1"}).url == "http://farm:1/v1"
    async with ChatServer() as server:
        reply = await ask(ModelChoice("ollama", "llama", server.url))
    assert reply.message.text == "llama reply 1"


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("0.0.0.0", "http://127.0.0.1:11434/v1"),
        ("0.0.0.0:5000", "http://127.0.0.1:5000/v1"),
        (":5000", "http://127.0.0.1:5000/v1"),
        ("farm", "http://farm:11434/v1"),
        ("http://farm:5000/", "http://farm:5000/v1"),
        ("https://farm.example/v1", "https://farm.example/v1"),
        ("[::1]:5000", "http://[::1]:5000/v1"),
    ],
)
def test_ollama_s_own_variable_is_read_as_ollama_reads_it(host, url):
    assert route("ollama", {"OLLAMA_HOST": host}).url == url


GENERAL = {"API_KEY": "general", "BASE_URL": "https://general/v1"}


@pytest.mark.parametrize(
    ("provider", "own", "url", "key"),
    [
        ("openai", {"OPENAI_API_KEY": "own"}, "https://general/v1", "general"),
        ("anthropic", {}, "https://general/v1", "general"),
        ("anthropic", {"ANTHROPIC_API_KEY": "own"}, "https://api.anthropic.com", "own"),
        ("anthropic", {"ANTHROPIC_BASE_URL": "https://own", "ANTHROPIC_API_KEY": "own"},
         "https://own", "own"),
        ("ollama", {}, "https://general/v1", "general"),
        ("ollama", {"OLLAMA_HOST": "http://own:1"}, "http://own:1/v1", ""),
        ("azure", {"AZURE_OPENAI_ENDPOINT": "https://own", "AZURE_OPENAI_API_KEY": "own"},
         "https://own", "own"),
    ],
)  # fmt: skip
def test_a_provider_s_own_variables_keep_those_of_another_s_away(provider, own, url, key):
    found = find_route(ModelChoice(provider, "m"), PROVIDERS[provider], GENERAL | own)
    assert (found.url, found.key) == (url, key)


def test_a_key_of_the_environment_for_all_is_not_sent_to_a_url_of_the_file_that_wants_none():
    found = route("ollama", GENERAL, base_url="http://farm:1/v1")
    assert found.key == ""
    for provider in ("openai", "anthropic", "azure"):
        assert route(provider, GENERAL, base_url="https://x/v1").key == "general"


def test_a_missing_key_names_the_provider_s_own_variable_first():
    with pytest.raises(SetupError, match="ANTHROPIC_API_KEY is not set") as caught:
        route("anthropic")
    assert "--provider local" in caught.value.hint


@pytest.mark.parametrize(
    ("provider", "name"), [("openai", "OPENAI_KEY"), ("anthropic", "ANTHROPIC_AUTH_TOKEN")]
)
def test_a_missing_key_that_stands_under_another_name_is_told_with_it(provider, name):
    with pytest.raises(SetupError) as caught:
        route(provider, {name: "sentinel"})
    assert f"{name} is set, and is not what is read" in caught.value.hint
    assert "sentinel" not in f"{caught.value} {caught.value.hint}"


def test_a_variable_that_holds_no_url_is_named():
    with pytest.raises(SetupError, match="the variable BASE_URL of model m is no"):
        route("openai", {"BASE_URL": "localhost:1", "API_KEY": "k"})


def test_a_route_never_shows_its_key():
    assert "sentinel" not in repr(route("openai", {"API_KEY": "sentinel"}))
