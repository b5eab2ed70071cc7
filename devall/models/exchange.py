"""One exchange with an endpoint, by whatever client speaks its protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable, Hashable
from dataclasses import dataclass, field
from typing import Any

import httpx2

from devall.core.messages import JsonValue
from devall.core.outgoing import HEADERS
from devall.models.convert import usage_of
from devall.models.failures import Place, Said, from_said, timed_out
from devall.models.shapes import as_object
from devall.models.transport import Table, translated

JsonObject = dict[str, JsonValue]

CONNECT_SECONDS = 10.0
_ADDRESS = "check `base_url`: it should be the address of an API, as a rule one that ends in /v1"


@dataclass(slots=True)
class Endpoint:
    """An endpoint and a key, with the one client that all their models share."""

    client: Any
    """Of `openai` or `anthropic`: both are made alike."""
    foreign: type[Exception]
    """What all exceptions of the client's library have as their base."""
    table: Table
    """Its exceptions in our words."""
    stream: Any
    """The library's reader of server-sent events."""
    rejected: set[str] = field(default_factory=set[str])
    """Fields of ours (not of the file) that the endpoint has refused once."""

    async def exchange(
        self, path: str, body: JsonObject, place: Place, on_event: Callable[[JsonObject], None]
    ) -> JsonObject | None:
        """Send a request and hand on each event of its stream.

        The connection is closed when the awaiting task is cancelled.

        Args:
            path: `/chat/completions` or `/responses`.
            body: Sent as it is.
            place: For error texts, and the attempt's timeout.
            on_event: Takes the events of a stream.

        Returns:
            The whole answer where the endpoint gave one JSON object; None after a stream.

        Raises:
            ModelError: whatever went wrong, in our words.
        """
        return await self._exchange("POST", path, body, place, on_event)

    async def ask(self, path: str, place: Place) -> JsonObject:
        """What the endpoint tells at that path.

        Raises:
            ModelError: whatever went wrong, in our words.
        """
        return await self._exchange("GET", path, None, place, lambda _: None) or {}

    async def _exchange(
        self,
        method: str,
        path: str,
        body: JsonObject | None,
        place: Place,
        on_event: Callable[[JsonObject], None],
    ) -> JsonObject | None:
        begun = False
        clock = asyncio.timeout(place.timeout)
        try:
            async with clock, self._response(method, path, body, place) as response:
                begun = True
                if "text/event-stream" in response.headers.get("content-type", ""):
                    await self._read_stream(response, on_event)
                    return None
                return _whole(await response.aread(), place)
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise timed_out(place, begun=begun) from error
        except (
            self.foreign,
            httpx2.HTTPError,
            httpx2.StreamError,
            httpx2.InvalidURL,
            ValueError,
        ) as error:
            ours = translated(self.table, error, place, begun=begun)
            if ours is None:
                raise
            raise ours from error

    async def _read_stream(
        self, response: httpx2.Response, on_event: Callable[[JsonObject], None]
    ) -> None:
        stream = self.stream(cast_to=object, response=response, client=self.client)
        async for event in stream:
            on_event(as_object(event))

    @contextlib.asynccontextmanager
    async def _response(
        self, method: str, path: str, body: JsonObject | None, place: Place
    ) -> AsyncGenerator[httpx2.Response]:
        """The response with its body unread; closed at the end, whatever happens."""
        timeout = httpx2.Timeout(place.timeout, connect=min(CONNECT_SECONDS, place.timeout))
        options = {"timeout": timeout, "headers": dict(HEADERS.get())}
        how: dict[str, Any] = {"cast_to": httpx2.Response, "options": options}
        if method == "GET":
            found: httpx2.Response = await self.client.get(path, **how)
        else:
            found = await self.client.post(path, body=body, stream=True, stream_cls=None, **how)
        try:
            yield found
        finally:
            await found.aclose()


def _whole(data: bytes, place: Place) -> JsonObject:
    """The body as one JSON object.

    Raises:
        BadModelResponse: it is no JSON object.
        ModelError: it is an error object, with status 200.
    """
    text = data.decode(errors="replace")
    if not text.strip():
        raise place.bad("nothing", hint=_ADDRESS)
    try:
        found: JsonValue = json.loads(text)
    except ValueError as error:
        kind = "a page of HTML" if "<html" in text[:500].lower() else "something that is no JSON"
        raise place.bad(kind, text, hint=_ADDRESS) from error
    answer = as_object(found)
    if answer.get("error"):
        error = from_said(Said.of(answer), None, place)
        error.usage = usage_of(as_object(answer.get("usage"))) or error.usage
        raise error
    if not answer:
        raise place.bad("JSON that is no object", text)
    return answer


@dataclass(slots=True)
class Endpoints:
    """The clients of one source of models, by where they lead."""

    opened: dict[Hashable, Endpoint] = field(default_factory=dict[Hashable, Endpoint])

    def shared(self, key: Hashable, make: Callable[[], Endpoint]) -> Endpoint:
        """The endpoint of that key; its client is made once, which costs 30 ms."""
        if key not in self.opened:
            self.opened[key] = make()
        return self.opened[key]

    async def aclose(self) -> None:
        """Close every client."""
        opened, self.opened = list(self.opened.values()), {}
        for endpoint in opened:
            await endpoint.client.close()
