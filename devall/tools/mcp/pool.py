"""The MCP servers of one run: one for each configuration, whoever asks for it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Hashable
from pathlib import Path
from types import TracebackType
from typing import Literal, Self
from urllib.parse import urlsplit

from devall.config.tools import McpLocalConfig, McpRemoteConfig
from devall.core.errors import SetupError
from devall.core.events import Sink, Warned
from devall.tools.mcp.connection import finished
from devall.tools.mcp.link import Connector
from devall.tools.mcp.lists import KeptList
from devall.tools.mcp.logins import Logins
from devall.tools.mcp.server import McpServer
from devall.watchdog import Watchdog

_IMPORTS = threading.Lock()
"""Two threads must not import parts of the same large library at once."""

Redact = Callable[[str], str]
"""Replaces secrets in a text."""


class McpServers:
    """Makes servers and keeps them until the run is over: `async with McpServers() as servers`."""

    def __init__(
        self,
        *,
        emit: Sink | None = None,
        logs: Path | None = None,
        redact: Redact = lambda text: text,
        logins: Logins | None = None,
    ) -> None:
        """Make an empty pool.

        Args:
            emit: Takes warnings: a server that was slow to close, that writes to its stdout
                what is no protocol, that had to be started twice.
            logs: Folder for what servers write to stderr, a file for each; None = nowhere.
            redact: Applied to what servers write, to URLs and to command lines before they are
                kept or shown.
            logins: How servers with `auth: oauth` are logged in to.
        """
        self._logins = logins or Logins()
        self._emit = emit
        self._logs = logs
        self._redact = redact
        self._servers: dict[Hashable, McpServer] = {}
        self._lists: dict[Hashable, KeptList] = {}
        self._watchdog = Watchdog()
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    def remote(self, config: McpRemoteConfig) -> McpServer:
        """The server behind a URL; one for each URL, headers, timeout, protocol and transport.

        Raises:
            SetupError: the pool is closed.
        """
        key = (
            config.server,
            tuple(sorted((name.lower(), value) for name, value in config.headers.items())),
            config.timeout,
            config.protocol,
            config.transport,
            config.auth,
        )
        address = self._redact(config.server)
        log = self._log_file(urlsplit(config.server).hostname or "remote")
        kept = self._kept(key, config.cache_ttl)

        def load() -> Connector:
            with _IMPORTS:
                from devall.tools.mcp.remote import RemoteConnector

            return RemoteConnector(
                config, address, log, self._redact, self._warn, kept, self._logins
            )

        return self._server(key, "remote", address, load)

    def local(self, config: McpLocalConfig, base: Path) -> McpServer:
        """The server that is started here; one for each launch key.

        Args:
            config: How it is started.
            base: The folder of the workflow file, which a relative `cwd` is relative to.

        Raises:
            SetupError: the pool is closed.
        """
        folder = str((base / config.cwd).resolve()) if config.cwd else None
        key = (
            config.command,
            config.args,
            folder,
            tuple(sorted(config.env.items())),
            config.inherit_env,
            config.startup_timeout,
            config.wait_for_log,
            config.protocol,
            config.shutdown_grace,
            config.max_concurrency,
        )
        address = self._redact(" ".join((config.command, *config.args)))
        log = self._log_file(Path(config.command).stem)
        kept = self._kept(key, config.cache_ttl)

        def load() -> Connector:
            with _IMPORTS:
                from devall.tools.mcp.local import LocalConnector

            return LocalConnector(
                config, folder, address, self._watchdog, log, self._redact, self._warn, kept
            )

        return self._server(key, "local", address, load, config.max_concurrency)

    def _log_file(self, name: str) -> Path | None:
        """The file of the server that is made next."""
        return self._logs / f"{len(self._servers) + 1}-{name}.log" if self._logs else None

    def _kept(self, key: Hashable, seconds: float) -> KeptList:
        """The list of a server; the shortest `cache_ttl` of those who share it counts."""
        kept = self._lists.setdefault(key, KeptList(key, seconds))
        kept.seconds = min(kept.seconds, seconds)
        return kept

    async def aclose(self) -> None:
        """Close every server, all at once; no process, task or socket is left."""
        self._closed = True
        tasks = [asyncio.create_task(server.aclose()) for server in self._servers.values()]
        try:
            await finished(tasks)
        finally:
            await finished([asyncio.create_task(self._watchdog.aclose())])
        for task in tasks:
            with contextlib.suppress(asyncio.CancelledError):
                task.result()

    def _server(
        self,
        key: Hashable,
        mode: Literal["remote", "local"],
        address: str,
        load: Callable[[], Connector],
        max_concurrency: int | None = None,
    ) -> McpServer:
        if self._closed:
            raise SetupError(f"mcp_{mode} {address}: the run is over")
        found = self._servers.get(key)
        if found is None:
            found = McpServer(
                mode,
                address,
                load,
                self._warn,
                redact=self._redact,
                max_concurrency=max_concurrency,
            )
            self._servers[key] = found
        return found

    def _warn(self, message: str) -> None:
        if self._emit is not None:
            self._emit(Warned(code="mcp_server", message=message))
