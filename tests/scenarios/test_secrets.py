"""Sentinels: secrets that every path of a run meets, and that stand in no byte it leaves."""

from __future__ import annotations

import base64
import json
import stat
import sys
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from devall.testing.chat_server import ChatServer

SECRETS = {
    "API_KEY": 'sk-Sentinel/1+"quoted"&=',
    "SERVER_TOKEN": "tok-Sentinel-2/äöü?x=1",
    "ARGUMENT_SECRET": "arg-Sentinel-3%20&more",
    "HEADER_KEY": "hdr-Sentinel-4+/==",
    "URL_KEY": "url-Sentinel-5~plain",
}
SERVER = """
    import base64, json, os, sys
    from urllib.parse import quote

    from fastmcp import FastMCP

    token, argument = os.environ["TOKEN"], sys.argv[1]
    print("started with", token, argument, file=sys.stderr, flush=True)
    server = FastMCP("leaky")

    @server.tool
    def leak(how: str) -> str:
        both = f"{token} {argument} {os.environ.get('API_KEY', '')}"
        if how == "raise":
            raise ValueError(f"refused {both}")
        if how == "exit":
            print("dying with", both, file=sys.stderr, flush=True)
            os._exit(3)
        forms = {
            "plain": both,
            "json": json.dumps(json.dumps({"both": both})),
            "url": quote(both, safe=""),
            "base64": base64.b64encode(both.encode()).decode(),
            "long": (both + " padding ") * 4000,
        }
        return forms[how]

    server.run(show_banner=False)
"""
FLOW = """
    vars: {KEPT: "${HEADER_KEY}"}
    graph:
      start: a
      end: last
      nodes:
        - id: a
          type: agent
          config:
            provider: openai
            name: m
            base_url: ${BASE_URL}
            api_key: ${API_KEY}
            role: "You know ${KEPT}."
            tooling:
              - type: mcp_local
                config:
                  command: PYTHON
                  args: [server.py, "${ARGUMENT_SECRET}"]
                  env: {TOKEN: "${SERVER_TOKEN}"}
              - type: mcp_remote
                required: false
                config:
                  server: "http://127.0.0.1:9/mcp?apiKey=${URL_KEY}"
                  headers: {Authorization: "Bearer ${HEADER_KEY}"}
              - {type: function, config: {tools: [{name: "tools:boom"}]}}
        - {id: ask, type: human, config: {description: "May ${KEPT} be used?"}}
        - {id: code, type: python, config: {env: {K: "${ARGUMENT_SECRET}"}}}
        - {id: last, type: agent, config: {provider: openai, name: last, base_url: "${BASE_URL}", api_key: "${API_KEY}"}}
      edges: [{from: a, to: ask}, {from: ask, to: code}, {from: code, to: last}]
"""
FUNCTIONS = """
    import os

    def boom() -> str:
        raise RuntimeError("boom with " + os.environ["HEADER_KEY"])
"""


def forms(secret: str) -> set[bytes]:
    """A secret as it might be written."""
    raw = secret.encode()
    escaped = json.dumps(secret)[1:-1]
    texts = {
        secret,
        escaped,
        json.dumps(escaped)[1:-1],
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret, safe=""),
        quote(secret),
        quote_plus(secret),
        base64.b64encode(raw).decode().rstrip("="),
        base64.urlsafe_b64encode(raw).decode().rstrip("="),
    }
    return {text.encode() for text in texts}


def assert_clean(data: bytes, where: str) -> None:
    for name, secret in SECRETS.items():
        for form in forms(secret):
            assert form not in data, f"{name} as {form!r} in {where}"


def calls(*hows: str) -> dict[str, object]:
    return {"tool_calls": [{"name": "leak", "arguments": {"how": how}} for how in hows]}


