"""The table from `openai`'s exceptions to ours, and what an endpoint's error object says."""

from __future__ import annotations

import email.utils
import json
import os
import re
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import cast

import httpx2

from devall.core.errors import (
    BadModelResponse,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from devall.core.messages import JsonValue
from devall.core.usage import NOTHING_USED, TokenUsage
from devall.models.base import may_pass
from devall.models.openai_import import openai
from devall.models.shapes import as_list, as_object, as_text

_QUOTA = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "payment_required"}
)
_LIMITS = frozenset({"rate_limit_exceeded", "rate_limit_error", "overloaded", "overloaded_error"})
_REFUSING = frozenset({"invalid_request_error", "invalid_prompt", "authentication_error"})
_PARAMETER = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_TOO_LONG = (
    "maximum context length",
    "context_length_exceeded",
    "context window",
    "prompt is too long",
    "exceeds the available context size",
    "exceeds the maximum number of tokens",
    "input token count",
)
"""What endpoints say of requests that are longer than the model's window."""

QUOTED = 200
"""Characters of a foreign body that a message quotes."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request went, for error texts; the key never stands in one."""

    provider: str
    model: str
    url: str
    key_source: str
    """Where the key came from, in words: `the variable API_KEY`; empty: there is none."""
    key: str = field(repr=False)
    timeout: float
    protocol: str = "chat"

    def clean(self, text: str) -> str:
        """The text on one line, cut, without the key."""
        if len(self.key) >= 4:
            text = text.replace(self.key, "***")
        line = " ".join(text.split())
        return line if len(line) <= 2 * QUOTED else line[: 2 * QUOTED] + " ..."

    def error(
        self,
        kind: type[ModelError],
        text: str,
        *,
        status: int | None = None,
        retry_after: float | None = None,
        usage: TokenUsage | None = None,
        hint: str = "",
    ) -> ModelError:
        """An error of that kind, with what is known of the place."""
        return kind(
            self.clean(text),
            provider=self.provider,
            model=self.model,
            url=self.url,
            status=status,
            retry_after=retry_after,
            usage=usage,
            hint=hint,
        )

    def bad(self, what: str, body: str = "", *, hint: str = "") -> ModelError:
        """An answer that is none, with the first bytes of it."""
        quoted = body.strip()[:QUOTED]
        text = f"the endpoint answered with {what}"
        return self.error(BadModelResponse, f"{text}: {quoted}" if quoted else text, hint=hint)


@dataclass(frozen=True, slots=True)
class Said:
    """What an endpoint's error object says, whatever its form."""

    message: str
    code: str = ""
    kind: str = ""
    param: str = ""
    wait: float | None = None

    @classmethod
    def of(cls, body: JsonValue) -> Said:
        """Read `{error: {...}}`, its inside, `[{error: ...}]`, `{detail: ...}` or plain text."""
        listed = as_list(body)
        found = as_object(listed[0] if listed else body)
        if not found:
            return cls(as_text(body))
        inner: JsonValue = found.get("error", found)
        if isinstance(inner, str):
            return cls(as_text(found.get("message")) or inner)
        inside = as_object(inner)
        message: JsonValue = inside.get("message") or inside.get("detail")
        if message is None:
            message = json.dumps(inside, ensure_ascii=False)
        code: JsonValue = inside.get("code")
        return cls(
            message if isinstance(message, str) else json.dumps(message, ensure_ascii=False),
            "" if code is None else str(code),
            as_text(inside.get("type") or inside.get("status")),
            as_text(inside.get("param")),
            _retry_delay(as_list(inside.get("details"))),
        )

    @property
    def is_overflow(self) -> bool:
        """Whether the request is longer than the model's window."""
        if self.code == "context_length_exceeded":
            return True
        text = self.message.lower()
        return any(words in text for words in _TOO_LONG)

    @property
    def is_quota(self) -> bool:
        """Whether money is what is missing."""
        return self.code in _QUOTA or self.kind in _QUOTA


def translated(error: Exception, place: Place, *, begun: bool) -> ModelError | None:
    """Our error for a foreign one; None where the table does not have it.

    Args:
        error: What was raised.
        place: Where the request went.
        begun: Whether the answer had begun to come in.
    """
    for kind in type(error).__mro__:
        if kind in TABLE:
            return TABLE[kind](error, place, begun)
    return None


def from_said(
    said: Said, status: int | None, place: Place, retry_after: float | None = None
) -> ModelError:
    """Our error for an endpoint's error object."""
    if status is None and said.code.isdigit():
        status = int(said.code)
    if said.is_quota or status == 402:
        return place.error(
            ModelRefused,
            f"the endpoint refused for want of credit: {said.message}",
            status=status,
            hint="the account or key has no quota left; repeating does not help",
        )
    wait = retry_after if retry_after is not None else said.wait
    if status is None:
        is_passing = not ({said.code, said.kind} & _REFUSING)
        is_limit = bool({said.code, said.kind} & _LIMITS)
    else:
        is_passing = may_pass(status)
        is_limit = status in {429, 503}
    told = f" (status {status})" if status else ""
    if is_passing:
        text = "is at its limit" if is_limit else "failed"
        return place.error(
            ModelUnavailable,
            f"the endpoint {text}{told}: {said.message}",
            status=status,
            retry_after=wait,
        )
    kind = ContextOverflow if status in {None, 400, 413, 422} and said.is_overflow else ModelRefused
    return place.error(
        kind,
        f"the endpoint refused{told}: {said.message}",
        status=status,
        hint=_hint(said, status, place),
    )


