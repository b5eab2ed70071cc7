"""MCP servers that are reached by HTTP."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from fastmcp.client.transports.base import ClientTransport
from fastmcp.client.transports.http import StreamableHttpTransport
from fastmcp.client.transports.sse import SSETransport

from devall.config.tools import McpRemoteConfig
from devall.core.errors import SetupError, ToolFailed
from devall.core.messages import JsonValue
from devall.tools.mcp.connection import ConnectionLostError
from devall.tools.mcp.errors import SHOWN, chain, describe, is_closed
from devall.tools.mcp.lenient import PROBE
from devall.tools.mcp.link import WAITS, Caller, CallFailure, Listing
from devall.tools.mcp.lists import KeptList
from devall.tools.mcp.log import ServerLog
from devall.tools.mcp.logins import Logins
from devall.tools.mcp.oauth import HINT, OF_LOGIN, SignIn, trouble
from devall.tools.mcp.session import MODES, Conversation
from devall.tools.mcp.tls import tls

LONGEST_START = 30.0
"""Seconds after which opening is given up, however long a call may take."""
MAX_EVENT = 64 * 1024 * 1024
"""Bytes of one event; a result that is longer fails its call."""
MAX_BODY = 1024 * 1024
"""Bytes of an error's body that are read."""
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(slots=True)
class _Answer:
    """The last answer of a server that was none of the protocol."""

    status: int = 0
    reason: str = ""
    kind: str = ""
    body: str = ""
    moved: str = ""
    """Where a redirect led that was followed."""
    wants_oauth: bool = False
    """Whether it says where to log in."""

    def __bool__(self) -> bool:
        return bool(self.status)

    def __str__(self) -> str:
        head = f"{self.status} {self.reason}".strip()
        shown = " ".join(self.body.split())[:SHOWN]
        return f"{head}: {shown}" if shown else head


_answer: ContextVar[_Answer | None] = ContextVar("_answer", default=None)
"""Where the answer to what this task asks is noted; the library passes the context on."""


class RemoteConnector:
    """Reaches a server, and remembers by which transport."""

    def __init__(
        self,
        config: McpRemoteConfig,
        address: str,
        log: Path | None,
        redact: Callable[[str], str],
        warn: Callable[[str], None],
        kept: KeptList,
        logins: Logins,
    ) -> None:
        """Make a connector; nothing is sent yet.

        Args:
            config: Where the server is.
            address: The URL, as errors show it.
            log: The file for what the server logs by the protocol, None = nowhere.
            redact: Applied to what is kept or shown.
            warn: Takes what a user should know.
            kept: Where its list of tools is kept.
            logins: How it is logged in to, if its config says that it is.
        """
        tls()  # here, in a thread: it blocks
        self.sign_in = SignIn(config.server, logins, warn) if config.auth else None
        self.config = config
        self.address = address
        self.label = f"mcp_remote {address}"
        self.log_file = log
        self.redact = redact
        self.warn = warn
        self.kept = kept
        self._said: set[str] = set()
        self.use_sse = config.transport == "sse"
        self.first_refusal: SetupError | None = None
        """What the server said to streamable HTTP, where SSE is tried as well."""

    @property
    def startup_timeout(self) -> float:
        """Seconds until the server must have answered: what a call has, 30 at most.

        A person who has to log in gets more.
        """
        if self.sign_in is not None and self.sign_in.is_attended:
            return self.sign_in.patience
        return min(self.config.timeout, LONGEST_START)

    def link(self) -> RemoteLink:
        """A link that is not open yet."""
        return RemoteLink(self, self.startup_timeout)

    def say(self, text: str) -> None:
        """Tell a user what is odd about the server, once."""
        if text not in self._said:
            self._said.add(text)
            self.warn(f"{self.label} {self.redact(text)}")

    def retry_after(self, error: BaseException, attempt: int) -> float | None:
        """Later, where the server may come up; at once by SSE, where it knows nothing else."""
        if not isinstance(error, _RequestError):
            return None
        answer = error.answer
        if self.config.transport == "auto":
            if self.use_sse:  # it was no server of that kind either
                self.use_sse = False
                return None
            if answer.status in {400, 404, 405}:
                self.use_sse = True
                return 0
        is_down = answer.status in TRY_AGAIN or (
            not answer and any(isinstance(e, httpx2.TransportError) for e in chain(error))
        )
        return WAITS[attempt - 1] if is_down and attempt <= len(WAITS) else None


class _RequestError(Exception):
    """A request failed; `__cause__` is why, and `answer` what the server said to it."""

    def __init__(self, answer: _Answer) -> None:
        super().__init__()
        self.answer = answer