REPLIES = {
    "m": [
        calls("plain", "json", "url", "base64"),
        calls("long", "raise"),
        {"tool_calls": [{"name": "boom", "arguments": {}}]},
        f"I was told {SECRETS['SERVER_TOKEN']}.",
    ],
    "last": [f"done with {SECRETS['API_KEY']}"],
}
FAILURES = {
    "the model refuses": {"m": [{"status": 401, "error": f"bad key {SECRETS['API_KEY']}"}]},
    "the server dies": {"m": [calls("exit"), {"status": 400, "error": SECRETS["SERVER_TOKEN"]}]},
}


@pytest.fixture
def flow(write):
    write("server.py", SERVER)
    write("functions/function_calling/tools.py", FUNCTIONS)
    return write("flow.yaml", FLOW.replace("PYTHON", json.dumps(sys.executable)))


def swept(folder: Path) -> int:
    """Every file that a run leaves is clean, and the user's alone; how many there are."""
    files = [place for place in folder.rglob("*") if not place.is_symlink()]
    for place in files:
        mode = stat.S_IMODE(place.stat().st_mode)
        if place.is_dir():
            assert mode == 0o700, f"{place}: {mode:o}"
            continue
        assert_clean(place.read_bytes(), str(place))
        if "workspace" not in place.parts and "reports" not in place.parts:
            assert mode == 0o600, f"{place}: {mode:o}"
    return sum(place.is_file() for place in files)


def test_no_path_of_a_run_leaves_a_secret(devall, flow, workspace):
    """One test of many processes: the same run goes through all that can be done with it."""
    said: list[tuple[str, bytes]] = []

    def go(*arguments: str, env: dict[str, str], code: int | None = 0) -> str:
        done = devall(*arguments, env=env, code=code)
        said.append((" ".join(arguments[:3]), (done.stdout + done.stderr).encode()))
        return done.stdout

    reports = ["--report", "junit=reports/r.xml", "--report", "markdown=reports/r.md"]
    with ChatServer(REPLIES) as server:
        env = {**server.env, **SECRETS}
        go(
            "run",
            str(flow),
            "--task",
            "go",
            "--run-id",
            "r",
            "--json",
            "--debug",
            *reports,
            env=env,
            code=75,
        )
        answer = f"print('{SECRETS['HEADER_KEY']}')"
        go("resume", "r", "--answer", f"ask={answer}", "--json", "--debug", *reports, env=env)
    for command in (
        ["replay", "r"],
        ["replay", "r", "--json"],
        ["replay", "r", "--set", "nodes.last.config.role=x"],
        ["runs", "list", "--json"],
        ["runs", "show", "r"],
        ["runs", "show", "r", "--json"],
        ["runs", "tail", "r"],
        ["show", "r", "--full"],
        ["show", "r", "a", "--json"],
        ["show", "r", "last"],
        ["why", "r", "last"],
        ["diff", "r", "r", "--json"],
    ):
        go(*command, env={}, code=None)
    for where, data in said:
        assert_clean(data, where)
    assert_clean((workspace / "reports" / "r.xml").read_bytes(), "junit")
    assert_clean((workspace / "reports" / "r.md").read_bytes(), "markdown")
    assert swept(workspace / "logs") >= 6
    # The test can fail: what was hidden did go through all of it.
    events = (workspace / "logs" / "r" / "events.jsonl").read_text()
    assert events.count("***") > 10
    assert "refused" in events
    assert "boom with" in events
    lines = [json.loads(line) for line in events.splitlines()]
    prompts = [each["messages"] for each in lines if each["event"] == "model_call_started"]
    assert prompts[0][0] == {"role": "system", "content": "You know ***."}
    replies = [each["reply"] for each in lines if each["event"] == "model_call_finished"]
    assert replies[-1]["content"] == "done with ***"


@pytest.mark.parametrize("failure", FAILURES)
def test_no_failure_leaves_a_secret(devall, flow, workspace, failure):
    with ChatServer(FAILURES[failure]) as server:
        env = {**server.env, **SECRETS}
        done = devall("run", flow, "--task", "go", "--json", "--debug", env=env, code=1)
    assert_clean((done.stdout + done.stderr).encode(), failure)
    assert "***" in done.stdout + done.stderr
    swept(workspace / "logs")
