"""MCP servers that are started here and spoken to over their stdin and stdout."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from devall.config.tools import McpLocalConfig
from devall.core.errors import SetupError, ToolFailed
from devall.core.messages import JsonValue
from devall.tools.mcp.connection import ConnectionLostError
from devall.tools.mcp.errors import describe, is_closed
from devall.tools.mcp.lenient import PROBE
from devall.tools.mcp.link import Caller, CallFailure, Listing
from devall.tools.mcp.lists import KeptList
from devall.tools.mcp.log import ServerLog
from devall.tools.mcp.pipes import PipeTransport
from devall.tools.mcp.process import ServerProcess, environment
from devall.tools.mcp.session import AUTO, LEGACY, MODES, Conversation
from devall.watchdog import Watchdog

LAST_WORDS = 0.5
"""Seconds that a server whose pipe has closed gets to end, so that its exit code is known."""


class LocalConnector:
    """Starts a server, and remembers how it likes to be spoken to."""

    def __init__(
        self,
        config: McpLocalConfig,
        folder: str | None,
        address: str,
        watchdog: Watchdog,
        log: Path | None,
        redact: Callable[[str], str],
        warn: Callable[[str], None],
        kept: KeptList,
    ) -> None:
        """Make a connector; nothing is started yet.

        Args:
            config: How the server is started.
            folder: Its working directory, None = ours.
            address: Its command line, as errors show it.
            watchdog: Ends it where we cannot.
            log: The file for what it writes beside the protocol, None = nowhere.
            redact: Applied to what it writes before it is kept.
            warn: Takes what a user should know.
            kept: Where its list of tools is kept.
        """
        self.config = config
        self.kept = kept
        self.folder = folder
        self.label = f"mcp_local {address}"
        self.watchdog = watchdog
        self.log_file = log
        self.redact = redact
        self.warn = warn
        self.mode = MODES[config.protocol]
        self.newest: LocalLink | None = None
        self.warned_of_noise = False
        self.warned_of_era = False
        self._said: set[str] = set()

    @property
    def startup_timeout(self) -> float:
        """Seconds until the server must be ready, a second start included."""
        return self.config.startup_timeout

    def link(self) -> LocalLink:
        """A link that will start the server."""
        self.newest = LocalLink(self)
        return self.newest

    def say(self, text: str) -> None:
        """Tell a user what is odd about the server, once."""
        if text not in self._said:
            self._said.add(text)
            self.warn(f"{self.label} {self.redact(text)}")

    def retry_after(self, error: BaseException, attempt: int) -> float | None:
        """At once, and once, where a server may have ended for the discovery request.

        One that had not read a byte has ended for another reason.
        """
        if self.mode != AUTO or attempt > 1 or isinstance(error, OSError | TimeoutError):
            return None
        if not is_closed(error) or (self.newest is not None and not self.newest.had_read()):
            return None
        self.mode = LEGACY
        return 0


class EndedError(Exception):
    """The server ended before it was ready."""


class LocalLink:
    """One life of a server's process."""

    def __init__(self, connector: LocalConnector) -> None:
        self._connector = connector
        self._log = ServerLog(connector.log_file, connector.redact)
        self._process: ServerProcess | None = None
        self._transport: PipeTransport | None = None
        self._conversation: Conversation | None = None
        self._mode = connector.mode
        self._watching: asyncio.Task[None] | None = None
        self.on_changed: Callable[[], None] = lambda: None

    @property
    def protocol(self) -> str:
        """The revision of the protocol that was agreed on; empty before."""
        return self._conversation.protocol if self._conversation else ""

    def had_read(self) -> bool:
        """Whether the server, which has ended, had taken any of its input."""
        return self._process is not None and self._process.has_read()

    async def open(self) -> Listing:
        """Start the server, wait for its log if that is asked for, and shake hands.

        Raises:
            Exception: whatever went wrong; `explain` tells it.
        """
        config = self._connector.config
        self._transport = transport = PipeTransport(self._on_noise)
        self._process = process = await ServerProcess.start(
            config.command,
            config.args,
            cwd=self._connector.folder,
            env=environment(config.env, inherit=config.inherit_env),
            watchdog=self._connector.watchdog,
            grace=config.shutdown_grace,
            on_stdout=transport.feed,
            on_stderr=self._on_stderr,
        )
        transport.write = process.write
        if config.wait_for_log is not None:
            await self._wait_for_log(process, config.wait_for_log)
        self._watching = asyncio.create_task(self._end_when_ended(process, transport))
        self._conversation = conversation = Conversation(
            transport,
            self._mode,
            log=self._log.add,
            say=self._connector.say,
            probe=min(PROBE, config.startup_timeout / 3),
            has_read=process.has_read,
        )
        conversation.on_changed = self._on_changed
        known = self._connector.kept.find()
        listing = await conversation.open(known)
        if known is None:
            self._connector.kept.keep(listing)
        self._say_how(conversation)
        return listing

    async def lost(self) -> None:
        """Return once the process is gone."""
        if self._process is not None:
            await self._process.ended()

    async def relist(self) -> Listing:
        """The tools as they are now."""
        if self._conversation is None:
            raise ConnectionLostError
        listing = await self._conversation.list()
        self._connector.kept.keep(listing)
        return listing

    async def close(self) -> list[str]:
        """End the conversation, then the process and its group."""
        troubles: list[str] = []
        if self._conversation is not None:
            try:
                await self._conversation.close()
            # The work is done: nothing that goes wrong now may spoil it.
            except Exception as error:  # noqa: BLE001
                troubles.append(f"closing {self._connector.label}: {describe(error)}")
        if self._watching is not None:
            self._watching.cancel()
        if self._transport is not None:
            self._transport.release()
        if self._process is not None:
            await self._process.stop(self._connector.config.shutdown_grace)
        self._log.close()
        return troubles

    async def call(self, name: str, arguments: Mapping[str, JsonValue], caller: Caller) -> Any:
        """The server's result for a call."""
        if self._conversation is None:
            raise ConnectionLostError
        return await self._conversation.call(name, arguments, caller)

    async def explain(self, error: BaseException) -> SetupError:
        """What kept the server from being ready."""
        config = self._connector.config
        if isinstance(error, NotADirectoryError):
            return SetupError(str(error), hint="check `cwd`: it is relative to the workflow file")
        if isinstance(error, FileNotFoundError):
            return SetupError(
                f"command `{config.command}` is not found",
                hint="install it, or give its full path in `command`",
            )
        if isinstance(error, OSError) and not isinstance(error, TimeoutError):
            return SetupError(f"command `{config.command}` cannot be started: {error}")
        if isinstance(error, TimeoutError):
            what = f"was not ready within its startup_timeout of {config.startup_timeout:g} s"
            if config.wait_for_log is not None:
                what += f" (wait_for_log: {config.wait_for_log})"
            hint = "raise `startup_timeout`, or run the command by hand to see what it waits for"
            return SetupError(what + self._said(), hint=hint)
        end = await self._end(error)
        if end:
            return SetupError(
                f"{end} before it was ready" + self._said(),
                hint="run the command by hand to see what it needs",
            )
        return SetupError(f"cannot be spoken to: {describe(error)}" + self._said())

    async def explain_call(self, error: Exception, tool: str) -> CallFailure:
        """What made a call fail."""
        gone = isinstance(error, ConnectionLostError) or (
            is_closed(error) and self._process is not None and self._process.has_ended
        )
        end = await self._end(error) if gone else ""
        label = self._connector.label
        if not gone:
            return CallFailure(ToolFailed(f"{tool} of {label}: {describe(error)}"))
        text = f"{label} {end or 'closed its output'} during {tool}; outcome unknown"
        return CallFailure(ToolFailed(f"{text}{self._said()}"), is_lost=True)

    async def _wait_for_log(self, process: ServerProcess, pattern: str) -> None:
        found = asyncio.create_task(self._log.wait_for(pattern))
        ended = asyncio.create_task(process.ended())
        try:
            await asyncio.wait({found, ended}, return_when=asyncio.FIRST_COMPLETED)
            if not found.done():
                raise EndedError
        finally:
            found.cancel()
            ended.cancel()

    @staticmethod
    async def _end_when_ended(process: ServerProcess, transport: PipeTransport) -> None:
        """Wake who waits for an answer of a process that is gone."""
        await process.ended()
        transport.end()

    async def _end(self, error: BaseException) -> str:
        """How the process ended, if it did."""
        if self._process is None:
            return ""
        is_over = is_closed(error) or isinstance(error, EndedError | ConnectionLostError)
        if is_over and await self._process.exited(LAST_WORDS):
            await self._process.silent()
        return self._process.describe_end()

    def _said(self) -> str:
        tail = self._log.tail()
        return f"; its last words:\n{tail}" if tail else "; it wrote nothing to stderr"

    def _say_how(self, conversation: Conversation) -> None:
        connector = self._connector
        ignored = conversation.probe_was_ignored and conversation.is_legacy
        restarted = self._mode == LEGACY and connector.config.protocol == AUTO
        if not (ignored or restarted) or connector.warned_of_era:
            return
        connector.mode = LEGACY
        connector.warned_of_era = True
        did = "did not answer" if ignored else "ended at"
        connector.warn(
            f"{connector.label} {did} the discovery request of the newer protocol, and is spoken"
            " to by the older one; `protocol: legacy` in its config saves the detour"
        )

    def _on_changed(self) -> None:
        self._connector.kept.forget()
        self.on_changed()

    def _on_stderr(self, line: bytes) -> None:
        self._log.add(line.decode("utf-8", "replace"))

    def _on_noise(self, line: bytes) -> None:
        """Keep a line of stdout that is no protocol, and say once that there was one."""
        text = line.decode("utf-8", "replace")
        self._log.add(text)
        if not self._connector.warned_of_noise:
            self._connector.warned_of_noise = True
            self._connector.warn(
                f"{self._connector.label} writes to its stdout what is no protocol, which is passed"
                f" over: {self._connector.redact(text)[:200]!r}"
            )