class RemoteLink:
    """One conversation by HTTP."""

    def __init__(self, connector: RemoteConnector, seconds: float) -> None:
        self._connector = connector
        self._seconds = seconds
        self._by_sse = connector.use_sse
        self._opening = _Answer()
        self._log = ServerLog(connector.log_file, connector.redact)
        self._conversation = Conversation(
            self._transport(),
            MODES[connector.config.protocol],
            log=self._log.add,
            say=connector.say,
            # The first request may have to wait for a login.
            probe=seconds if connector.sign_in else min(PROBE, seconds / 3),
            may_list_again=lambda: not self._opening,
        )
        self.on_changed: Callable[[], None] = lambda: None
        self._conversation.on_changed = self._on_changed

    @property
    def protocol(self) -> str:
        """The revision of the protocol that was agreed on; empty before."""
        return self._conversation.protocol

    async def open(self) -> Listing:
        """Reach the server, agree on a protocol, list its tools."""
        answer = self._opening
        _answer.set(answer)
        known = self._connector.kept.find()
        try:
            listing = await self._conversation.open(known)
        except Exception as error:
            raise _RequestError(answer) from error
        if known is None:
            self._connector.kept.keep(listing)
        if answer.moved:
            self._connector.say(f"redirects to {answer.moved}; writing that URL saves the detour")
        if self._by_sse and self._connector.config.transport == "auto":
            self._connector.warn(
                f"{self._connector.label} speaks server-sent events only;"
                " `transport: sse` in its config saves the detour"
            )
        return listing

    async def lost(self) -> None:
        """Never: each request has its own connection."""
        await asyncio.Event().wait()

    async def relist(self) -> Listing:
        """The tools as they are now."""
        self._opening = answer = _Answer()
        _answer.set(answer)
        try:
            listing = await self._conversation.list()
        except Exception as error:
            raise _RequestError(answer) from error
        self._connector.kept.keep(listing)
        return listing

    async def close(self) -> list[str]:
        """End the conversation."""
        self._log.close()
        try:
            await self._conversation.close()
        # The work is done: nothing that goes wrong now may spoil it.
        except Exception as error:  # noqa: BLE001
            return [f"closing {self._connector.label}: {describe(error)}"]
        return []

    async def call(self, name: str, arguments: Mapping[str, JsonValue], caller: Caller) -> Any:
        """The server's result for a call."""
        answer = _Answer()
        _answer.set(answer)
        try:
            return await self._conversation.call(name, arguments, caller)
        except Exception as error:
            raise _RequestError(answer) from error

    async def explain(self, error: BaseException) -> SetupError:
        """What kept the server from being reached."""
        url = self._connector.address
        if told := self._trouble(error):
            return SetupError(f"{url} {told[0]}", hint=told[1])
        answer = error.answer if isinstance(error, _RequestError) else _Answer()
        first = self._connector.first_refusal
        if answer and first is not None and self._by_sse:
            return first  # it is no server of that kind either
        if answer:
            hint = _hint(answer, self._connector.config)
            told = SetupError(f"{url} answered {answer}", hint=hint)
            self._connector.first_refusal = told
            return told
        text = describe(error)
        if isinstance(error, TimeoutError):
            return SetupError(
                f"{url} did not answer within {self._seconds:g} s",
                hint="is it an MCP server? `timeout` is the time it has",
            )
        if any(isinstance(each, httpx2.ConnectError) for each in chain(error)):
            if elsewhere := _login_origin(error):
                return SetupError(
                    f"{url} wants a login at {elsewhere}, which cannot be reached: {text}",
                    hint="is that authorization server running, and reachable from here?",
                )
            return SetupError(
                f"{url} cannot be reached: {text}",
                hint="is the server running, and are host and port right?",
            )
        return SetupError(f"{url} cannot be used: {text}")

    async def explain_call(self, error: Exception, tool: str) -> CallFailure:
        """What made a call fail."""
        label = self._connector.label
        if told := self._trouble(error):
            return CallFailure(ToolFailed(f"{tool}: {label} {told[0]}", hint=told[1]), is_lost=True)
        answer = error.answer if isinstance(error, _RequestError) else _Answer()
        refused = any(isinstance(e, httpx2.ConnectError) for e in chain(error))
        if answer.status == 404 or refused:
            # The session is unknown to a server that was started again; or nobody listened.
            text = f"{tool} of {label}: {answer or describe(error)}"
            return CallFailure(ToolFailed(text), is_lost=True, was_refused=True)
        if answer:
            hint = _hint(answer, self._connector.config)
            text = f"{tool} of {label}: answered {answer}"
            return CallFailure(ToolFailed(text, hint=hint), is_lost=is_closed(error))
        lost = is_closed(error) or isinstance(error, ConnectionLostError)
        lost = lost or any(isinstance(e, httpx2.TransportError) for e in chain(error))
        unknown = "; outcome unknown" if lost else ""
        return CallFailure(ToolFailed(f"{tool} of {label}: {describe(error)}{unknown}"), lost)

    def _trouble(self, error: BaseException) -> tuple[str, str] | None:
        """What went wrong with the login, and what to do; None where it was something else."""
        sign_in = self._connector.sign_in
        if sign_in is None:
            return None
        known = sign_in.failure if is_closed(error) else None
        return trouble(error) or (trouble(known) if known is not None else None)

    def _on_changed(self) -> None:
        self._connector.kept.forget()
        self.on_changed()

    def _transport(self) -> ClientTransport:
        config = self._connector.config
        factory: Any = _http_client
        if self._by_sse:
            return SSETransport(
                config.server,
                config.headers,
                auth=self._connector.sign_in,
                httpx_client_factory=factory,
            )
        return StreamableHttpTransport(
            config.server,
            config.headers,
            auth=self._connector.sign_in,
            httpx_client_factory=factory,
            max_sse_event_size=MAX_EVENT,
        )


