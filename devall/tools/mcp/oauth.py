"""Logging in to servers that ask for it: OAuth as the MCP specification has it, by fastmcp."""

from __future__ import annotations

import asyncio
import hashlib
import os
import sys
import webbrowser
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing, suppress
from pathlib import Path

import httpx2
from fastmcp.client.auth.oauth import ClientNotFoundError, OAuth
from key_value.aio.stores.base import BaseStore, ManagedEntry
from mcp.client.auth.exceptions import OAuthFlowError
from mcp.shared.auth import OAuthMetadata
from pydantic import ValidationError

from devall.tools.mcp.errors import chain
from devall.tools.mcp.logins import Logins
from devall.tools.mcp.tls import tls
from devall.workspace import private_folder, write_private

PATIENCE = 300.0
"""Seconds that a person has to log in."""
_METADATA = "devall-authorization-server"
HINT = "log in once at a terminal: `devall mcp login FILE [--node ID]`"


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
        self._show: Callable[[str], None] | None = logins.show
        self._anew = logins.anew
        if logins.show is None and is_at_terminal():
            self._show = lambda page: warn(f"mcp_remote {url} wants a login: open {page}")
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

    async def redirect_handler(self, authorization_url: str) -> None:
        """Send a person to the page to log in at.

        Raises:
            LoginNeededError: there is nobody to be sent.
        """
        if self._show is None:
            raise LoginNeededError
        async with self.httpx_client_factory() as client:
            answer = await client.get(authorization_url, follow_redirects=False)
        if answer.status_code == 400:
            raise ClientNotFoundError("the registration that is kept is not known any more")
        self._show(authorization_url)
        if _has_screen():
            # A browser that is started here may take its time.
            await asyncio.to_thread(webbrowser.open, authorization_url)

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
                    response = yield asked
                    asked = await flow.asend(response)
            except StopAsyncIteration:
                pass
        if self.context.oauth_metadata is not None and self.context.oauth_metadata is not known:
            found = {
                "metadata": self.context.oauth_metadata.model_dump(mode="json", exclude_none=True),
                "server": self.context.auth_server_url,
            }
            await self._store.put(self.mcp_url, found, collection=_METADATA)

    async def _initialize(self) -> None:
        if self._anew:
            self._anew = False
            await self.token_storage_adapter.clear()
        await super()._initialize()
        kept = await self._store.get(self.mcp_url, collection=_METADATA)
        if kept and self.context.oauth_metadata is None:
            with suppress(ValidationError):
                self.context.oauth_metadata = OAuthMetadata.model_validate(kept["metadata"])
                self.context.auth_server_url = kept["server"]


def config_folder(environ: Mapping[str, str] = os.environ) -> Path:
    """Where the user's tokens are kept: `devall/mcp` in the folder for configuration."""
    base = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "devall" / "mcp"


def is_at_terminal() -> bool:
    """Whether a person can be sent to a page, and asked to come back."""
    streams = (sys.stdin, sys.stderr)
    return all(stream is not None and stream.isatty() for stream in streams)  # pyright: ignore[reportUnnecessaryComparison] -- pythonw has none


def trouble(error: BaseException) -> tuple[str, str] | None:
    """What went wrong with a login, and what to do; None where it was something else."""
    for each in chain(error):
        if isinstance(each, LoginNeededError):
            return "wants a login, and there is no terminal to do it at", HINT
        if isinstance(each, OAuthFlowError | ClientNotFoundError):
            return f"could not be logged in to: {each}", HINT
    return None


def _plain_client(
    headers: dict[str, str] | None = None,
    timeout: httpx2.Timeout | None = None,
    auth: httpx2.Auth | None = None,
) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(
        headers=headers, auth=auth, verify=tls(), timeout=timeout or httpx2.Timeout(30.0)
    )


def _has_screen() -> bool:
    if sys.platform in {"darwin", "win32"}:
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
