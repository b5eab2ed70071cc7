"""The HTTP library below the clients of endpoints, and its errors in our words."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import httpx2

from devall.core.errors import BadModelResponse, ModelError, ModelRefused, ModelUnavailable
from devall.core.usage import NOTHING_USED
from devall.models.failures import QUOTED, Place, Said, from_said, retry_after, timed_out


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what lies beneath, the deepest last."""
    found: BaseException | None = error
    while found is not None:
        yield found
        if isinstance(found, BaseExceptionGroup):
            found = cast(BaseExceptionGroup[BaseException], found).exceptions[0]
        else:
            found = found.__cause__ or found.__context__


def _words(error: BaseException) -> str:
    """What an error says; the system's own words where a socket failed."""
    if isinstance(error, ConnectionError | TimeoutError) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def of_status(error: Any, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    """Our error for a status of 400 and more, or for an error object within a stream."""
    said = Said.of(error.body)
    text = said.message or error.response.reason_phrase
    if "<html" in text[:QUOTED].lower():
        text = text[:QUOTED]
    said = Said(text, said.code, said.kind, said.param, said.wait)
    status: int = error.status_code
    waits = retry_after(error.response.headers)
    return from_said(said, status if status >= 400 else None, place, waits)


def of_timeout(error: Exception, place: Place, begun: bool) -> ModelError:
    """Our error for a timeout of the client."""
    is_connect = any(isinstance(e, httpx2.ConnectTimeout) for e in _causes(error))
    if is_connect:
        return place.error(
            ModelUnavailable,
            "the endpoint cannot be reached: no connection in time",
            usage=NOTHING_USED,
        )
    return timed_out(place, begun=begun)


def of_connection(error: Exception, place: Place, begun: bool) -> ModelError:
    """Our error for a connection that was not made, or broke."""
    chain = list(_causes(error))
    leaf = next((e for e in reversed(chain) if isinstance(e, OSError)), chain[-1])
    if any(isinstance(e, ssl.SSLCertVerificationError) for e in chain):
        return place.error(
            ModelRefused,
            f"the endpoint's certificate is not trusted: {leaf}",
            hint="set SSL_CERT_FILE where a proxy or private authority signs it",
        )
    if any(isinstance(e, httpx2.UnsupportedProtocol | httpx2.InvalidURL) for e in chain):
        return place.error(ModelRefused, f"`base_url` is no http(s) URL: {leaf}")
    if begun:
        return place.error(ModelUnavailable, f"the answer broke off: {_words(leaf)}")
    if any(isinstance(e, httpx2.RemoteProtocolError | httpx2.ReadError) for e in chain):
        return place.error(
            ModelUnavailable,
            f"the endpoint closed the connection without an answer: {_words(leaf)}",
        )
    return place.error(
        ModelUnavailable,
        f"the endpoint cannot be reached: {_words(leaf)}",
        usage=NOTHING_USED,
        hint="check `base_url`, and that the server runs",
    )


def of_body(error: Exception, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    """Our error for an answer that nothing can be made of."""
    quoted = error.doc[:QUOTED] if isinstance(error, json.JSONDecodeError) else str(error)
    return place.error(BadModelResponse, f"the answer cannot be read: {quoted}")


def of_refusal(error: Exception, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    """Our error for a request that the client would not send."""
    return place.error(ModelRefused, f"the client refused the request: {error}")


def of_stream(error: Any, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    """Our error for one that the client met within a stream."""
    said = Said.of(error.body)
    return from_said(said if said.message else Said(error.message), None, place)


Translation = Callable[[Exception, Place, bool], ModelError]
Table = Mapping[type[BaseException], Translation]

TRANSPORT: Table = {
    httpx2.TimeoutException: of_timeout,
    httpx2.HTTPError: of_connection,
    httpx2.StreamError: of_connection,
    httpx2.InvalidURL: of_refusal,
    json.JSONDecodeError: of_body,
    UnicodeDecodeError: of_body,
}
"""The exceptions that pass through a client from below."""


def translated(table: Table, error: Exception, place: Place, *, begun: bool) -> ModelError | None:
    """Our error for a foreign one; None where the table does not have it.

    Args:
        table: Foreign exceptions, and what makes ours of them.
        error: What was raised.
        place: Where the request went.
        begun: Whether the answer had begun to come in.
    """
    for kind in type(error).__mro__:
        if kind in table:
            return table[kind](error, place, begun)
    return None
