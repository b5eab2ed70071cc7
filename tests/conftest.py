"""What all tests share: a clean environment, free ports, and a guard against what outlives a test."""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar

import pytest
from hypothesis import settings

T = TypeVar("T")

PROJECT = Path(__file__).resolve().parents[1]
PATIENCE = 3.0
"""Seconds that something may take to end after its test."""

# Times depend on what else the machine does: a slow example is no failing example.
settings.register_profile("devall", deadline=None, print_blob=True)
settings.load_profile("devall")

# A job in the background ignores these, and so would every process that a test starts.
for number, handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, handler)

if sys.platform == "linux":
    # Orphans become children of the test process, so that the guard sees grandchildren too.
    PR_SET_CHILD_SUBREAPER = 36
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


@pytest.fixture
def project() -> Path:
    """The root of the checkout."""
    return PROJECT


@pytest.fixture
def free_port() -> int:
    """A loopback port on which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as opened:
        return int(opened.getsockname()[1])


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def write(workspace: Path) -> Callable[[str, str], Path]:
    """Writes a file, indentation taken away; gives its name relative to the folder."""

    def write_file(name: str, text: str) -> Path:
        place = workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(dedent(text), encoding="utf-8")
        return Path(name)

    return write_file


@pytest.fixture
def otlp(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A receiver of OTLP, which this process's environment names."""
    from tests.otlp_receiver import Receiver

    with Receiver() as receiver:
        for name, value in receiver.env.items():
            monkeypatch.setenv(name, value)
        yield receiver


@pytest.fixture(autouse=True)
def no_settings_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, endpoint or option of the machine reaches a test."""
    for name in os.environ:
        if name in {"API_KEY", "BASE_URL", "MODEL", "MCP_URL", "TRACEPARENT"} or name.startswith(
            ("DEVALL_", "GITHUB_", "OPENAI_", "GEMINI_", "GOOGLE_API", "FASTMCP_", "MEM0_", "OTEL_")
        ):
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def nothing_outlives_the_test() -> Iterator[None]:
    """A test fails that leaves a child process, a thread or an open socket."""
    processes, threads, sockets = _children(), set(threading.enumerate()), _sockets()
    yield
    left = _what_stays(lambda: _children() - processes)
    names = [f"{pid} {_command(pid)}" for pid in left]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not names, f"child processes outlive the test: {names}"
    alive = _what_stays(lambda: set(threading.enumerate()) - threads)
    assert not alive, f"threads outlive the test: {alive}"
    opened = _what_stays(lambda: _sockets() - sockets)
    assert not opened, f"sockets outlive the test: {opened}"


def _what_stays(look: Callable[[], set[T]]) -> set[T]:
    """What is still there when there was time enough to go."""
    end = time.monotonic() + PATIENCE
    while (left := look()) and time.monotonic() < end:
        gc.collect()
        time.sleep(0.02)
    return left


def _children() -> set[int]:
    """Ids of the living child processes."""
    found: set[int] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        found.update(map(int, _read(task).split()))
    # A zombie has ended; whoever started it will collect it.
    return {pid for pid in found if _read(Path(f"/proc/{pid}/stat")).rpartition(")")[2][1:2] != "Z"}


def _sockets() -> set[str]:
    """The open sockets of this process."""
    links: set[str] = set()
    for entry in Path("/proc/self/fd").glob("*"):
        try:
            links.add(str(entry.readlink()))
        except OSError:  # closed in the meantime
            continue
    return {link for link in links if link.startswith("socket:")}


def _command(pid: int) -> str:
    return _read(Path(f"/proc/{pid}/cmdline")).replace("\0", " ").strip()


def _read(path: Path) -> str:
    """A file of /proc; empty where the process has gone."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
