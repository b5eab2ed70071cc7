"""`devall mcp login`, and runs that use what it keeps; the test plays the browser."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from devall.cli.outputs import McpLoginOutput, RunOutput
from devall.config.tools import McpRemoteConfig
from devall.testing.chat_server import ChatServer
from devall.testing.login_server import CODE, DEVICE, REFRESH, LoginServer, visit
from devall.tools.mcp.login import login
from devall.tools.mcp.logins import LoginPage

WORKFLOW = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: greeter
            tooling: [{type: mcp_remote, config: {server: "%s", auth: oauth}}]
      edges: []
"""
SCRIPT = {"greeter": [{"tool_calls": [{"name": "hello", "arguments": {}}]}, "They say hi."]}
# Ctrl-C reaches the command even where the tests themselves were started to ignore it.
_WITH_INTERRUPTS = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "os.execv(sys.executable, [sys.executable, '-m', 'devall', *sys.argv[1:]])"
)
Start = Callable[..., "Command"]


class Command:
    """A command that runs without a terminal, and what it says on standard error."""

    def __init__(self, workspace: Path, env: Mapping[str, str], *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WITH_INTERRUPTS, *arguments],
            cwd=workspace,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            encoding="utf-8",
        )
        self.said = ""

    def says(self, pattern: str) -> re.Match[str]:
        """Where a line of standard error has what is looked for."""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.said += line
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"{pattern!r} was not said, but {self.said!r}")

    def ends(self, code: int) -> str:
        """What it wrote to standard output."""
        out, err = self.process.communicate(timeout=20)
        self.said += err
        assert self.process.returncode == code, out + self.said
        return out


@pytest.fixture
def env(workspace: Path) -> dict[str, str]:
    """An environment without a screen, and with a folder for configuration of its own."""
    left = {"DISPLAY", "WAYLAND_DISPLAY", "BROWSER"}
    found = {name: value for name, value in os.environ.items() if name not in left}
    return found | {"XDG_CONFIG_HOME": str(workspace / "config")}


@pytest.fixture
def start(workspace: Path, env: dict[str, str]) -> Iterator[Start]:
    """Starts a command: `start("mcp", "login", "hi.yaml")`."""
    running: list[Command] = []

    def begin(*arguments: str, **more: str) -> Command:
        running.append(Command(workspace, env | more, *arguments))
        return running[-1]

    yield begin
    for command in running:
        if command.process.poll() is None:
            command.process.kill()
            command.process.communicate()


def write(workspace: Path, server: LoginServer) -> None:
    (workspace / "hi.yaml").write_text(WORKFLOW % server.url, encoding="utf-8")


def run(start: Start, code: int) -> Command:
    """A whole run of the workflow."""
    with ChatServer(SCRIPT) as chat:
        command = start("run", "hi.yaml", "--task", "Say hi, please.", **chat.env)
        out = command.ends(code)
    assert out == ("They say hi.\n" if code == 0 else "")
    return command


def logged_in(workspace: Path, server: LoginServer) -> Path:
    """Log in as a person with a code; where that is kept."""
    folder = workspace / "config" / "devall" / "mcp"

    def show(page: LoginPage) -> None:
        server.type_code(page.code)

    config = McpRemoteConfig(server=server.url, auth="oauth")
    asyncio.run(login(config, show, folder=folder, by_code=True))
    return folder


def test_a_run_without_terminal_and_login_says_how_to_log_in(start: Start, workspace: Path) -> None:
    with LoginServer() as server:
        write(workspace, server)
        failed = run(start, 4)
        assert "wants a login, and there is no terminal" in failed.said
        assert "devall mcp login FILE [--node ID]" in failed.said
        assert server.clients == {}


def test_a_login_by_the_printed_page_is_kept_for_the_user_alone_and_serves_a_run(
    start: Start, workspace: Path
) -> None:
    with LoginServer() as server:
        write(workspace, server)
        command = start("mcp", "login", "hi.yaml")
        page = command.says(r"open (http://\S+/authorize\?\S+)")[1]
        assert "successful" in visit(page)
        assert command.ends(0) == f"{server.url}: logged in, 1 tool\n"
        assert command.said.splitlines() == [f"logging in to {server.url}", f"open {page}"]
        folder = workspace / "config" / "devall" / "mcp"
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
        run(start, 0)
        assert server.grants == [CODE]


def test_a_login_that_has_expired_is_refreshed_and_one_that_is_refused_ends_the_run(
    start: Start, workspace: Path
) -> None:
    with LoginServer(device=True) as server:
        write(workspace, server)
        folder = logged_in(workspace, server)
        (expiry,) = folder.glob("mcp-oauth-token-expiry-*")
        kept: dict[str, Any] = json.loads(expiry.read_text())
        kept["value"]["expires_at"] = time.time() - 10
        expiry.write_text(json.dumps(kept))
        server.end_tokens()
        run(start, 0)
        assert server.grants == [DEVICE, REFRESH]

        server.end_tokens()
        server.refuses.add(REFRESH)
        failed = run(start, 4)
    assert "wants a new login: the one that is kept was refused" in failed.said
    assert "devall mcp login FILE [--node ID]" in failed.said


def test_a_code_is_shown_where_there_is_no_browser(start: Start, workspace: Path) -> None:
    with LoginServer(device=True) as server:
        write(workspace, server)
        command = start("mcp", "login", "hi.yaml", "--node", "A")
        found = command.says(r"open (\S+) on any device and type the code (\S+)$")
        assert found[1] == f"{server.base}/device"
        server.type_code(found[2])
        assert command.ends(0) == f"{server.url}: logged in, 1 tool\n"
        assert server.grants == [DEVICE]


def test_device_where_the_server_has_no_codes_says_so_and_prints_the_page(
    start: Start, workspace: Path
) -> None:
    with LoginServer() as server:
        write(workspace, server)
        command = start("mcp", "login", "hi.yaml", "--device")
        page = command.says(r"open (http://\S+/authorize\?\S+)")[1]
        assert "gives no codes for other devices" in command.said
        visit(page)
        command.ends(0)


@pytest.mark.parametrize("device", [True, False])
def test_ctrl_c_ends_a_login_that_waits_for_a_person(
    start: Start, workspace: Path, device: bool
) -> None:
    with LoginServer(device=device) as server:
        write(workspace, server)
        command = start("mcp", "login", "hi.yaml")
        command.says("open http")
        began = time.monotonic()
        command.process.send_signal(signal.SIGINT)
        assert command.ends(130) == ""
        assert time.monotonic() - began < 5
        assert "Traceback" not in command.said
        assert server.grants == []


def test_a_login_is_told_as_its_schema_says(start: Start, workspace: Path) -> None:
    with LoginServer() as server:
        write(workspace, server)
        command = start("mcp", "login", "hi.yaml", "--json")
        visit(command.says(r"open (http://\S+/authorize\?\S+)")[1])
        out = command.ends(0)
    assert json.loads(out) == {"servers": [{"url": server.url, "tools": 1}]}
    TypeAdapter(McpLoginOutput).validate_json(out, strict=True)
    failed = start("mcp", "login", "none.yaml", "--json").ends(2)
    TypeAdapter(RunOutput).validate_json(failed, strict=True)
