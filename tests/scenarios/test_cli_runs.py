"""`devall runs` beside runs that are alive in other processes."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from types import SimpleNamespace

import pytest

from devall.cli.main import call
from devall.testing.chat_server import ChatServer
from tests.scenarios.conftest import command

AGENTS = """
    graph:
      start: A
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: quick}}
        - {id: B, type: agent, config: {provider: openai, name: slow}}
        - {id: C, type: passthrough}
      edges: [{from: A, to: B}, {from: B, to: C}]
"""
SCRIPT = {"quick": ["a quick word"], "slow": [{"fault": "silence"}]}


def started(workspace, *arguments, env=None) -> subprocess.Popen[str]:
    """The command as a child; Ctrl-C reaches it even where the tests themselves ignore it."""
    return subprocess.Popen(
        ["bash", "-c", 'trap - INT; exec "$@"', "bash", *command(arguments)],
        cwd=workspace,
        env=os.environ | dict(env or {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
    )


def until(process: subprocess.Popen[str], words: str) -> None:
    """Read what a command prints up to a line with these words."""
    assert process.stdout is not None
    assert process.stderr is not None
    while words not in (line := process.stdout.readline()):
        assert line, f"{words!r} was not printed; {process.stderr.read()}"


@pytest.fixture
def devall(workspace, capsys):
    """A command in this process: a look at a run costs no start of an interpreter."""

    def run(*arguments, code=None):
        capsys.readouterr()
        status = call(list(map(str, arguments)))
        out, err = capsys.readouterr()
        assert code in {None, status}, out + err
        return SimpleNamespace(stdout=out, stderr=err, returncode=status)

    return run


@pytest.fixture
def live(write, workspace):
    """A run that is alive in another process, its second node at work."""
    file = write("w.yaml", AGENTS)
    with ChatServer(SCRIPT) as server:
        process = started(
            workspace, "run", file, "--task", "hi", "--run-id", "live", "--json", env=server.env
        )
        try:
            server.wait_until(lambda: server.active == 1 and "slow" in server.calls, 30)
            yield process
        finally:
            process.kill()
            process.communicate(timeout=10)


def test_a_live_run_is_cancelled_in_order_and_can_be_gone_on_with(devall, live):
    assert json.loads(devall("runs", "list", "--json").stdout)["runs"][0]["state"] == "running"
    shown = devall("runs", "show", "live", code=0).stdout
    assert f"process: {live.pid} on " in shown
    why = devall("why", "live", "C", code=0).stdout
    assert "C has not run yet; it waits for B (is running)" in why
    done = devall("runs", "cancel", "live", code=0)
    assert done.stdout == "run live has ended: cancelled\n"
    out, _ = live.communicate(timeout=10)
    assert live.returncode == 143
    assert json.loads(out)["status"] == "cancelled"
    assert devall("runs", "cancel", "live", code=0).stdout == "run live is not alive: cancelled\n"
    assert "go on with it: devall resume live\n" in devall("runs", "show", "live", code=0).stdout


def test_a_killed_run_is_said_to_be_interrupted(devall, live):
    live.kill()
    live.wait(10)
    [run] = json.loads(devall("runs", "list", "--json").stdout)["runs"]
    assert run["state"] == "interrupted"
    assert "not alive: interrupted" in devall("runs", "cancel", "live", code=0).stdout
    done = devall("runs", "tail", "live", "--follow", code=0)
    assert "A: done in" in done.stdout
    assert "run live was interrupted" in done.stderr
    why = devall("why", "live", "C", code=0).stdout
    assert "C had not run when the run broke off; it waits for B (was not finished)" in why
    assert "devall resume live" in devall("runs", "show", "live", code=0).stdout


def test_a_run_of_a_process_that_is_not_surely_its_own_is_not_cancelled(devall, live, workspace):
    import sqlite3

    def own(**values):
        with sqlite3.connect(workspace / "logs/devall.db", timeout=10) as database:
            (text,) = database.execute("SELECT owner FROM runs").fetchone()
            changed = json.dumps(json.loads(text) | values)
            database.execute("UPDATE runs SET owner = ?", (changed,))
        database.close()

    own(host="elsewhere")
    assert "another machine" in devall("runs", "cancel", "live", code=2).stderr
    own(host=os.uname().nodename, born="")
    assert f"kill {live.pid}" in devall("runs", "cancel", "live", code=2).stderr
    own(born="1")  # a later process has the number now
    assert "not alive" in devall("runs", "cancel", "live", code=0).stdout
    assert live.poll() is None


def test_a_live_run_is_not_pruned(devall, live, workspace):
    done = devall("runs", "prune", "--keep", "0", "--yes", code=0)
    assert "0 runs deleted" in done.stdout
    assert (workspace / "logs/live").is_dir()


def test_tail_follows_a_run_to_its_end(devall, live, workspace):
    tail = started(workspace, "runs", "tail", "live", "--follow")
    until(tail, "B: slow is asked")
    live.send_signal(signal.SIGTERM)
    out, err = tail.communicate(timeout=15)
    assert out.endswith("run live: cancelled\n")
    assert (tail.returncode, err) == (0, "")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_tail_and_not_the_run(devall, live, workspace, number, code):
    tail = started(workspace, "runs", "tail", "live", "--follow")
    until(tail, "B: slow is asked")
    tail.send_signal(number)
    began = time.monotonic()
    _, err = tail.communicate(timeout=10)
    assert (tail.returncode, err) == (code, "")
    assert time.monotonic() - began < 3
    assert live.poll() is None


def test_a_reader_of_tail_that_has_gone_is_quiet(live, workspace):
    script = 'set -o pipefail; "$@" | head -n 1 >/dev/null; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *command(["runs", "tail", "live"])],
        cwd=workspace,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_long_texts_are_cut_on_a_terminal_unless_they_are_wanted_whole(devall, write, workspace):
    text = "\\n".join(f"line {at}" for at in range(100))
    file = write(
        "long.yaml",
        f"""
        graph:
          start: A
          nodes: [{{id: A, type: literal, config: {{content: "{text}"}}}}]
          edges: []
        """,
    )
    devall("run", file, "--run-id", "long", code=0)
    shown = on_terminal(workspace, "show", "long", "A")
    assert "line 29" in shown
    assert "line 30" not in shown
    assert "… 70 more lines (--full shows all)" in shown
    assert "line 99" in on_terminal(workspace, "show", "long", "A", "--full")
    assert "line 99" in devall("show", "long", "A", code=0).stdout


def test_control_characters_of_a_model_do_not_reach_the_terminal(devall, write, workspace):
    file = write("w.yaml", AGENTS)
    with ChatServer({"quick": ["red \x1b[31mtext\x07"], "slow": ["done"]}) as server:
        for name, value in server.env.items():
            os.environ[name] = value
        try:
            devall("run", file, "--task", "hi", "--run-id", "r", code=0)
        finally:
            for name in server.env:
                del os.environ[name]
    for arguments in (("show", "r"), ("show", "r", "A"), ("runs", "tail", "r")):
        shown = on_terminal(workspace, *arguments)
        assert "red text" in shown
        assert "\x1b" not in shown


def on_terminal(workspace, *arguments) -> str:
    """What a person sees of the command."""
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command(arguments), cwd=workspace, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    seen = b""
    with contextlib.suppress(OSError):  # nobody is at its other end any more
        while piece := os.read(ours, 65536):
            seen += piece
    os.close(ours)
    assert process.wait(10) == 0
    return seen.decode()


@pytest.mark.parametrize(("answer", "is_there"), [("n", True), ("y", False)])
def test_whoever_deletes_runs_is_asked_first(devall, write, workspace, answer, is_there):
    file = write("w.yaml", "graph: {start: A, nodes: [{id: A, type: passthrough}], edges: []}")
    devall("run", file, "--task", "a task", "--run-id", "old", code=0)
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        command(["runs", "prune", "--keep", "0"]),
        cwd=workspace,
        stdin=theirs,
        stderr=theirs,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    )
    os.close(theirs)
    seen = ""
    while "[y/N]" not in seen:
        seen += os.read(ours, 65536).decode()
    os.write(ours, f"{answer}\n".encode())
    out, _ = process.communicate(timeout=20)
    os.close(ours)
    assert "old  completed  a task" in seen
    assert process.returncode == 0
    assert (workspace / "logs/old").exists() == is_there
    assert ("1 run deleted" in out) != is_there
