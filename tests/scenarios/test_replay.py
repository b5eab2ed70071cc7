"""`devall replay`: the same events and the same answer, without a key and without the network."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from devall.telemetry.run_log import read_events
from devall.testing.chat_server import ChatServer

SERVER = """
    import sys
    from fastmcp import FastMCP

    open("started", "a").write("x")
    server = FastMCP("dice")

    @server.tool
    def roll(sides: int) -> int:
        open("rolled", "a").write("x")
        return sides - 1

    server.run(show_banner=False)
"""
FLOW = """
    graph:
      start: poet
      end: critic
      nodes:
        - id: poet
          type: agent
          config:
            provider: openai
            name: poet
            role: You are a poet.
            tooling: {type: mcp_local, config: {command: "%s", args: [server.py]}}
        - {id: human, type: human, config: {description: Is it good?}}
        - {id: code, type: python}
        - {id: critic, type: agent, config: {provider: openai, name: critic, role: "${MOOD}"}}
        - {id: archive, type: agent, config: {provider: openai, name: archive}}
      edges:
        - {from: poet, to: human}
        - {from: human, to: code}
        - {from: code, to: critic}
        - {from: critic, to: archive}
      memory: [{name: board, type: blackboard, config: {memory_path: board.json}}]
"""
SCRIPT = {
    "poet": [{"tool_calls": [{"name": "roll", "arguments": {"sides": 6}}]}, "five apples"],
    "critic": [{"status": 503, "error": "busy"}, "fine"],
    "archive": ["kept"],
}


@pytest.fixture(scope="module")
def recording(tmp_path_factory) -> Path:
    """A folder with a run `r1` that called models, a tool and code, and asked a human."""
    folder = tmp_path_factory.mktemp("recorded")
    (folder / "server.py").write_text(dedent(SERVER))
    (folder / "flow.yaml").write_text(dedent(FLOW % sys.executable))
    arguments = ["--task", "go", "--run-id", "r1", "--answer", "human=print(6 * 7)"]
    with ChatServer(SCRIPT) as server:
        env = {"MOOD": "Be strict.", **server.env, "API_KEY": "sk-sentinel-replay"}
        done = subprocess.run(
            [sys.executable, "-m", "devall", "run", "flow.yaml", *arguments],
            cwd=folder,
            env=os.environ | env,
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
    assert done.stdout == "fine\n"
    assert (folder / "rolled").read_text() == "x"
    return folder


@pytest.fixture
def recorded(recording: Path, workspace: Path) -> Path:
    """The folder, to work with."""
    shutil.copytree(recording, workspace, dirs_exist_ok=True)
    return workspace


def told(events):
    """Events without what differs from one time to the next."""
    beside = {"at", "seconds", "replayed", "run_id", "workflow", "usd"}
    return [{k: v for k, v in event.items() if k not in beside} for event in events]


async def test_a_replay_has_the_same_events_and_starts_nothing(recorded, workspace):
    from dataclasses import asdict

    from devall.app import replay
    from devall.telemetry.run_log import encode, event_name

    events = []
    result = await replay("r1", on_event=lambda e: events.append((event_name(type(e)), asdict(e))))
    assert (result.status, result.answer) == ("completed", "fine")
    first = [e for e in read_events(workspace / "logs" / "r1") if e["event"] != "tool_progress"]
    second = [
        {"v": 1, "event": name, **json.loads(encode(body))}
        for name, body in events
        if name != "text_delta"
    ]
    keep = {"v", "event", "node", "path", "visit", "turn", "attempt", "tool", "arguments", "result"}
    assert [{k: e[k] for k in keep & e.keys()} for e in told(first)] == [
        {k: e[k] for k in keep & e.keys()} for e in told(second)
    ]
    assert (workspace / "started").read_text() == "x"


def test_a_replay_needs_no_key_no_variable_and_not_the_file(recorded, devall, workspace):
    (workspace / "flow.yaml").write_text("graph: {}")
    done = devall("replay", "r1", code=0)
    assert done.stdout == "fine\n"
    assert (workspace / "started").read_text() == "x"
    assert [p.name for p in (workspace / "logs").iterdir() if p.is_dir()] == ["r1"]


def test_a_request_that_is_not_recorded_ends_the_replay_with_a_diff(recorded, devall):
    change = "nodes.critic.config.role=Be mild."
    with ChatServer({}) as server:
        done = devall("replay", "r1", "--set", change, "--json", env=server.env, code=1)
        assert not server.calls
    error = json.loads(done.stdout)["error"]
    assert (error["code"], error["node"]) == ("not_recorded", "critic")
    assert "-    content: Be strict." in error["message"]
    assert "+    content: Be mild." in error["message"]
    assert "--live" in error["hint"]


def test_a_live_node_is_asked_anew_and_what_comes_before_is_free(recorded, devall, workspace):
    change = "nodes.critic.config.role=Be mild."
    with ChatServer({"critic": ["grand"], "archive": ["kept"]}) as server:
        done = devall("replay", "r1", "--set", change, "--live", "critic+", env=server.env, code=0)
        assert done.stdout == "grand\n"
        assert {name: len(calls) for name, calls in server.calls.items()} == {
            "critic": 1,
            "archive": 1,
        }
        assert server.calls["critic"][0]["messages"][0]["content"] == "Be mild."
    assert "what came otherwise than in the recording" in done.stderr
    assert "-fine" in done.stderr
    assert "+grand" in done.stderr
    assert (workspace / "started").read_text() == "x"
    # It is a run of its own, which can be replayed in turn.
    assert devall("replay", "last", code=0).stdout == "grand\n"


def test_a_live_node_by_itself_leaves_what_follows_to_the_recording(recorded, devall):
    with ChatServer({"critic": ["grand"]}) as server:
        done = devall("replay", "r1", "--live", "critic", env=server.env, code=1)
    assert "archive: the recording holds no" in done.stderr
    assert "content: grand" in done.stderr


def test_a_failed_run_fails_again_in_the_same_words(devall, write):
    file = write(
        "w.yaml",
        "graph: {start: A, nodes: [{id: A, type: agent, config: {provider: openai, name: a}}]}",
    )
    with ChatServer({"a": [{"status": 404, "error": "no such model"}]}) as server:
        first = devall("run", file, "--task", "x", "--json", env=server.env, code=1)
    again = devall("replay", "last", "--json", code=1)
    one, two = json.loads(first.stdout)["error"], json.loads(again.stdout)["error"]
    assert one == two
    assert one["code"] == "model_refused"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nope",), "there is no run nope"),
        (("r1", "--live", "cricket"), "did you mean critic?"),
        (("r1", "--set", "nodes.cricket.config.role=x"), "no entry cricket"),
        (("r1", "--set", "role"), "is no assignment"),
    ],
)
def test_what_is_wrong_is_said(recorded, devall, arguments, words):
    done = devall("replay", *arguments, code=2)
    assert words in done.stderr


def test_a_change_that_makes_the_file_wrong_is_an_error_of_the_file(recorded, devall):
    done = devall("replay", "r1", "--set", "nodes.critic.config.input_mode=nonsense", code=3)
    assert "input_mode" in done.stderr


def test_where_nothing_has_run_that_is_said(devall):
    done = devall("replay", "last", code=2)
    assert "there is no journal" in done.stderr
    assert "--logs-dir" in done.stderr
