"""Logging in to a server: a real authorization server, and a person who opens its page."""

from __future__ import annotations

import asyncio
import json
import stat
import threading
import time
import urllib.request
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from fastmcp import FastMCP
from fastmcp.server.auth.auth import ClientRegistrationOptions
from fastmcp.server.auth.providers.in_memory import InMemoryOAuthProvider

from devall.config.tools import McpRemoteConfig
from devall.core.errors import SetupError
from devall.core.messages import ToolCall
from devall.testing.login_server import CODE, DEVICE, REFRESH, LoginServer, visit
from devall.tools.manager import ToolManager
from devall.tools.mcp.login import login, wants_login
from devall.tools.mcp.logins import LoginPage, Logins
from devall.tools.mcp.pool import McpServers

Managers = Callable[..., ToolManager]


def source(url: str, **config: Any) -> dict[str, Any]:
    return {"type": "mcp_remote", "config": {"server": url, "auth": "oauth", **config}}


def call(name: str) -> ToolCall:
    return ToolCall("c1", name, "{}")


class Person:
    """Opens pages with a browser in the background, or types codes."""

    def __init__(self, server: LoginServer, *, allows: bool = True, types: bool = True) -> None:
        self.pages: list[LoginPage] = []
        self._server, self._allows, self._types = server, allows, types
        self._threads: list[threading.Thread] = []

    def __call__(self, page: LoginPage) -> None:
        self.pages.append(page)
        if page.code and self._types:
            self._server.type_code(page.code, allow=self._allows)
        elif not page.code:
            thread = threading.Thread(
                target=visit, args=(page.url,), kwargs={"allow": self._allows}
            )
            thread.start()
            self._threads.append(thread)

    def done(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.fixture
def person_at() -> Any:
    """Makes people: `person_at(server, allows=False)`."""
    people: list[Person] = []

    def make(server: LoginServer, **traits: bool) -> Person:
        people.append(Person(server, **traits))
        return people[-1]

    yield make
    for person in people:
        person.done()


@pytest.fixture
def use(manager_of: Managers, scope: Any, tmp_path: Path) -> Any:
    """Calls the server's tool in a new pool, without a person."""

    async def call_hello(server: LoginServer) -> str:
        async with (
            McpServers(logins=Logins(folder=tmp_path)) as servers,
            manager_of(source(server.url), servers=servers) as tools,
        ):
            return (await tools.call(call("hello"), scope)).text

    return call_hello


def config_of(server: LoginServer) -> McpRemoteConfig:
    return McpRemoteConfig(server=server.url, auth="oauth")


def let_expire(folder: Path) -> None:
    """Make the client believe that its token has expired."""
    (expiry,) = folder.glob("mcp-oauth-token-expiry-*")
    kept = json.loads(expiry.read_text())
    kept["value"]["expires_at"] = time.time() - 10
    expiry.write_text(json.dumps(kept))


async def test_a_login_is_kept_privately_and_used_again_and_refreshed(
    person_at: Any, use: Any, tmp_path: Path
):
    with LoginServer() as server:
        person = person_at(server)
        folder = tmp_path / "config" / "mcp"
        assert await login(config_of(server), person, folder=folder) == 1
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        files = list(folder.iterdir())
        assert files
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        folder.rename(tmp_path / "x")
        for file in (tmp_path / "x").iterdir():
            file.rename(tmp_path / file.name)

        assert await use(server) == "hi"  # without a person
        assert server.grants == [CODE]
        let_expire(tmp_path)
        assert await use(server) == "hi"
        assert server.grants == [CODE, REFRESH]
        assert len(person.pages) == 1
        await login(config_of(server), person, folder=tmp_path)
        assert len(person.pages) == 2  # anew, whatever is kept


async def test_without_a_terminal_and_a_token_the_command_that_logs_in_is_named(use: Any):
    with LoginServer() as server:
        with pytest.raises(SetupError) as caught:
            await use(server)
        assert server.clients == {}  # nobody registers who cannot log in
    assert caught.value.exit_code == 4
    assert "wants a login, and there is no terminal" in str(caught.value)
    assert "devall mcp login FILE [--node ID]" in caught.value.hint


@pytest.mark.parametrize(
    ("refreshes", "expires", "why"),
    [
        (True, True, "the one that is kept was refused (400 invalid_grant: not any more)"),
        (True, False, "the one that is kept was refused (400 invalid_grant: not any more)"),
        (False, True, "the one that is kept has expired"),
        (False, False, "does not accept the login that is kept any more"),
    ],
)
async def test_a_login_that_does_not_hold_any_more_says_why_and_what_to_do(
    person_at: Any, use: Any, tmp_path: Path, refreshes: bool, expires: bool, why: str
):
    with LoginServer() as server:
        server.refreshes = refreshes
        await login(config_of(server), person_at(server), folder=tmp_path)
        server.refuses.add(REFRESH)
        server.end_tokens()
        if expires:
            let_expire(tmp_path)
        with pytest.raises(SetupError) as caught:
            await use(server)
    assert why in str(caught.value)
    assert "devall mcp login FILE" in caught.value.hint


@pytest.mark.parametrize("refreshes", [True, False])
async def test_a_login_that_ends_during_a_run_is_refreshed_or_says_what_to_do(
    manager_of: Managers, person_at: Any, scope: Any, tmp_path: Path, refreshes: bool
):
    with LoginServer() as server:
        server.refreshes = refreshes
        await login(config_of(server), person_at(server), folder=tmp_path)
        async with (
            McpServers(logins=Logins(folder=tmp_path)) as servers,
            manager_of(source(server.url), servers=servers) as tools,
        ):
            assert (await tools.call(call("hello"), scope)).text == "hi"
            server.end_tokens()
            result = await tools.call(call("hello"), scope)
        assert server.grants == [CODE, REFRESH] if refreshes else [CODE]
    if refreshes:
        assert result.text == "hi"
    else:
        assert result.is_error
        assert "devall mcp login FILE" in result.text
        assert "unknown" not in result.text


async def test_a_call_has_patience_with_a_person_who_logs_in_meanwhile(
    manager_of: Managers, person_at: Any, scope: Any, tmp_path: Path
):
    with LoginServer(device=True, interval=0.1) as server:
        server.refreshes = False
        person = person_at(server, types=False)
        logins = Logins(person, tmp_path, by_code=True)
        await login(config_of(server), person_at(server), folder=tmp_path, by_code=True)
        async with (
            McpServers(logins=logins) as servers,
            manager_of(source(server.url) | {"timeout": 0.5}, servers=servers) as tools,
        ):
            server.end_tokens()
            work = asyncio.create_task(tools.call(call("hello"), scope))
            await asyncio.sleep(1)
            (page,) = person.pages
            server.type_code(page.code)
            assert (await work).text == "hi"


async def test_a_token_that_another_process_refreshed_is_taken_over(
    person_at: Any, use: Any, manager_of: Managers, scope: Any, tmp_path: Path
):
    with LoginServer(lifetime=1) as server:
        await login(config_of(server), person_at(server), folder=tmp_path)
        async with (
            McpServers(logins=Logins(folder=tmp_path)) as servers,
            manager_of(source(server.url), servers=servers) as tools,
        ):
            assert (await tools.call(call("hello"), scope)).text == "hi"
            await asyncio.sleep(1.1)
            server.lifetime = 3600
            assert await use(server) == "hi"  # refreshes, and the old refresh token is gone
            assert (await tools.call(call("hello"), scope)).text == "hi"
        assert server.grants == [CODE, REFRESH]


async def test_two_that_refresh_at_once_do_not_lose_the_login(
    person_at: Any, use: Any, tmp_path: Path
):
    with LoginServer() as server:
        await login(config_of(server), person_at(server), folder=tmp_path)
        let_expire(tmp_path)
        server.refresh_delay = 0.3
        assert await asyncio.gather(use(server), use(server)) == ["hi", "hi"]
        assert server.grants == [CODE, REFRESH]
    assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("lock-*")} == {0o600}


