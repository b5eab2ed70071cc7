"""Logging in to servers that ask for it: OAuth as the MCP specification has it, by fastmcp."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import time
import webbrowser
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext, suppress
from urllib.parse import parse_qs

import httpx2
from fastmcp.client.auth.oauth import ClientNotFoundError, OAuth
from mcp.client.auth.exceptions import OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import DEFAULT_GRANT_TYPES, AuthorizationCodeResult, OAuthMetadata
from pydantic import ValidationError

from devall.tools.mcp.device import (
    GRANT,
    ClientUnknownError,
    ask_for_code,
    reason,
    token_for,
    told_by,
)
from devall.tools.mcp.errors import chain, describe
from devall.tools.mcp.logins import LoginPage, Logins
from devall.tools.mcp.session import call_waits
from devall.tools.mcp.tls import tls
from devall.tools.mcp.tokens import TokenFiles, config_folder

PATIENCE = 300.0
"""Seconds that a person with a browser has to log in."""
PATIENCE_WITH_CODE = 1800.0
"""Seconds that a person who types a code has at most; the code itself may hold for less."""
_METADATA = "devall-authorization-server"
OF_LOGIN = "devall-login"
"""The extension of requests that do not go to the server, but serve to log in to it."""
_ANSWER = "devall-answer"
"""The extension of a request that is answered already."""
HINT = "log in once at a terminal: `devall mcp login FILE [--node ID]`"
NO_CLIENTS = (
    "its authorization server registers no clients by itself:"
    " get a token there, and put it into `headers.Authorization` in place of `auth`"
)
NO_CODES = (
    "its authorization server gives no codes for other devices (it has no"
    " device_authorization_endpoint); in a browser on this machine"
)

# It writes to standard error by itself, in the midst of what a person is told.
logging.getLogger("fastmcp.client.auth").setLevel(logging.WARNING)


class LoginNeededError(Exception):
    """A person has to log in, and there is nobody to do it."""


class SignIn(OAuth):
    """The flow for one server; what it obtains is kept, and refreshed when it is old."""

    def __init__(self, url: str, logins: Logins, warn: Callable[[str], None]) -> None:
        """Make a flow; nothing is sent yet.

        Args:
            url: The server's URL.
            logins: By whom, and where what is obtained is kept.
            warn: Shows the page where nothing else does and there is a terminal.
        """
        self._store = TokenFiles(logins.folder or config_folder())
        self._show: Callable[[LoginPage], None] | None = logins.show
        self._anew = logins.anew
        self._by_code = logins.by_code
        self._device_endpoint = ""
        """Where the authorization server gives codes; empty = it does not, or is not known."""
        self._why = "wants a login"
        self.failure: Exception | None = None
        """What the last login failed with; the library drops it where a call was under way."""
        if logins.show is None and is_at_terminal():
            self._show = lambda page: warn(f"mcp_remote {url} wants a login: {page}")
        super().__init__(
            url,
            client_name="devall",
            token_storage=self._store,
            callback_timeout=PATIENCE,
            httpx_client_factory=_plain_client,
        )

    @property
    def is_attended(self) -> bool:
        """Whether there is a person who can log in."""
        return self._show is not None

    @property
    def patience(self) -> float:
        """Seconds that a person has to log in."""
        return PATIENCE_WITH_CODE if self._prefers_code else PATIENCE

    @property
    def _prefers_code(self) -> bool:
        return self._by_code or not can_open_pages()

    async def redirect_handler(self, authorization_url: str) -> None:
        """Send a person to the page to log in at.

        Raises:
            LoginNeededError: there is nobody to be sent.
        """
        show = self._person()
        async with self.httpx_client_factory() as client:
            answer = await client.get(authorization_url, follow_redirects=False)
        if answer.status_code == 400:
            raise ClientNotFoundError("the registration that is kept is not known any more")
        show(LoginPage(authorization_url, note=NO_CODES if self._by_code else ""))
        if not self._prefers_code:
            # A browser that is started here may take its time.
            await asyncio.to_thread(webbrowser.open, authorization_url)

    async def callback_handler(self) -> AuthorizationCodeResult:
        """What the browser brings back.

        Raises:
            OAuthFlowError: it was denied, or nobody came back in time.
        """
        try:
            return await super().callback_handler()
        except (RuntimeError, TimeoutError, ExceptionGroup) as error:
            for each in chain(error):
                if isinstance(each, TimeoutError):
                    raise OAuthFlowError(f"nobody did within {PATIENCE:g} s") from error
            raise OAuthFlowError(describe(error)) from error

    async def async_auth_flow(
        self, request: httpx2.Request
    ) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """One request with what it takes to be allowed.

        Where the authorization server is stands in no token: it is kept as well, or a token of
        an earlier run could not be refreshed.
        """
        known = self.context.oauth_metadata
        begins, has_begun_anew = True, False
        while begins:
            begins = False
            async with aclosing(super().async_auth_flow(request)) as flow:
                try:
                    asked = await anext(flow)
                    while not begins:
                        async with self._alone(asked):
                            response = await self._known_answer(asked)
                            if response is None:
                                self._before(asked, request)
                                response = yield asked
                                await self._after(asked, request, response)
                            if asked is request and not has_begun_anew:
                                begins = has_begun_anew = self._may_refresh(response)
                            if not begins:
                                asked = await flow.asend(response)
                except StopAsyncIteration:
                    self.failure = None
                except Exception as error:
                    self.failure = error
                    raise
        if self.context.oauth_metadata is not None and self.context.oauth_metadata is not known:
            found = {
                "metadata": self.context.oauth_metadata.model_dump(mode="json", exclude_none=True),
                "server": self.context.auth_server_url,
                "device": self._device_endpoint,
            }
            await self._store.put(self.mcp_url, found, collection=_METADATA)

    def _before(self, asked: httpx2.Request, request: httpx2.Request) -> None:
        """Register no client where nobody is there to log in with it."""
        asked.extensions[OF_LOGIN] = asked is not request
        if asked is not request and asked.method == "POST" and self.context.client_info is None:
            self._person()

    def _may_refresh(self, response: httpx2.Response) -> bool:
        """Whether a token was refused that is exchanged for another when it is sent again.

        The library does so for tokens alone whose time is over, as far as it knows.
        """
        was_sent = "authorization" in response.request.headers
        if response.status_code != 401 or not was_sent or not self.context.can_refresh_token():
            return False
        self.context.token_expiry_time = 1
        return True

    async def _after(
        self, asked: httpx2.Request, request: httpx2.Request, response: httpx2.Response
    ) -> None:
        """Learn from the answer to one of the flow's requests."""
        if asked is request:
            was_sent = "authorization" in asked.headers
            if response.status_code == 401 and was_sent and self.context.current_tokens:
                self._why = "does not accept the login that is kept any more"
            return
        if asked.method == "GET" and response.status_code == 200:
            await response.aread()
            told = told_by(response)
            if "issuer" in told:
                self._device_endpoint = str(told.get("device_authorization_endpoint") or "")
                more = [GRANT] if self._device_endpoint else []
                self.context.client_metadata.grant_types = [*DEFAULT_GRANT_TYPES, *more]
        if response.status_code != 200 and _grant(asked) == ["refresh_token"]:
            await response.aread()
            self._why = f"wants a new login: the one that is kept was refused ({reason(response)})"

    def _alone(self, asked: httpx2.Request) -> AbstractAsyncContextManager[None]:
        """A block for the request: nobody else may refresh a login at the same time."""
        is_refresh = _grant(asked) == ["refresh_token"]
        return self._store.alone(self.mcp_url) if is_refresh else nullcontext()

    async def _known_answer(self, asked: httpx2.Request) -> httpx2.Response | None:
        """The answer to a request that need not be sent.

        A refresh token may be used once: where another process has done so, its token serves.
        """
        if (answer := asked.extensions.get(_ANSWER)) is not None:
            return answer
        if _grant(asked) != ["refresh_token"]:
            return None
        kept = await self.token_storage_adapter.get_tokens()
        tried = parse_qs(asked.content.decode()).get("refresh_token")
        if kept is None or kept.refresh_token is None or tried == [kept.refresh_token]:
            return None
        expiry = await self.token_storage_adapter.get_token_expiry()
        if expiry is not None:
            left = int(expiry - time.time())
            if left <= 0:
                return None
            kept = kept.model_copy(update={"expires_in": left})
        return httpx2.Response(200, json=kept.model_dump(exclude_none=True), request=asked)

    async def _perform_authorization(self) -> httpx2.Request:
        """The request for the token, once a person has logged in."""
        show = self._person()
        with call_waits():
            if self._device_endpoint and self._prefers_code:
                return await self._with_code(show)
            return await super()._perform_authorization()

    async def _with_code(self, show: Callable[[LoginPage], None]) -> httpx2.Request:
        """A request that is answered already, with the token."""
        context = self.context
        assert context.client_info is not None
        client_id = {"client_id": context.client_info.client_id}
        form = dict(client_id)
        if context.client_metadata.scope:
            form["scope"] = context.client_metadata.scope
        if context.should_include_resource_param(context.protocol_version):
            form["resource"] = context.get_resource_url()
        async with self.httpx_client_factory() as client:
            form, headers = context.prepare_token_auth(form, {})
            try:
                code = await ask_for_code(client, self._device_endpoint, form, headers)
            except ClientUnknownError as error:
                raise ClientNotFoundError(
                    "its authorization server gives this client no code"
                ) from error
            show(LoginPage(code.page, code.user_code, code.page_with_code))
            poll = {**client_id, "grant_type": GRANT, "device_code": code.device_code}
            poll, headers = context.prepare_token_auth(poll, {})
            request = httpx2.Request("POST", self._get_token_endpoint(), data=poll, headers=headers)
            request.extensions[_ANSWER] = await token_for(client, request, code)
        return request

    def _person(self) -> Callable[[LoginPage], None]:
        """Shows a page to a person.

        Raises:
            LoginNeededError: there is none.
        """
        if self._show is None:
            raise LoginNeededError(self._why)
        return self._show

    async def _initialize(self) -> None:
        if self._anew:
            self._anew = False
            await self.token_storage_adapter.clear()
        await super()._initialize()
        tokens = self.context.current_tokens
        if tokens is not None and not tokens.refresh_token and not self.context.is_token_valid():
            self._why = "wants a new login: the one that is kept has expired"
        kept = await self._store.get(self.mcp_url, collection=_METADATA)
        if kept and self.context.oauth_metadata is None:
            with suppress(ValidationError):
                self.context.oauth_metadata = OAuthMetadata.model_validate(kept["metadata"])
                self.context.auth_server_url = kept["server"]
                self._device_endpoint = kept.get("device", "")


