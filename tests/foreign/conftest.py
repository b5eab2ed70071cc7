"""Servers that others wrote, and a run of one agent with them."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.app import RunResult
from devall.core.events import Event
from devall.loading.loader import load_mapping
from devall.testing.chat_server import ChatServer

PROJECT = Path(__file__).resolve().parents[2]
PLACE = PROJECT / ".venv/foreign"
STARTUP = 30
"""Seconds that a server gets: Node and Python start slowly on a machine that does much else."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """Where the servers are."""

    folder: Path

    @property
    def node(self) -> str:
        return str(self.folder / "node_modules/.bin/node")

    @property
    def conformance(self) -> list[str]:
        """The command of the protocol's conformance suite."""
        return [self.node, self._script("conformance")]

    def npm(self, name: str, *args: str, **env: str) -> dict[str, Any]:
        """A source of tools: a server from npm over stdio."""
        return self._local(self.node, [self._script(f"server-{name}"), *args], env)

    def python(self, name: str, *args: str) -> dict[str, Any]:
        """A source of tools: a Python server over stdio."""
        return self._local(str(self.folder / f"python/bin/mcp-server-{name}"), args, {})

    def everything(self, transport: str) -> list[str]:
        """The command of a server-everything over HTTP."""
        return [self.node, self._script("server-everything"), transport]

    def _script(self, package: str) -> str:
        return str(self.folder / f"node_modules/@modelcontextprotocol/{package}/dist/index.js")

    def _local(self, command: str, args: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
        config = {"command": command, "args": list(args), "env": dict(env)}
        return {"type": "mcp_local", "config": config | {"startup_timeout": STARTUP}}


@pytest.fixture(scope="session")
def foreign() -> Foreign:
    """The servers; `make` has installed them before, else that is done here."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # the tests run in several processes
        if not (PLACE / ".installed").exists():
            done = subprocess.run([PROJECT / "scripts/foreign.sh"], capture_output=True, text=True)
            assert done.returncode == 0, done.stdout + done.stderr
    if not (PLACE / ".installed").exists():
        pytest.skip((PLACE / ".missing").read_text(encoding="utf-8").strip())
    return Foreign(PLACE)


@dataclass(slots=True)
class Conversation:
    """A run of one agent, as its model saw it."""

    result: RunResult
    bodies: list[dict[str, Any]]
    events: list[Event] = field(default_factory=list)

    @property
    def offered(self) -> list[str]:
        """The names of the tools in the last request."""
        return [tool["function"]["name"] for tool in self.bodies[-1]["tools"]]

    @property
    def results(self) -> list[str]:
        """What the tools said, in the order of the calls."""
        return [m["content"] for m in self.bodies[-1]["messages"] if m["role"] == "tool"]


Call = tuple[str, dict[str, Any]]


@pytest.fixture
def converse(workspace: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Runs an agent whose model calls tools: each list is a turn, one at a time within it."""

    async def run(
        sources: Sequence[Mapping[str, Any]], *turns: Sequence[Call], **options: Any
    ) -> Conversation:
        config = {"provider": "openai", "name": "m", "parallel_tool_calls": 1}
        agent = {"id": "A", "type": "agent", "config": config | {"tooling": list(sources)}}
        graph = {"start": "A", "nodes": [agent], "edges": []}
        replies: list[Any] = [
            {"tool_calls": [{"name": name, "arguments": given} for name, given in turn]}
            for turn in turns
        ]
        events: list[Event] = []
        async with ChatServer({"m": [*replies, "done"]}, strict=True) as server:
            for name, value in server.env.items():
                monkeypatch.setenv(name, value)
            loaded = load_mapping({"graph": graph}, folder=workspace)
            options |= {"on_event": events.append, "logs_dir": workspace / "logs"}
            result = await devall.run(loaded, **options)
            assert result.answer == "done", result.outcome
            return Conversation(result, list(server.calls["m"]), events)

    return run


@pytest.fixture
def started(workspace: Path) -> Iterator[Callable[..., str]]:
    """Starts a program, and gives what a pattern finds in its stderr; it ends with the test."""
    running: list[subprocess.Popen[bytes]] = []

    def start(command: Sequence[str], pattern: str, **env: str) -> str:
        log = workspace / f"stderr-{len(running)}.txt"
        with log.open("wb") as file:
            process = subprocess.Popen(
                command,
                cwd=workspace,
                env=os.environ | env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
            )
        running.append(process)
        deadline = time.monotonic() + STARTUP
        while not (found := re.search(pattern, log.read_text(encoding="utf-8"))):
            assert process.poll() is None, log.read_text(encoding="utf-8")
            assert time.monotonic() < deadline, log.read_text(encoding="utf-8")
            time.sleep(0.02)
        return found.group()

    yield start
    for process in running:
        process.kill()
        process.wait(8)