async def test_a_server_that_offers_logins_says_so_where_none_is_configured(
    manager_of: Managers, servers: McpServers
):
    async def hint(**config: Any) -> str:
        with LoginServer() as server:
            plain = {"type": "mcp_remote", "config": {"server": server.url, **config}}
            with pytest.raises(SetupError, match="401 Unauthorized: log in first") as caught:
                async with manager_of(plain, servers=servers):
                    raise AssertionError
        return caught.value.hint

    told = await hint()
    assert "`auth: oauth`" in told
    assert "devall mcp login FILE" in told
    told = await hint(headers={"authorization": "Bearer wrong"})
    assert "check `headers.Authorization`" in told


async def test_an_authorization_server_that_is_away_is_named(
    person_at: Any, use: Any, tmp_path: Path
):
    with LoginServer() as server, LoginServer() as away:
        server.issuer = away
        await login(config_of(server), person_at(away), folder=tmp_path)
        assert await use(server) == "hi"
        origin = away.base
        away.stop()
        let_expire(tmp_path)
        with pytest.raises(SetupError, match=f"wants a login at {origin}, which cannot be reached"):
            await use(server)


async def test_a_server_that_registers_nobody_says_what_to_do_instead(
    person_at: Any, tmp_path: Path
):
    with LoginServer(registers=False) as server, pytest.raises(SetupError) as caught:
        await login(config_of(server), person_at(server), folder=tmp_path)
    assert "could not be logged in to" in str(caught.value)
    assert "registers no clients by itself" in caught.value.hint
    assert "headers.Authorization" in caught.value.hint