def is_at_terminal() -> bool:
    """Whether a person can be sent to a page, and asked to come back."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison] -- pythonw has none


def can_open_pages() -> bool:
    """Whether a browser can be opened that a person sees."""
    if sys.platform not in {"darwin", "win32"} and not any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    ):
        return False
    try:
        webbrowser.get()
    except webbrowser.Error:
        return False
    return True


def trouble(error: BaseException) -> tuple[str, str] | None:
    """What went wrong with a login, and what to do; None where it was something else."""
    for each in chain(error):
        if isinstance(each, LoginNeededError):
            return f"{each}, and there is no terminal to do it at", HINT
        if isinstance(each, OAuthRegistrationError):
            return f"could not be logged in to: {each}", NO_CLIENTS
        if isinstance(each, OAuthFlowError | ClientNotFoundError):
            return f"could not be logged in to: {each}", HINT
    return None


def _grant(request: httpx2.Request) -> list[str]:
    is_form = request.method == "POST" and request.headers.get("content-type", "").startswith(
        "application/x-www-form-urlencoded"
    )
    form = parse_qs(request.content.decode("utf-8", "replace")) if is_form else {}
    return form.get("grant_type", [])


def _plain_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=headers, auth=auth, verify=tls(), timeout=timeout or httpx2.Timeout(30.0)
    )
