"""What an endpoint's error object says, and our errors for it, whoever's protocol is spoken."""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from devall.core.errors import (
    BadModelResponse,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from devall.core.messages import JsonValue
from devall.core.usage import TokenUsage
from devall.models.base import may_pass
from devall.models.shapes import as_list, as_object, as_text

_QUOTA = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "billing_not_active",
        "payment_required",
        "billing_error",
    }
)
_LIMITS = frozenset({"rate_limit_exceeded", "rate_limit_error", "overloaded", "overloaded_error"})
_REFUSING = frozenset(
    {
        "invalid_request_error",
        "invalid_prompt",
        "authentication_error",
        "permission_error",
        "not_found_error",
        "request_too_large",
    }
)
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
        is_poor = "credit balance is too low" in self.message
        return is_poor or self.code in _QUOTA or self.kind in _QUOTA


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


def timed_out(place: Place, *, begun: bool) -> ModelError:
    """Our error for an attempt that took too long."""
    what = "did not finish its answer" if begun else "did not answer"
    return place.error(
        ModelUnavailable,
        f"the endpoint {what} within {place.timeout:g} s",
        hint="raise `params.timeout` if the model needs longer",
    )
