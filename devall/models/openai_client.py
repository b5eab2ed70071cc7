"""The clients of OpenAI-compatible endpoints and of Azure, one for each endpoint and key."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit, urlunsplit

from httpx2 import Limits

from devall.models.exchange import Endpoint, Endpoints
from devall.models.openai_errors import TABLE
from devall.models.openai_import import (
    AsyncAzureOpenAI,
    AsyncOpenAI,
    AsyncStream,
    DefaultAsyncHttpxClient,
    OpenAIError,
)
from devall.models.urls import is_loopback


def endpoint_at(endpoints: Endpoints, url: str, key: str) -> Endpoint:
    """An OpenAI-compatible endpoint with that key."""

    def make() -> Endpoint:
        base, query = _split(url)
        client = AsyncOpenAI(
            api_key=key,
            base_url=base,
            default_query=query,
            max_retries=0,
            http_client=_own_client(url),
        )
        return _endpoint(client)

    return endpoints.shared((url, key), make)


def azure_at(endpoints: Endpoints, url: str, key: str, version: str) -> Endpoint:
    """An endpoint of Azure with that key.

    Args:
        endpoints: Where clients are shared.
        url: The resource (`https://NAME.openai.azure.com`), or a path in it: one that ends in
            `/openai/deployments/NAME`, or in `/openai/v1`, the API without versions.
        key: Sent as the header `api-key`.
        version: The API's version; `api-version` in the URL's query stands before it.
    """

    def make() -> Endpoint:
        base, query = _split(url)
        base = base.rstrip("/")
        if base.endswith("/openai/v1"):
            versions = {"api-version": version} if version else {}
            client = AsyncOpenAI(
                api_key=key,
                base_url=base,
                default_query=versions | query,
                default_headers={"api-key": key},
                max_retries=0,
                http_client=_own_client(url),
            )
            return _endpoint(client)
        if "/openai/" not in f"{base}/":
            base += "/openai"
        client = AsyncAzureOpenAI(
            api_key=key,
            # A token of the environment must not stand before the key that was chosen.
            azure_ad_token=None,
            base_url=base,
            api_version=str(query.pop("api-version", version)),
            default_query=query,
            max_retries=0,
            http_client=_own_client(url),
        )
        return _endpoint(client)

    return endpoints.shared(("azure", url, key, version), make)


def _endpoint(client: AsyncOpenAI) -> Endpoint:
    return Endpoint(client, OpenAIError, TABLE, AsyncStream[object])


def _split(url: str) -> tuple[str, dict[str, object]]:
    """The URL without its query, and that."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(query="", fragment="")), dict(parse_qsl(parts.query))


def _own_client(url: str) -> DefaultAsyncHttpxClient | None:
    """A client for servers on this machine; None: the library's own will do.

    A proxy of the environment never reaches them. Connections are not kept: llama.cpp's
    server closes them unannounced, and the next request would fail on one half the time.
    """
    if not is_loopback(url):
        return None
    return DefaultAsyncHttpxClient(trust_env=False, limits=Limits(max_keepalive_connections=0))
