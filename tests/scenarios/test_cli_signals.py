"""Ctrl-C and SIGTERM from outside: exit codes, how soon, and what is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from devall.testing.chat_server import ChatServer

AGENT = """
    graph:
      start: A
      nodes: [{id: A, type: agent, config: {provider: openai, name: slow}}]
      edges: []
"""
PYTHON = """
    graph:
      start: L
      nodes:
        - id: L
          type: literal
          config: {content: "import time, pathlib; pathlib.Path('began').touch(); time.sleep(60)"}
        - {id: P, type: python}
      edges: [{from: L, to: P}]
"""
STUBBORN = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: caller
            tooling: [{type: function, config: {tools: [{name: "stubborn:sleep_on"}]}}]
      edges: []
"""


def started(workspace: Path, *arguments: str, env=None, **options) -> subprocess.Popen[str]:
    """The command as a child; Ctrl-C reaches it even where the tests themselves ignore it."""
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "os.execv(sys.executable, [sys.executable, '-m', 'devall', *sys.argv[1:]])"
    )
    return subprocess.Popen(
        [sys.executable, "-c", code, "run", *arguments],
        cwd=workspace,
        env=os.environ | dict(env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        **options,
    )


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=30)
    return process.returncode, out, err


@pytest.mark.parametrize(
    ("number", "code", "word"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "terminated"),
        (signal.SIGHUP, 143, "terminated"),
    ],
)
def test_a_signal_ends_a_model_call_and_closes_its_connection(write, workspace, number, code, word):
    file = write("w.yaml", AGENT)
    with ChatServer({"slow": [{"fault": "silence"}]}) as server:
        process = started(workspace, str(file), "--task", "x", "--json", env=server.env)
        server.wait_until(lambda: server.active == 1, 30)
        process.send_signal(number)
        status, out, err = ended(process)
        server.wait_until(lambda: server.connections == 0)
    assert status == code
    found = json.loads(out)
    assert (found["status"], found["exit_code"], found["answer"]) == ("cancelled", code, None)
    assert found["error"]["code"] == "cancelled"
    assert found["nodes"]["A"] == {"runs": 1, "status": "cancelled"}
    assert f"{word}: ending the run" in err
    assert "Traceback" not in err
    events = (workspace / found["logs_dir"] / "events.jsonl").read_text().splitlines()
    assert json.loads(events[-1])["event"] == "run_finished"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_a_signal_ends_is_reported(write, workspace, number):
    file = write("w.yaml", AGENT)
    reports = ("--report", "junit=j.xml", "--report", "markdown=r.md")
    with ChatServer({"slow": [{"fault": "silence"}]}) as server:
        env = server.env | {"GITHUB_ACTIONS": "true"}
        process = started(workspace, str(file), "--task", "x", *reports, env=env)
        server.wait_until(lambda: server.active == 1, 30)
        process.send_signal(number)
        status, _, err = ended(process)
    cases = ET.parse(workspace / "j.xml").findall("testsuite/testcase")
    assert [(case.attrib["name"], case[0].tag) for case in cases] == [
        ("A", "skipped"),
        ("(run)", "error"),
    ]
    assert f"Exit code {status}" in (workspace / "r.md").read_text("utf-8")
    assert "::error file=w.yaml,title=cancelled::" in err


def test_a_signal_ends_a_child_process(write, workspace):
    file = write("w.yaml", PYTHON)
    process = started(workspace, str(file), "--run-id", "r")
    place = workspace / "logs/r/workspace/began"
    end = time.monotonic() + 30
    while not place.exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] == 143


def test_a_function_that_never_ends_does_not_keep_the_process(write, workspace):
    write(
        "functions/function_calling/stubborn.py",
        '''
        import time
        from pathlib import Path


        def sleep_on() -> str:
            """Sleep."""
            Path("began").touch()
            time.sleep(60)
            return "at last"
        ''',
    )
    file = write("w.yaml", STUBBORN)
    script = {"caller": [{"tool_calls": [{"name": "sleep_on", "arguments": {}}]}]}
    with ChatServer(script) as server:
        process = started(workspace, str(file), "--task", "x", env=server.env)
        end = time.monotonic() + 30
        while not (workspace / "began").exists():
            assert time.monotonic() < end
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert ended(process)[0] == 130


def test_a_second_interrupt_ends_the_process_at_once(workspace):
    code = """
import asyncio, sys
from devall.cli.interruption import Interruption
async def stubborn():
    print("began", flush=True)
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            print("no", flush=True)
Interruption(lambda text: print(text, file=sys.stderr, flush=True)).run(stubborn())
"""
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "began\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "no\n"
    process.send_signal(signal.SIGINT)
    status, _, err = ended(process)
    assert (status, err) == (130, "interrupted: ending the run (Ctrl-C ends it at once)\n")


def test_code_that_blocks_the_event_loop_can_be_ended(workspace):
    code = """
import sys, time
from devall.cli.interruption import Interruption
async def blocks():
    print("began", flush=True)
    time.sleep(60)
Interruption(print).run(blocks())
"""
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "began\n"
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=15) == 130
    process.stdout.close()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_before_the_run_has_its_exit_code_too(write, workspace, number, code):
    (workspace / "pipe").mkdir()
    fifo = workspace / "pipe" / "task"
    os.mkfifo(fifo)
    file = write("w.yaml", AGENT)
    env = {"API_KEY": "k" * 8, "BASE_URL": "http://127.0.0.1:1"}
    process = started(workspace, str(file), "--task-file", str(fifo), "--json", env=env)
    with fifo.open("wb"):  # it has come to reading the task
        process.send_signal(number)
        status, out, err = ended(process)
    assert status == code
    assert json.loads(out)["status"] == "cancelled"
    assert "Traceback" not in err


def test_a_hangup_is_ignored_where_it_is_to_be_ignored(write, workspace):
    file = write("w.yaml", AGENT)
    with ChatServer({"slow": [{"text": "done", "delay": 1}]}) as server:
        code = "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN);"
        code += "os.execv(sys.executable, [sys.executable, '-m', 'devall', *sys.argv[1:]])"
        process = subprocess.Popen(
            [sys.executable, "-c", code, "run", str(file), "--task", "x", "-q"],
            cwd=workspace,
            env=os.environ | server.env,
            stdout=subprocess.PIPE,
            text=True,
        )
        server.wait_until(lambda: server.active == 1, 30)
        process.send_signal(signal.SIGHUP)
        assert process.communicate(timeout=10) == ("done\n", None)
    assert process.returncode == 0
