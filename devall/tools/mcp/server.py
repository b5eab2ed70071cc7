"""One supervised MCP server: opened when first needed, and again after it was lost."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from typing import Any, Literal

from devall.core.errors import SetupError, ToolError, ToolFailed, ToolTimeout
from devall.core.messages import JsonValue
from devall.tools.mcp.connection import Connection, OpenFailedError, finished
from devall.tools.mcp.elicitation import Elicitation, Reply
from devall.tools.mcp.link import Caller, CallFailure, Connector, Link, McpTool, Place
from devall.tools.threads import in_thread

MOST_LISTS = 2
"""How often a list is asked for in one go; a server may change it at every look."""


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
        *,
        redact: Callable[[str], str] = lambda text: text,
        max_concurrency: int | None = None,
    ) -> None:
        """Make a server; nothing is started or imported yet.

        Args:
            mode: Whether it is reached or started here.
            address: Its URL or command line, as errors and metadata show it.
            load: Makes the connector, in a thread, since it imports heavy libraries.
            warn: Takes what a user should know though the run goes on.
            redact: Takes secrets out of what the server says of failures.
            max_concurrency: How many calls it gets at once, None = any number.
        """
        self.mode = mode
        self.address = address
        self.label = f"mcp_{mode} {address}"
        self.redact = redact
        self.changes = 0
        """How often its tools became others, as far as is known."""
        self._load = load
        self._warn = warn
        self._limit = max_concurrency
        self._slots = asyncio.Semaphore(max_concurrency) if max_concurrency else None
        self._running: dict[str, int] = {}
        """Calls under way by tool, for the error of one that finds no slot."""
        self._connector: Connector | None = None
        self._connection: Connection | None = None
        self._connections: set[Connection] = set()
        self._opening: asyncio.Task[Connection] | None = None
        self._listing = asyncio.Lock()
        self._listed: tuple[McpTool, ...] | None = None
        self._is_stale = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False

    @property
    def protocol(self) -> str:
        """The revision of the protocol that is spoken; empty while it is not open."""
        return self._connection.link.protocol if self._connection else ""

    async def tools(self) -> Sequence[McpTool]:
        """The tools that the server has now; it is opened for that.

        Where it said that they are others and does not tell them, the known ones stand.

        Raises:
            SetupError: it cannot be started or reached.
        """
        connection = await self._live()
        async with self._listing:
            for _ in range(MOST_LISTS):
                if not (self._is_stale and connection.is_usable):
                    break
                self._is_stale = False

                async def relist(link: Link) -> Any:
                    return await link.relist()

                try:
                    async with asyncio.timeout(self._patience):
                        connection.listing = await connection.run(relist)
                # A boundary, as that of a call: whatever the server or its library does wrong.
                except Exception as error:  # noqa: BLE001
                    failure = await connection.link.explain_call(error, "tools/list")
                    told = self.redact(str(failure.error))
                    self._warn(f"{self.label} has other tools, and does not list them: {told}")
                self._note(connection)
        return connection.listing.tools

    async def call(
        self,
        name: str,
        arguments: Mapping[str, JsonValue],
        *,
        seconds: float | None,
        caller: Caller,
        is_repeatable: bool = False,
    ) -> Any:
        """The server's result for a call, as its library has it.

        Args:
            name: The tool's own name.
            arguments: Its arguments.
            seconds: Time until the call is given up, None = never; progress starts it anew,
                and it stands still while a human is asked. The wait for the server's
                `max_concurrency` counts by itself.
            caller: Hears of progress, and answers questions.
            is_repeatable: Whether the call is made once more where its outcome is unknown.

        Raises:
            ToolFailed: the server refused the call, failed, or is gone.
            ToolTimeout: it did not answer in time; whether it did the work is unknown.
        """
        async with self._slot(name, seconds):
            for attempt in (1, 2):
                failure, cause = CallFailure(ToolFailed("")), None
                connection = await self._for_call(name)
                limit = asyncio.timeout(seconds)
                patient = _Patient(caller, limit, seconds)

                async def work(link: Link, who: Caller = patient) -> Any:
                    return await link.call(name, arguments, who)

                try:
                    async with limit:
                        return await connection.run(work)
                # A boundary of a tool call: whatever the server or its library does wrong.
                except Exception as error:  # noqa: BLE001
                    cause = error
                    if limit.expired():
                        failure = CallFailure(self._timed_out(name, seconds, attempt))
                    else:
                        failure = await connection.link.explain_call(error, name)
                    if failure.is_lost:
                        self._retire(connection)
                again = failure.was_refused or (
                    is_repeatable and (failure.is_lost or limit.expired())
                )
                if attempt > 1 or not again:
                    raise self._redacted(failure.error) from cause
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

    @property
    def _patience(self) -> float | None:
        return self._connector.startup_timeout if self._connector else None

    def _timed_out(self, name: str, seconds: float | None, attempt: int) -> ToolTimeout:
        twice = ", and once more when it was called again" if attempt > 1 else ""
        return ToolTimeout(
            f"{name} of {self.label} did not answer within {seconds:g} s{twice};"
            " outcome unknown: it may have done its work, or be doing it still"
        )

    def _redacted(self, error: ToolError) -> ToolError:
        text = self.redact(str(error))
        return error if text == str(error) else type(error)(text, hint=self.redact(error.hint))

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
            link = connector.link()
            link.on_changed = self._on_changed
            connection = Connection(link, self._warn)
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
                self._note(connection)
                return connection

    def _note(self, connection: Connection) -> None:
        """Count a change where the list is not the one that was known."""
        tools = connection.listing.tools
        if self._listed is not None and tools != self._listed:
            self.changes += 1
        self._listed = tools

    def _on_changed(self) -> None:
        self._is_stale = True

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
            busy = ", ".join(sorted(self._running))
            raise ToolTimeout(
                f"{self.label} is busy with {busy}: for {seconds:g} s none of its {self._limit}"
                f" calls at once came to an end, and {name} was not called"
            ) from error
        self._running[name] = self._running.get(name, 0) + 1
        try:
            yield
        finally:
            self._slots.release()
            self._running[name] -= 1
            if not self._running[name]:
                del self._running[name]


class _Patient:
    """A caller whose time limit starts anew with progress, and stands still for a human."""

    def __init__(self, caller: Caller, limit: asyncio.Timeout, seconds: float | None) -> None:
        self._caller = caller
        self._limit = limit
        self._seconds = seconds
        self._asked = 0

    def progress(self, progress: float, total: float | None, message: str) -> None:
        self._start_anew()
        self._caller.progress(progress, total, message)

    @property
    def place(self) -> Place:
        return self._caller.place

    async def elicit(self, question: Elicitation, among: Sequence[Place] = ()) -> Reply:
        with self._stopped():
            return await self._caller.elicit(question, among)

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        with self._stopped(), self._caller.held():
            yield

    @contextlib.contextmanager
    def _stopped(self) -> Generator[None]:
        self._asked += 1
        if self._seconds is not None and not self._limit.expired():
            # The call may be over by the time its server asks for another.
            with contextlib.suppress(RuntimeError):
                self._limit.reschedule(None)
        try:
            yield
        finally:
            self._asked -= 1
            self._start_anew()

    def _start_anew(self) -> None:
        if self._seconds is not None and not self._asked and not self._limit.expired():
            now = asyncio.get_running_loop().time()
            # The call may be over, and the limit with it, by the time a notification is read.
            with contextlib.suppress(RuntimeError):
                self._limit.reschedule(now + self._seconds)
