"""Logging in to a server: a real authorization server, and a person who opens its page."""

from __future__ import annotations

import json
import stat
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

from devall.config.tools import McpRemoteConfig
from devall.core.errors import SetupError
from devall.core.messages import ToolCall
from devall.tools.manager import ToolManager
from devall.tools.mcp.login import login, wants_login
from devall.tools.mcp.logins import Logins
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]


def source(url: str, **config: Any) -> dict[str, Any]:
    return {"type": "mcp_remote", "config": {"server": url, "auth": "oauth", **config}}


def call(name: str) -> ToolCall:
    return ToolCall("c1", name, "{}")


class Visitor:
    """Opens the page in the background, as a person with a browser does."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self._threads: list[threading.Thread] = []

    def __call__(self, page: str) -> None:
        self.pages.append(page)
        thread = threading.Thread(target=self._visit, args=(page,))
        thread.start()
        self._threads.append(thread)

    def _visit(self, page: str) -> None:
        with httpx2.Client(follow_redirects=True) as client:
            for _ in range(100):  # the way back is opened at the same time
                try:
                    assert client.get(page).status_code == 200
                except httpx2.ConnectError:
                    time.sleep(0.05)
                else:
                    return

    def done(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def visitor() -> Any:
    found = Visitor()
    yield found
    found.done()


@pytest.fixture
async def guarded(live: Any) -> Any:
    """A server that wants a login; it is its own authorization server."""
    mcp = FastMCP("guarded")

    @mcp.tool
    def hello() -> str:
        return "hi"

    server = await live(FastMCP("placeholder"))
    await server.stop()
    base = server.url.removesuffix("/mcp")
    mcp.auth = provider = InMemoryOAuthProvider(
        base_url=base, client_registration_options=ClientRegistrationOptions(enabled=True)
    )
    server._make_app = lambda: mcp.http_app(path="/mcp")
    await server.start()
    server.provider = provider
    return server


async def test_a_login_is_kept_privately_and_used_again_and_refreshed(
    manager_of: Managers, guarded: Any, visitor: Visitor, tmp_path: Path, scope: Any
):
    folder = tmp_path / "config" / "mcp"
    config = McpRemoteConfig(server=guarded.url, auth="oauth")
    assert await login(config, visitor, folder=folder) == 1
    assert len(visitor.pages) == 1
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = list(folder.iterdir())
    assert files
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}

    async def use() -> str:
        async with (
            McpServers(logins=Logins(folder=folder)) as servers,
            manager_of(source(guarded.url), servers=servers) as tools,
        ):
            return (await tools.call(call("hello"), scope)).text

    assert await use() == "hi"  # without a person
    (expiry,) = folder.glob("mcp-oauth-token-expiry-*")
    kept = json.loads(expiry.read_text())
    kept["value"]["expires_at"] = time.time() - 10
    expiry.write_text(json.dumps(kept))
    before = set(guarded.provider.access_tokens)
    assert await use() == "hi"
    assert set(guarded.provider.access_tokens) != before  # refreshed
    assert len(visitor.pages) == 1
    await login(config, visitor, folder=folder)
    assert len(visitor.pages) == 2  # anew, whatever is kept


async def test_without_a_terminal_and_a_token_the_command_that_logs_in_is_named(
    manager_of: Managers, guarded: Any, tmp_path: Path
):
    async with McpServers(logins=Logins(folder=tmp_path / "none")) as servers:
        with pytest.raises(SetupError) as caught:
            async with manager_of(source(guarded.url), servers=servers):
                raise AssertionError
    assert caught.value.exit_code == 4
    assert "wants a login, and there is no terminal" in str(caught.value)
    assert "devall mcp login FILE [--node ID]" in caught.value.hint


async def test_a_server_that_wants_no_login_is_used_without_one(
    manager_of: Managers, live: Any, tmp_path: Path, scope: Any
):
    mcp = FastMCP("open")

    @mcp.tool
    def hello() -> str:
        return "hi"

    server = await live(mcp)
    async with (
        McpServers(logins=Logins(folder=tmp_path / "none")) as servers,
        manager_of(source(server.url), servers=servers) as tools,
    ):
        assert (await tools.call(call("hello"), scope)).text == "hi"
    assert not (tmp_path / "none").exists()


def test_only_servers_with_oauth_are_logged_in_to() -> None:
    from pydantic import TypeAdapter

    from devall.config.tools import ToolSource

    read = TypeAdapter(ToolSource).validate_python
    sources = [
        read(source("http://a.test/mcp")),
        read({"type": "mcp_remote", "config": {"server": "http://b.test/mcp"}}),
        read(source("http://a.test/mcp")),
    ]
    assert [config.server for config in wants_login(sources)] == ["http://a.test/mcp"]
