"""One supervised MCP server: opened when first needed, and again after it was lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, Literal

from devall.core.errors import SetupError, ToolFailed, ToolTimeout
from devall.core.messages import JsonValue
from devall.tools.mcp.connection import Connection, OpenFailedError, finished
from devall.tools.mcp.link import Connector, Link, McpTool, OnProgress
from devall.tools.threads import in_thread


class McpServer:
    """Shared by all who have the same configuration; owned, and closed, by the run.

    There is no lock around calls: as many run at once as the server's `max_concurrency` allows.
    """

    def __init__(
        self,
        mode: Literal["remote", "local"],
        address: str,
        load: Callable[[], Connector],
        warn: Callable[[str], None],
        max_concurrency: int | None = None,
    ) -> None:
        """Make a server; nothing is started or imported yet.

        Args:
            mode: Whether it is reached or started here.
            address: Its URL or command line, as errors and metadata show it.
            load: Makes the connector, in a thread, since it imports heavy libraries.
            warn: Takes what a user should know though the run goes on.
            max_concurrency: How many calls it gets at once, None = any number.
        """
        self.mode = mode
        self.address = address
        self.label = f"mcp_{mode} {address}"
        self._load = load
        self._warn = warn
        self._limit = max_concurrency
        self._slots = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        self._connector: Connector | None = None
        self._connection: Connection | None = None
        self._connections: set[Connection] = set()
        self._opening: asyncio.Task[Connection] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    async def tools(self) -> Sequence[McpTool]:
        """The tools that the server lists; it is opened for that.

        Raises:
            SetupError: it cannot be started or reached.
        """
        return (await self._live()).tools

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        seconds: float | None,
        on_progress: OnProgress,
    ) -> Any:
        """The server's result for a call, as its library has it.

        Args:
            name: The tool's own name.
            arguments: Its arguments.
            seconds: Time until the call is given up, None = never. The wait for the server's
                `max_concurrency` counts by itself.
            on_progress: Takes what the server says meanwhile.

        Raises:
            ToolFailed: the server refused the call, failed, or is gone.
            ToolTimeout: it did not answer in time; whether it did the work is unknown.
        """
        async with self._slot(name, seconds):
            for attempt in (1, 2):
                connection = await self._for_call(name)
                limit = asyncio.timeout(seconds)

                async def work(link: Link) -> Any:
                    return await link.call(name, arguments, on_progress)

                try:
                    async with limit:
                        return await connection.run(work)
                # A boundary of a tool call: whatever the server or its library does wrong.
                except Exception as error:
                    if limit.expired():
                        raise ToolTimeout(
                            f"{name} of {self.label} did not answer within {seconds:g} s;"
                            " whether it did its work is unknown"
                        ) from error
                    failure = await connection.link.explain_call(error, name)
                    if failure.is_lost:
                        self._retire(connection)
                    if not failure.was_refused or attempt > 1:
                        raise failure.error from error
        raise AssertionError  # each second attempt returns or raises

    async def aclose(self) -> None:
        """Close every connection; in bounded time, and also where the caller is cancelled."""
        self._closed = True
        if self._opening is not None:
            self._opening.cancel()
        for connection in self._connections:
            connection.stop()
        owners = [connection.owner for connection in self._connections]
        await finished([*owners, *([self._opening] if self._opening else [])])

    async def _live(self) -> Connection:
        """An open connection; whoever comes while one is being opened waits for that one."""
        loop = asyncio.get_running_loop()
        if self._loop is not None and self._loop is not loop:
            raise SetupError(f"{self.label} was opened in another event loop")
        self._loop = loop
        if self._connection is not None and self._connection.is_usable:
            return self._connection
        if self._closed:
            raise SetupError(f"{self.label} is closed: its run is over")
        if self._opening is None:
            self._opening = asyncio.create_task(self._open(), name="devall-mcp-open")
            self._opening.add_done_callback(self._opened)
        # Shielded: one node that is cancelled must not take the server from another.
        return await asyncio.shield(self._opening)

    def _opened(self, task: asyncio.Task[Connection]) -> None:
        self._opening = None
        if not task.cancelled():
            task.exception()  # looked at: nobody may be left to do so

    async def _open(self) -> Connection:
        if self._connector is None:
            self._connector = await in_thread(self._load, "devall-mcp-import")
        connector = self._connector
        loop = asyncio.get_running_loop()
        deadline = loop.time() + connector.startup_timeout
        attempt = 0
        earlier: OpenFailedError | None = None
        while True:
            attempt += 1
            connection = Connection(connector.link(), self._warn)
            self._connections.add(connection)
            connection.owner.add_done_callback(
                lambda _, which=connection: self._connections.discard(which)
            )
            try:
                await connection.opened(deadline - loop.time())
            except OpenFailedError as failed:
                wait = connector.retry_after(failed.cause, attempt)
                if isinstance(failed.cause, TimeoutError) and earlier is not None:
                    failed = earlier  # what it said while there was time says more
                if wait is None or loop.time() + wait >= deadline:
                    raise failed.told from failed.cause
                earlier = failed
                await asyncio.sleep(wait)
            else:
                self._connection = connection
                return connection

    async def _for_call(self, name: str) -> Connection:
        try:
            return await self._live()
        except SetupError as error:
            hint = f" ({error.hint})" if error.hint else ""
            raise ToolFailed(f"{name} cannot be called: {self.label}: {error}{hint}") from error

    def _retire(self, connection: Connection) -> None:
        if self._connection is connection:
            self._connection = None
        connection.retire()

    @contextlib.asynccontextmanager
    async def _slot(self, name: str, seconds: float | None) -> AsyncGenerator[None]:
        """One of the calls that the server takes at once."""
        if self._slots is None:
            yield
            return
        try:
            async with asyncio.timeout(seconds):
                await self._slots.acquire()
        except TimeoutError as error:
            raise ToolTimeout(
                f"{self.label} is busy: for {seconds:g} s none of its {self._limit} calls at once"
                f" came to an end, and {name} was not called"
            ) from error
        try:
            yield
        finally:
            self._slots.release()
