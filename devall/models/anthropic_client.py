"""The clients of Anthropic's Messages API, one for each endpoint and key; needs an extra."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlsplit, urlunsplit

import anthropic
from anthropic import AsyncAnthropic, AsyncStream, DefaultAsyncHttpxClient

from devall.models.exchange import Endpoint, Endpoints
from devall.models.transport import (
    TRANSPORT,
    Table,
    of_body,
    of_connection,
    of_refusal,
    of_status,
    of_stream,
    of_timeout,
)
from devall.models.urls import is_loopback

TABLE: Table = {
    anthropic.APITimeoutError: of_timeout,
    anthropic.APIConnectionError: of_connection,
    anthropic.APIResponseValidationError: of_body,
    anthropic.APIStatusError: of_status,
    anthropic.APIError: of_stream,
    anthropic.AnthropicError: of_refusal,
    **TRANSPORT,
}
"""Exceptions of `anthropic` by their bases, and those of its transport that pass through it."""


_OWN_HOST = "api.anthropic.com"


def messages_at(endpoints: Endpoints, url: str, key: str) -> Endpoint:
    """An endpoint of the Messages API with that key; the URL may end in /v1 or not."""

    def make() -> Endpoint:
        parts = urlsplit(url)
        path = parts.path.rstrip("/").removesuffix("/v1")
        http = DefaultAsyncHttpxClient(trust_env=False) if is_loopback(url) else None
        client = AsyncAnthropic(
            api_key=key,
            base_url=urlunsplit(parts._replace(path=path, query="", fragment="")),
            default_query=dict(parse_qsl(parts.query)),
            # Gateways want the header that the API had before.
            default_headers={} if parts.hostname == _OWN_HOST else {"x-api-key": key},
            max_retries=0,
            http_client=http,
        )
        return Endpoint(client, anthropic.AnthropicError, TABLE, AsyncStream[object])

    return endpoints.shared(("anthropic", url, key), make)
