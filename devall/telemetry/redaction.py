"""Secrets taken out of whatever is about to be written.

What is looked for is the exact value, wherever it came from, and the forms in which programs
pass values on: URL-encoded, JSON-escaped (also twice and three times, as in JSON within JSON),
HTML-escaped, as a Python literal, and base64 at each of its three alignments.

A secret of fewer than `SHORTEST` characters is replaced only where it is the whole of a text
or of a JSON value. Within texts it would be found by chance: a password `1` would turn every 1
into stars, which makes the log useless and, since the stars then stand exactly where the
secret's letters stood, tells the secret. Its value under a name such as `api_key` is replaced
by that name, whatever its length.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar, cast
from urllib.parse import quote, quote_plus

from devall.core.messages import JsonValue

Text = TypeVar("Text", str, bytes)

MASK = "***"
"""What stands where a secret stood."""
SHORTEST = 4
"""Characters from which on a secret is looked for within texts."""
SHORTEST_IN_ANSWERS = 8
"""Characters from which on a secret is taken out of the answer itself (see `at_least`)."""
_SHORTEST_WINDOW = 6
_SHORTEST_LINE = 16

_SECRET_NAME = re.compile(
    r"(proxy_)?authorization|(.*_)?api_?key|(set_)?cookie|mcp_session_id"
    r"|(.*_)?(password|passwd|passphrase|secret|secret_key|private_key)"
    r"|(.*_)?(access|refresh|auth|bearer|id|session|api)_token"
)
_NAMED = re.compile(
    r"(?P<name>(?:proxy-)?authorization|[\w-]*api[_-]?key)"
    r"(?P<between>[\"']?\s*[:=]\s*[\"']?)"
    r"(?P<value>(?:bearer|basic|token)\s+[^\s\"',;&}]+|[^\s\"',;&}]+)",
    re.IGNORECASE,
)
_SCHEME = re.compile(r"(?:bearer|basic|token|apikey)\s+(\S.*)", re.IGNORECASE | re.DOTALL)
_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL")
_ENVIRONMENT_NAME = re.compile(r"(?:.*_)?(?:API_?KEY|TOKEN|SECRET|PASSWORD)")


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, default=str).encode


class Redactor:
    """Replaces secrets in texts, JSON values and bytes; costs nothing where there are none."""

    __slots__ = ("_byte_needles", "_has_short", "_needles", "_shortest", "_whole", "secrets")

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self.secrets = frozenset(secrets)
        parts = {part for secret in self.secrets for part in _parts(secret)}
        forms = {form for part in parts if len(part) >= SHORTEST for form in _forms(part)}
        self._whole = frozenset(parts)
        self._has_short = any(len(part) < SHORTEST for part in parts)
        self._needles = tuple(
            sorted((form for form in forms if len(form) >= SHORTEST), key=len, reverse=True)
        )
        self._shortest = tuple(
            needle
            for needle in self._needles
            if not any(other != needle and other in needle for other in self._needles)
        )
        self._byte_needles = tuple(n.encode("utf-8", "surrogatepass") for n in self._needles)

    def __bool__(self) -> bool:
        return bool(self._whole)

    def __repr__(self) -> str:
        return f"Redactor({len(self.secrets)} secrets)"

    def text(self, text: str) -> str:
        """The text without secrets; the same object if it holds none."""
        if not self._whole:
            return text
        if text in self._whole:
            return MASK
        found = [needle for needle in self._needles if needle in text]
        return MASK.join(_gaps(text, found)) if found else text

    def data(self, data: bytes) -> bytes:
        """The bytes without secrets (in UTF-8); the same object if they hold none."""
        if not self._whole:
            return data
        if len(data) < SHORTEST and data.decode("utf-8", "replace") in self._whole:
            return MASK.encode()
        found = [needle for needle in self._byte_needles if needle in data]
        return MASK.encode().join(_gaps(data, found)) if found else data

    def value(self, value: JsonValue) -> JsonValue:
        """The JSON value without secrets: in texts, in keys, in numbers that are one, and
        whatever stands under a name such as `Authorization` or `api_key`.
        """
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            mapping = cast(Mapping[str, JsonValue], value)
            return {
                self.text(str(key)): MASK
                if is_secret_name(key) and _is_plain(item)
                else self.value(item)
                for key, item in mapping.items()
            }
        if isinstance(value, list | tuple):
            return [self.value(item) for item in cast(list[JsonValue], value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            written = str(value)
            return MASK if len(written) >= SHORTEST and written in self._whole else value
        return value

    def clean(self, value: JsonValue) -> JsonValue:
        """The JSON value without secrets, as `value` has it; the same object if it holds none.

        For what is written often: looking through its JSON text is many times quicker than
        looking at each of its values. What only its name makes a secret stays.
        """
        if not self._whole:
            return value
        return self.value(value) if self.may_be_in(_encode(value)) else value

    def may_be_in(self, text: str) -> bool:
        """Whether JSON text may hold a secret: False is certain, and quickly found."""
        if self._has_short:
            return True
        for needle in self._shortest:  # noqa: SIM110 - any() takes twice the time, on every event
            if needle in text:
                return True
        return False

    def settled(self, text: str) -> str:
        """The text so far of a stream, without secrets and without an end that may become one."""
        for needle in self._needles:
            for size in range(min(len(needle) - 1, len(text)), SHORTEST - 1, -1):
                if text.endswith(needle[:size]):
                    return self.text(text[:-size])
        return self.text(text)

    def at_least(self, characters: int) -> Redactor:
        """A redactor of only those secrets that have so many characters.

        For what people asked for, the answer of a run: a short value is a placeholder
        (`none`, `test`) more often than a key, and an answer must not lose such words.
        """
        return Redactor(secret for secret in self.secrets if len(secret) >= characters)


def is_secret_name(name: object) -> bool:
    """Whether a key or header of that name holds a secret: `Authorization`, `x-api-key`."""
    if not isinstance(name, str) or len(name) > 100:
        return False
    return _SECRET_NAME.fullmatch(name.lower().replace("-", "_")) is not None


def without_named(text: str) -> str:
    """The text with what follows `api_key:` or `Authorization:` replaced.

    For lines of files and foreign error texts whose secrets are not known by value.
    `${NAME}` stays: it names a secret and is none.
    """
    return _NAMED.sub(_mask_named, text)


def environment_secrets(environment: Mapping[str, str]) -> frozenset[str]:
    """Values of variables that are named like keys (`API_KEY`, `X_TOKEN`).

    For texts that are written before a workflow is read; afterwards its loader knows better.
    """
    return frozenset(
        value
        for name, value in environment.items()
        if value and _ENVIRONMENT_NAME.fullmatch(name.upper())
    )


def without_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for code that a model wrote: what is named like a secret is left out."""
    return {
        name: value
        for name, value in environment.items()
        if not is_secret_name(name) and not any(word in name.upper() for word in _SECRET_WORDS)
    }