def _hint(said: Said, status: int | None, place: Place) -> str:
    match status:
        case 401 if not place.key_source:
            return "no key was given: set `api_key` of the node or the variable API_KEY"
        case 401:
            return f"the key came from {place.key_source}: check that it is whole and belongs here"
        case 403:
            return f"the key from {place.key_source} may not use this model"
        case 404 if place.protocol == "responses":
            return (
                f"no model {place.model}, or the endpoint does not speak the Responses API: "
                "then use `protocol: chat`"
            )
        case 404:
            return f"check the model's name ({place.model}) and `base_url` ({place.url})"
        case _ if said.is_overflow:
            return (
                "the messages are longer than the model takes: give its window as "
                "`history.max_tokens`, so that old turns are cut, use a smaller `context_window`, "
                "`max_result_chars` on the tools, or a model with a larger context"
            )
        case _ if said.param and (said.code in _PARAMETER or said.kind in _PARAMETER):
            return f"this model does not take it: remove `{said.param}` from `params`"
        case _:
            return ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the headers ask to wait: `retry-after-ms`, seconds, or a date."""
    for name, divisor in (("retry-after-ms", 1000), ("retry-after", 1)):
        value = headers.get(name, "")
        try:
            seconds = float(value) / divisor
        except ValueError:
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        date = email.utils.parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(0.0, date.timestamp() - time.time())


def _retry_delay(details: list[JsonValue]) -> float | None:
    """Google's `RetryInfo`: `retryDelay: "17s"`."""
    for detail in details:
        found = re.fullmatch(r"(\d+(?:\.\d+)?)s", as_text(as_object(detail).get("retryDelay")))
        if found:
            return float(found[1])
    return None


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


def _status(error: Exception, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    assert isinstance(error, openai.APIStatusError)
    said = Said.of(error.body)
    text = said.message or error.response.reason_phrase
    if "<html" in text[:QUOTED].lower():
        text = text[:QUOTED]
    said = Said(text, said.code, said.kind, said.param, said.wait)
    return from_said(said, error.status_code, place, retry_after(error.response.headers))


def _timeout(error: Exception, place: Place, begun: bool) -> ModelError:
    is_connect = any(isinstance(e, httpx2.ConnectTimeout) for e in _causes(error))
    if is_connect:
        return place.error(
            ModelUnavailable,
            "the endpoint cannot be reached: no connection in time",
            usage=NOTHING_USED,
        )
    return timed_out(place, begun=begun)


def timed_out(place: Place, *, begun: bool) -> ModelError:
    """Our error for an attempt that took too long."""
    what = "did not finish its answer" if begun else "did not answer"
    return place.error(
        ModelUnavailable,
        f"the endpoint {what} within {place.timeout:g} s",
        hint="raise `params.timeout` if the model needs longer",
    )


def _connection(error: Exception, place: Place, begun: bool) -> ModelError:
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


def _in_stream(error: Exception, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    assert isinstance(error, openai.APIError)
    said = Said.of(error.body)
    if not said.message:
        said = Said(error.message)
    return from_said(said, None, place)


def _bad(error: Exception, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    quoted = error.doc[:QUOTED] if isinstance(error, json.JSONDecodeError) else str(error)
    return place.error(BadModelResponse, f"the answer cannot be read: {quoted}")


def _refused(error: Exception, place: Place, begun: bool) -> ModelError:  # noqa: ARG001
    return place.error(ModelRefused, f"the client refused the request: {error}")


Translation = Callable[[Exception, Place, bool], ModelError]

TABLE: Mapping[type[BaseException], Translation] = {
    openai.APITimeoutError: _timeout,
    openai.APIConnectionError: _connection,
    openai.APIResponseValidationError: _bad,
    openai.BadRequestError: _status,
    openai.AuthenticationError: _status,
    openai.OAuthError: _status,
    openai.PermissionDeniedError: _status,
    openai.NotFoundError: _status,
    openai.ConflictError: _status,
    openai.UnprocessableEntityError: _status,
    openai.RateLimitError: _status,
    openai.InternalServerError: _status,
    openai.APIStatusError: _status,
    openai.APIError: _in_stream,
    openai.LengthFinishReasonError: _bad,
    openai.ContentFilterFinishReasonError: _bad,
    openai.InvalidWebhookSignatureError: _refused,
    openai.WebSocketConnectionClosedError: _connection,
    openai.WebSocketQueueFullError: _connection,
    openai.OpenAIError: _refused,
    httpx2.TimeoutException: _timeout,
    httpx2.HTTPError: _connection,
    httpx2.StreamError: _connection,
    httpx2.InvalidURL: _refused,
    json.JSONDecodeError: _bad,
    UnicodeDecodeError: _bad,
}
"""Every exception that `openai` exports, and those of its transport that pass through it."""