@pytest.mark.parametrize("by_code", [False, True])
async def test_a_login_that_a_person_denies_fails_and_says_so(
    person_at: Any, tmp_path: Path, by_code: bool
):
    with LoginServer(device=True) as server:
        person = person_at(server, allows=False)
        with pytest.raises(SetupError, match=r"could not be logged in to.*denied"):
            await login(config_of(server), person, folder=tmp_path, by_code=by_code)
        assert server.grants == []


async def test_a_code_is_typed_on_another_device_and_its_token_kept(
    person_at: Any, use: Any, tmp_path: Path
):
    with LoginServer(device=True, interval=0.2) as server:
        person = person_at(server, types=False)
        work = asyncio.create_task(login(config_of(server), person, folder=tmp_path, by_code=True))
        while len(server.polls) < 3:
            await asyncio.sleep(0.01)
        assert not work.done()
        (page,) = person.pages
        assert page.url == f"{server.base}/device"
        assert page.code in str(page)
        assert page.code in page.url_with_code
        server.type_code(page.code)
        assert await work == 1
        assert server.grants == [DEVICE]
        gaps = [later - sooner for sooner, later in pairwise(server.polls)]
        assert min(gaps) >= 0.19
        let_expire(tmp_path)
        assert await use(server) == "hi"
        assert server.grants == [DEVICE, REFRESH]


async def test_a_server_that_is_asked_too_often_is_asked_more_slowly(
    person_at: Any, tmp_path: Path
):
    with LoginServer(device=True, slow_downs=1) as server:
        await login(config_of(server), person_at(server), folder=tmp_path, by_code=True)
        assert len(server.polls) == 2
        assert server.polls[1] - server.polls[0] >= 5


async def test_a_code_that_nobody_types_ends_the_login(person_at: Any, tmp_path: Path):
    with LoginServer(device=True, code_lifetime=0.5) as server:
        person = person_at(server, types=False)
        with pytest.raises(SetupError, match=r"was not typed within 0\.5 s") as caught:
            await login(config_of(server), person, folder=tmp_path, by_code=True)
    assert "devall mcp login" in caught.value.hint


async def test_a_server_without_codes_is_logged_in_to_by_its_page(person_at: Any, tmp_path: Path):
    with LoginServer() as server:
        person = person_at(server)
        await login(config_of(server), person, folder=tmp_path, by_code=True)
        assert server.grants == [CODE]
    (page,) = person.pages
    assert "device_authorization_endpoint" in str(page)
    assert f"{server.base}/authorize?" in page.url


async def test_a_client_that_was_registered_for_the_browser_only_is_registered_anew_for_codes(
    person_at: Any, tmp_path: Path
):
    with LoginServer() as server:
        await login(config_of(server), person_at(server), folder=tmp_path)
        for file in tmp_path.glob("mcp-oauth-token-*"):
            file.unlink()
        server.device = True
        logins = Logins(person_at(server), tmp_path, by_code=True)
        async with McpServers(logins=logins) as servers:
            assert len(await servers.remote(config_of(server)).tools()) == 1
        assert server.grants == [CODE, DEVICE]
        assert len(server.clients) == 2


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


@pytest.mark.parametrize("protocol", ["auto", "modern", "legacy"])
async def test_a_server_of_the_protocols_own_library_is_logged_in_to_by_every_protocol(
    manager_of: Managers, live: Any, scope: Any, tmp_path: Path, protocol: Any
):
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
    threads: list[threading.Thread] = []

    def show(page: LoginPage) -> None:
        threads.append(threading.Thread(target=come_back, args=(page.url,)))
        threads[-1].start()

    def come_back(page: str) -> None:
        time.sleep(0.5)  # until the way back is open
        with urllib.request.urlopen(page, timeout=10) as response:
            assert response.status == 200

    config = McpRemoteConfig(server=server.url, auth="oauth", protocol=protocol)
    assert await login(config, show, folder=tmp_path) == 1
    threads[0].join()
    let_expire(tmp_path)
    before = set(provider.access_tokens)
    async with (
        McpServers(logins=Logins(folder=tmp_path)) as servers,
        manager_of(source(server.url, protocol=protocol), servers=servers) as tools,
    ):
        assert (await tools.call(call("hello"), scope)).text == "hi"
    assert set(provider.access_tokens) != before
    assert len(threads) == 1


def test_only_servers_with_oauth_are_logged_in_to() -> None:
    from pydantic import TypeAdapter

    from devall.config.tools import ToolSource

    read = TypeAdapter(ToolSource).validate_python
    sources = [
        read(source("http://a.test/mcp")),
        read({"type": "mcp_remote", "config": {"server": "http://b.test/mcp"}}),
        read(source("http://a.test/mcp", timeout=30)),
    ]
    assert [config.server for config in wants_login(sources)] == ["http://a.test/mcp"]
