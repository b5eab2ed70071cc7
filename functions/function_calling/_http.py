"""HTTP requests of the tools: bounded in size, time and redirects."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from devall.core.errors import ToolArguments, ToolFailed
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    import httpx2

MAX_BYTES = 16 << 20
"""Of a body, unpacked."""
MAX_REDIRECTS = 10
_SECONDS = 60.0
_CONNECT_SECONDS = 15.0
_REDIRECTS = {301, 302, 303, 307, 308}
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered in the end."""

    url: str
    """Where it came from, redirects followed."""
    content_type: str
    """In small letters, without parameters; may be empty."""
    charset: str
    """May be empty."""
    body: bytes


async def fetch(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    json: JsonValue = None,
) -> Answer:
    """The answer to a GET, or to a POST where there is `json`.

    A redirect is followed to `http` and `https` only, and `headers` go to no other origin.

    Raises:
        ToolArguments: it is no URL of the web.
        ToolFailed: the server cannot be reached, refuses, takes too long or sends too much.
    """
    import httpx2

    require_web(url)
    sent = dict(headers or {})
    async with httpx2.AsyncClient(
        timeout=httpx2.Timeout(_SECONDS, connect=_CONNECT_SECONDS)
    ) as web:
        try:
            async with asyncio.timeout(_SECONDS):
                for _ in range(MAX_REDIRECTS + 1):
                    method = "GET" if json is None else "POST"
                    async with web.stream(method, url, headers=sent, json=json) as response:
                        target = response.headers.get("location", "")
                        if response.status_code not in _REDIRECTS or not target:
                            return await _answer(url, response)
                    following = urljoin(url, target)
                    require_web(following, f"{url} redirects to ")
                    if urlsplit(following)[:2] != urlsplit(url)[:2]:
                        sent = {}
                    url = following
        except TimeoutError as error:
            raise ToolFailed(f"{url} did not answer within {_SECONDS:g} s") from error
        except httpx2.TimeoutException as error:
            raise ToolFailed(f"{url} did not answer in time ({type(error).__name__})") from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            said = str(error) or type(error).__name__
            raise ToolFailed(f"{url} cannot be reached: {said}") from error
    raise ToolFailed(f"{url} redirects more than {MAX_REDIRECTS} times")


def require_web(url: str, before: str = "") -> None:
    """Check that a URL is one of the web.

    Args:
        url: The URL.
        before: Who sent it, where that was no caller: the beginning of the sentence.

    Raises:
        ToolArguments: it is none.
        ToolFailed: it is none, and somebody sent it.
    """
    try:
        parts = urlsplit(url)
        is_web = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_web = False
    if is_web:
        return
    if before:
        raise ToolFailed(f"{before}{url!r}, which is no page of the web")
    raise ToolArguments(f"{url!r} is no URL that begins with http:// or https://")


async def _answer(url: str, response: httpx2.Response) -> Answer:
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) > MAX_BYTES:
            raise ToolFailed(f"{url} sends more than {MAX_BYTES >> 20} MiB")
    kind, _, parameters = response.headers.get("content-type", "").partition(";")
    _, _, charset = parameters.lower().partition("charset=")
    answer = Answer(url, kind.strip().lower(), charset.strip(" \"'"), bytes(body))
    if response.status_code >= 400:
        said = " ".join(text_of(answer)[:_SHOWN].split())
        raise ToolFailed(
            f"{url} answers {response.status_code} {response.reason_phrase}: {said}".rstrip(": "),
            hint=_hint(response.status_code),
        )
    return answer


def text_of(answer: Answer) -> str:
    """The body as text."""
    try:
        return answer.body.decode(answer.charset or "utf-8", "replace")
    except LookupError:  # a server may name any charset
        return answer.body.decode("utf-8", "replace")


def _hint(status: int) -> str:
    match status:
        case 401 | 403:
            return "the page needs a login, or does not let programs in: try another source"
        case 402 | 429:
            return "too many calls, or the quota is used up: wait, or do without"
        case 404 | 410:
            return "there is no such page: check the URL, or search for it"
        case _:
            return ""
