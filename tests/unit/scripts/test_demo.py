"""`make demo` with a key: the real server, the real workflow, a scripted model."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

from devall.testing.chat_server import ChatServer

MODEL = "gpt-4o-mini"
DRAW = {"tool_calls": [{"name": "rand_num", "arguments": {"a": 7, "b": 7}}]}
SCRIPT = {MODEL: [DRAW, "O seven, you lucky number 7!", "It praises the seven too much."]}


def demo(project: Path, server: ChatServer) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, project / "scripts" / "demo.py"],
        env=os.environ | server.env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def test_the_demo_shows_the_call_the_poem_and_the_critique(project: Path):
    with ChatServer(SCRIPT, strict=True) as server, demo(project, server) as process:
        answer, told = process.communicate(timeout=50)
        assert process.returncode == 0, told
    assert answer == "It praises the seven too much.\n"
    assert "rand_num(a=7, b=7)" in told
    assert "O seven, you lucky number 7!" in told
    assert server.calls[MODEL][0]["tool_choice"] == "required"
    assert "tools" not in server.calls[MODEL][1]


def test_the_demo_takes_a_free_port_where_its_own_is_taken(project: Path):
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            squatter.bind(("127.0.0.1", 8001))
            squatter.listen()
        except OSError:
            pass  # somebody else has it: as good
        with ChatServer(SCRIPT, strict=True) as server, demo(project, server) as process:
            answer, told = process.communicate(timeout=50)
            assert process.returncode == 0, told
    assert answer == "It praises the seven too much.\n"
    assert "no server on port 8001, a free one instead" in told


def test_a_demo_that_is_stopped_stops_the_server(project: Path):
    slow = {MODEL: [{"text": "never", "delay": 60}]}
    with ChatServer(slow) as server, demo(project, server) as process:
        server.wait_until(lambda: server.active == 1, seconds=50)
        process.terminate()
        _, told = process.communicate(timeout=15)
        assert process.returncode == 143, told
