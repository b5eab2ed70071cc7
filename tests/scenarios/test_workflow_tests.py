"""Tests of workflows as their users have them: real runs, a real MCP server, another machine."""

from __future__ import annotations

import base64
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devall.testing.chat_server import ChatServer
from tests.scenarios.conftest import command

SECRET = "s3cr3t-of-the-sea-4711"
FLOW = """\
graph:
  start: A
  end: Join
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: m
        api_key: ${API_KEY}
        role: Answer.
        tooling:
          - type: mcp_local
            prefix: bells
            config:
              command: ${PYTHON}
              args: [server.py]
              cwd: .
              env: {BELL_TOKEN: "${BELL_TOKEN}"}
          - {type: function, config: {tools: [{name: where}]}}
    - {id: B, type: agent, config: {provider: openai, name: n, role: Write code.}}
    - {id: P, type: python}
    - {id: Join, type: agent, config: {provider: openai, name: o, role: Join.}}
  edges: [{from: A, to: B}, {from: B, to: P}, {from: P, to: Join}, {from: A, to: Join, trigger: false}]
"""
SERVER = '''\
import os
from fastmcp import FastMCP

server = FastMCP("bells")


@server.tool
def ring(times: int) -> str:
    """Rings."""
    with open("rung", "a") as log:
        log.write("x")
    return f"ding * {times}, token {os.environ['BELL_TOKEN']}"


server.run("stdio", show_banner=False, log_level="WARNING")
'''
FUNCTIONS = '''\
from devall.tools.context import ToolContext


def where(context: ToolContext) -> str:
    """Where the files are."""
    return str(context.workspace.files)
'''
CALLS = {
    "tool_calls": [
        {"name": "bells_ring", "arguments": {"times": 2}},
        {"name": "where", "arguments": {}},
    ]
}
REPLIES = {"m": [CALLS, "rung"], "n": ["```python\nprint('from code')\n```"], "o": ["all done"]}


@pytest.fixture
def flow(workspace: Path) -> Path:
    """A workflow with a server, a function and code, in a folder of its own."""
    (workspace / "flow.yaml").write_text(FLOW, "utf-8")
    (workspace / "server.py").write_text(SERVER, "utf-8")
    functions = workspace / "functions" / "function_calling"
    functions.mkdir(parents=True)
    (functions / "mine.py").write_text(FUNCTIONS, "utf-8")
    return workspace


@pytest.fixture
def recorded(flow: Path, devall) -> Path:
    """That workflow, and a case of a run of it."""
    with ChatServer(REPLIES, strict=True) as server:
        env = server.env | {"API_KEY": SECRET, "BELL_TOKEN": SECRET, "PYTHON": sys.executable}
        devall("run", "flow.yaml", "--task", "go", env=env, code=0)
        done = devall("test", "add", "last", "bells", env=env, code=0)
    assert done.stderr == ""
    return flow


def test_a_case_goes_to_another_machine_and_passes_there(recorded: Path, tmp_path_factory, devall):
    assert (recorded / "rung").read_text() == "x"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("flow.yaml", "functions", "tests"):
        place = recorded / name
        (shutil.copytree if place.is_dir() else shutil.copy2)(place, elsewhere / name)
    env = {name: value for name, value in os.environ.items() if name != "API_KEY"}
    done = subprocess.run(
        command(["test"]), cwd=elsewhere, env=env, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (recorded / "rung").read_text() == "x"
    assert not (elsewhere / "logs").exists()


def test_no_secret_and_no_path_of_the_machine_is_in_a_case(recorded: Path):
    encoded = base64.b64encode(SECRET.encode()).decode().rstrip("=")
    for file in (recorded / "tests").rglob("*.*"):
        data = file.read_bytes()
        for needle in (SECRET, encoded[:-2], str(recorded), sys.executable):
            assert needle.encode() not in data, (file.name, needle)
    tape = (recorded / "tests/workflows/bells/recording.jsonl").read_text("utf-8")
    assert "ding * 2, token ***" in tape
    assert '"content": "<run>/workspace"' in tape


def test_changed_requests_are_made_with_the_real_server(recorded: Path, devall):
    text = FLOW.replace("role: Answer.", "role: Answer well.")
    (recorded / "flow.yaml").write_text(text, "utf-8")
    done = devall("test", code=7)
    assert "+    content: Answer well." in done.stdout
    replies = {"m": [{"tool_calls": [{"name": "bells_ring", "arguments": {"times": 3}}]}, "rung"]}
    with ChatServer(replies | {"o": ["again"]}, strict=True) as server:
        env = server.env | {"API_KEY": SECRET, "BELL_TOKEN": SECRET, "PYTHON": sys.executable}
        devall("test", "--update", env=env, code=0)
        assert server.unexpected == 0
    assert (recorded / "rung").read_text() == "xx"
    assert SECRET not in (recorded / "tests/workflows/bells/recording.jsonl").read_text("utf-8")
    devall("test", code=0)


HAND = """\
workflow: ../../../flow.yaml
task: go
env: {PYTHON: "%s", BELL_TOKEN: none}
replies:
  A: [{tool_calls: [{name: bells_ring, arguments: {times: 2}}]}, rung]
  B: |
    ```python
    print("from code")
    ```
  o: done
%s
expect:
  answer: done
  nodes: {P: {runs: 1, output: from code}}
  tools: [{name: bells_ring, arguments: {times: 2}}]
"""


@pytest.mark.parametrize("is_scripted", [True, False])
def test_a_server_is_started_only_for_tools_that_the_case_does_not_script(
    flow: Path, devall, is_scripted: bool
):
    case = flow / "tests/workflows/hand/case.yaml"
    case.parent.mkdir(parents=True)
    tools = "tools: {bells_ring: ding}" if is_scripted else ""
    case.write_text(HAND % (sys.executable, tools), "utf-8")
    devall("test", code=0)
    assert (flow / "rung").exists() is not is_scripted


def test_an_interrupted_test_ends_in_order(flow: Path):
    case = flow / "tests/workflows/stuck/case.yaml"
    case.parent.mkdir(parents=True)
    text = HAND % (sys.executable, "")
    case.write_text(text.replace("  o: done", "  o: {fault: silence}"), "utf-8")
    with subprocess.Popen(
        command(["test"]), cwd=flow, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (flow / "rung").exists() and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 130, out + err
    assert out == ""
    assert "interrupted" in err