def _mask_named(match: re.Match[str]) -> str:
    if match["value"].startswith(("$", MASK)):
        return match[0]
    return match["name"] + match["between"] + MASK


def _is_plain(value: JsonValue) -> bool:
    """Whether a value under a secret's name is the secret, and not a schema or a section."""
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in cast(list[JsonValue], value))
    return value not in (None, "") and not isinstance(value, bool | Mapping)


def _parts(secret: str) -> Iterator[str]:
    """What of a secret is one by itself: without its scheme, its blanks, line by line."""
    stripped = secret.strip()
    if not stripped:
        return
    yield secret
    yield stripped
    if scheme := _SCHEME.fullmatch(stripped):
        yield scheme[1]
        if stripped[:5].lower() == "basic":
            yield from _basic_password(scheme[1])
    lines = stripped.splitlines()
    if len(lines) > 1:
        yield from (line.strip() for line in lines if len(line.strip()) >= _SHORTEST_LINE)


def _basic_password(encoded: str) -> Iterator[str]:
    try:
        _, _, password = base64.b64decode(encoded, validate=True).decode().partition(":")
    except ValueError:
        return
    if password:
        yield password


def _forms(secret: str) -> Iterator[str]:
    """A secret as programs write it."""
    yield secret
    raw = secret.encode("utf-8", "surrogatepass")
    for quoted in (quote(raw, safe=""), quote(raw), quote_plus(raw)):
        yield quoted
        yield re.sub(r"%[0-9A-F]{2}", lambda found: found[0].lower(), quoted)
    for ascii_only in (True, False):
        escaped = secret
        for _ in range(3):
            escaped = json.dumps(escaped, ensure_ascii=ascii_only)[1:-1]
            yield escaped
    yield repr(secret)[1:-1]
    yield html.escape(secret)
    for encode in (base64.standard_b64encode, base64.urlsafe_b64encode):
        yield encode(raw).decode()
        yield from _base64_windows(raw, encode)


def _base64_windows(raw: bytes, encode: Callable[[bytes], bytes]) -> Iterator[str]:
    """The characters that do not depend on what stands before and after, by alignment."""
    for before in range(3):
        text = encode(b"\0" * before + raw).decode()
        first = -(-before * 8 // 6)
        last = (before + len(raw)) * 8 // 6
        if last - first >= _SHORTEST_WINDOW:
            yield text[first:last]


def _gaps(text: Text, needles: list[Text]) -> list[Text]:
    """What stands between the needles, overlapping ones taken as one."""
    spans: list[tuple[int, int]] = []
    for needle in needles:
        start = text.find(needle)
        while start >= 0:
            spans.append((start, start + len(needle)))
            start = text.find(needle, start + 1)
    spans.sort()
    kept: list[Text] = []
    done = 0
    for start, end in spans:
        if start >= done:
            kept.append(text[done:start])
        done = max(done, end)
    return [*kept, text[done:]]