def _http_client(
    headers: dict[str, str] | None = None,
    auth: httpx2.Auth | None = None,
    **_: object,
) -> httpx2.AsyncClient:
    """A client that notes what the library drops: status and body of a refusal.

    It sets no bound to reading: the one who calls has one. The library follows a redirect only
    within the origin of the URL, so that no header reaches another one; here, once.
    """
    return httpx2.AsyncClient(
        headers=headers,
        auth=auth,
        verify=tls(),
        # The requests of a login are counted as if they were redirects.
        max_redirects=1 if auth is None else 20,
        timeout=httpx2.Timeout(30.0, read=None),
        event_hooks={"response": [_note]},
    )


async def _note(response: httpx2.Response) -> None:
    answer = _answer.get()
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    is_protocol = kind in {"application/json", "text/event-stream"} or response.status_code == 202
    if answer is None or response.request.extensions.get(OF_LOGIN):
        return
    if response.status_code < 300 and is_protocol:
        answer.status = 0
        return
    if response.has_redirect_location:
        answer.moved = str(response.url.join(response.headers["location"]))
    if response.request.method == "DELETE" or (
        response.request.method == "GET" and response.status_code == 405
    ):
        return  # a server need not offer these
    answer.status = response.status_code
    answer.reason = response.reason_phrase
    answer.kind = kind
    answer.wants_oauth = "resource_metadata" in response.headers.get("www-authenticate", "")
    length = response.headers.get("content-length", "0")
    if length.isdigit() and int(length) <= MAX_BODY:
        with contextlib.suppress(httpx2.HTTPError):
            answer.body = (await response.aread())[: 4 * SHOWN].decode("utf-8", "replace")


def _login_origin(error: BaseException) -> str:
    """Where a request for a login was sent that failed, empty where it was another request."""
    for each in chain(error):
        request = getattr(each, "_request", None)
        if isinstance(request, httpx2.Request) and request.extensions.get(OF_LOGIN):
            return str(request.url.copy_with(path="/", query=None)).rstrip("/")
    return ""


def _hint(answer: _Answer, config: McpRemoteConfig) -> str:
    """What to look at, for an answer."""
    match answer.status:
        case 401 if config.auth:
            return f"the login is not accepted; {HINT}"
        case 403 if config.auth:
            return f"whoever is logged in may not do this; as somebody else: {HINT}"
        case 401 | 403 if "authorization" in {name.lower() for name in config.headers}:
            return "check `headers.Authorization` of the source: is the key there, and valid?"
        case 401 if answer.wants_oauth:
            return (
                "write `auth: oauth` into the config of the source, and log in once:"
                " `devall mcp login FILE [--node ID]`; or put a key into `headers.Authorization`"
            )
        case 401 | 403:
            return "it wants a key: put it into `headers.Authorization` of the source"
        case 404 | 405:
            return "check the path of `server`: many servers listen at /mcp"
        case 301 | 302 | 303 | 307 | 308:
            return "write the URL that it redirects to: none is followed to another origin"
        case status if status < 300:
            return f"this is {answer.kind or 'no MCP'}: is it the URL of an MCP server?"
        case _:
            return "the server has trouble: look at its log"
