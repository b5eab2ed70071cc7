"""Logging in to servers that ask for it: OAuth as the MCP specification has it, by fastmcp."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import sys
import time
import webbrowser
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path
from urllib.parse import parse_qs

import httpx2
from fastmcp.client.auth.oauth import ClientNotFoundError, OAuth
from key_value.aio.stores.base import BaseStore, ManagedEntry
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
from devall.tools.mcp.tls import tls
from devall.workspace import private_folder, write_private

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


class TokenFiles(BaseStore):
    """Tokens in a folder that is the user's alone (0700), a file for each (0600)."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        super().__init__(stable_api=True)

    async def _get_managed_entry(self, *, collection: str, key: str) -> ManagedEntry | None:
        try:
            text = self._file(collection, key).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return self._serialization_adapter.load_json(text)

    async def _put_managed_entry(
        self, *, collection: str, key: str, managed_entry: ManagedEntry
    ) -> None:
        text = self._serialization_adapter.dump_json(managed_entry, key=key, collection=collection)
        private_folder(self._folder)
        write_private(self._file(collection, key), text.encode())

    async def _delete_managed_entry(self, *, key: str, collection: str) -> bool:
        file = self._file(collection, key)
        is_there = file.exists()
        file.unlink(missing_ok=True)
        return is_there

    def _file(self, collection: str, key: str) -> Path:
        digest = hashlib.sha256(key.encode()).hexdigest()[:16]
        return self._folder / f"{collection}-{digest}.json"


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
        async with aclosing(super().async_auth_flow(request)) as flow:
            try:
                asked = await anext(flow)
                while True:
                    response = asked.extensions.get(_ANSWER)
                    if response is None:
                        asked.extensions[OF_LOGIN] = asked is not request
                        self._before(asked, request)
                        response = yield asked
                        if asked is request and self._may_refresh(response):
                            # Its time was not over yet, as far as was known.
                            refresh = await self._refresh_token()
                            refresh.extensions[OF_LOGIN] = True
                            told = yield refresh
                            told = await self._after(refresh, request, told)
                            if await self._handle_refresh_response(told):
                                self._add_auth_header(request)
                                response = yield request
                        response = await self._after(asked, request, response)
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
        if asked is not request and asked.method == "POST" and self.context.client_info is None:
            self._person()

    def _may_refresh(self, response: httpx2.Response) -> bool:
        """Whether the server refused a token that may be exchanged for another."""
        was_sent = "authorization" in response.request.headers
        return response.status_code == 401 and was_sent and self.context.can_refresh_token()

    async def _after(
        self, asked: httpx2.Request, request: httpx2.Request, response: httpx2.Response
    ) -> httpx2.Response:
        """The answer to one of the flow's requests, and what is learned from it."""
        if asked is request:
            was_sent = "authorization" in asked.headers
            if response.status_code == 401 and was_sent and self.context.current_tokens:
                self._why = "does not accept the login that is kept any more"
            return response
        if asked.method == "GET" and response.status_code == 200:
            await response.aread()
            endpoint = told_by(response).get("device_authorization_endpoint")
            if isinstance(endpoint, str):
                self._device_endpoint = endpoint
                self.context.client_metadata.grant_types = [*DEFAULT_GRANT_TYPES, GRANT]
        if response.status_code != 200 and _grant(asked) == ["refresh_token"]:
            await response.aread()
            if (newer := await self._refreshed_by_others(asked)) is not None:
                return newer
            self._why = f"wants a new login: the one that is kept was refused ({reason(response)})"
        return response

    async def _refreshed_by_others(self, asked: httpx2.Request) -> httpx2.Response | None:
        """The token that another process has put in the place of the one that was refused."""
        kept = await self.token_storage_adapter.get_tokens()
        tried = parse_qs(asked.content.decode()).get("refresh_token")
        if kept is None or kept.refresh_token is None or tried == [kept.refresh_token]:
            return None
        expiry = await self.token_storage_adapter.get_token_expiry()
        if expiry is not None:
            kept = kept.model_copy(update={"expires_in": max(int(expiry - time.time()), 0)})
        return httpx2.Response(200, json=kept.model_dump(exclude_none=True), request=asked)

    async def _perform_authorization(self) -> httpx2.Request:
        """The request for the token, once a person has logged in."""
        show = self._person()
        if not (self._device_endpoint and self._prefers_code):
            return await super()._perform_authorization()
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


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's tokens are kept: `devall/mcp` in the folder for configuration."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "devall" / "mcp"


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
    return parse_qs(request.content.decode("utf-8", "replace"))["grant_type"] if is_form else []


def _plain_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=headers, auth=auth, verify=tls(), timeout=timeout or httpx2.Timeout(30.0)
    )
