"""Runs that are gone on with: calls in doubt, two processes at one run, questions to humans."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from textwrap import dedent

import pytest

import devall as api
from devall.app import answer_questions, resume
from devall.core.errors import UsageError
from devall.core.ports import Question
from devall.history.events import events_of, last_turn
from devall.journal.reader import Reader
from devall.testing.chat_server import ChatServer
from tests.scenarios.conftest import command

TOOLS = """
    import time
    from pathlib import Path

    from devall.tools.context import ToolContext

    HERE = Path(__file__).parents[2]


    def note(text: str) -> None:
        with (HERE / "done").open("a") as file:
            file.write(text + "\\n")


    def pay(euros: int) -> str:
        note(f"paying {euros}")
        while (HERE / "slow").exists():
            time.sleep(0.01)
        note(f"paid {euros}")
        return f"paid {euros}"


    async def order(_context: ToolContext) -> str:
        note("looked")
        many = await _context.ask("How many?")
        note(f"ordered {many}")
        return f"ordered {many}"
"""
PAYING = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: a
            tooling:
              - {type: function, tools: [{name: "tools:pay"}, {name: "tools:order"}]%s}
      edges: []
"""
CHAIN = """
    graph:
      start: A
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: a}}
        - {id: B, type: agent, config: {provider: openai, name: b}}
        - {id: C, type: agent, config: {provider: openai, name: c}}
      edges: [{from: A, to: B}, {from: B, to: C}]
"""


@pytest.fixture
def start(workspace: Path):
    """Starts `devall` with these arguments; what still runs is killed with the test."""
    with ExitStack() as stack:

        def run(*arguments: str, server: ChatServer) -> subprocess.Popen[str]:
            process = subprocess.Popen(
                command(arguments),
                cwd=workspace,
                env=os.environ | server.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            return process

        yield run


@pytest.fixture
def write_paying(write):
    """Writes a workflow whose agent has the tools, with what its source says beside them."""

    def write_file(more: str = "") -> Path:
        write("functions/function_calling/tools.py", TOOLS)
        return write("w.yaml", PAYING % more)

    return write_file


def wait_for(what) -> None:
    end = time.monotonic() + 30
    while not what():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.005)


def done(workspace: Path) -> list[str]:
    place = workspace / "done"
    return place.read_text().splitlines() if place.exists() else []


def tool_call(name: str, **arguments):
    return {"tool_calls": [{"name": name, "arguments": arguments, "id": "c1"}]}


@contextmanager
def killed_while_paying(workspace: Path, start, file: Path):
    """A run `r` that was killed during a call of `pay`; gives the server of its model."""
    (workspace / "slow").touch()
    with ChatServer({"a": [tool_call("pay", euros=5), "thanks"]}, strict=True) as server:
        process = start("run", file, "--task", "x", "--run-id", "r", server=server)
        wait_for(lambda: done(workspace))
        process.kill()
        process.wait()
        (workspace / "slow").unlink()
        yield server


# Calls in doubt


def test_a_call_in_doubt_ends_the_run_until_it_is_allowed(write_paying, workspace, start, devall):
    with killed_while_paying(workspace, start, write_paying()) as server:
        for _ in range(2):  # looking at it does not decide it
            failed = devall("resume", "r", env=server.env, code=1)
            assert "tool pay was called with" in failed.stderr
            assert "euros" in failed.stderr
            assert "--in-doubt retry" in failed.stderr
            assert "Traceback" not in failed.stderr
        found = devall("resume", "r", "--in-doubt", "fail", "--json", env=server.env, code=1)
        assert json.loads(found.stdout)["error"]["code"] == "in_doubt"
        assert done(workspace) == ["paying 5"]
        again = devall("resume", "r", "--in-doubt", "retry", env=server.env, code=0)
    assert again.stdout == "thanks\n"
    assert done(workspace) == ["paying 5", "paying 5", "paid 5"]


def test_what_a_source_says_of_calls_in_doubt_holds(write_paying, workspace, start, devall):
    for number, more in enumerate((", in_doubt: retry", ", idempotent: true")):
        (workspace / "done").unlink(missing_ok=True)
        file = write_paying(more)
        with killed_while_paying(workspace, start, file) as server:
            found = devall("resume", "r", env=server.env, code=0)
        assert found.stdout == "thanks\n", number
        assert done(workspace) == ["paying 5", "paying 5", "paid 5"]
        (workspace / "logs").rename(workspace / f"logs-{number}")


@pytest.mark.parametrize("by", ["the source", "the command"])
@pytest.mark.parametrize(
    ("answer", "code", "tool", "result"),
    [
        ("retry", 0, ["paying 5", "paying 5", "paid 5"], "paid 5"),
        ("it was paid by hand", 0, ["paying 5"], "it was paid by hand"),
        ("fail", 1, ["paying 5"], ""),
    ],
)
def test_a_human_decides_a_call_in_doubt(
    write_paying, workspace, start, devall, by, answer, code, tool, result
):
    file = write_paying(", in_doubt: ask" if by == "the source" else "")
    with killed_while_paying(workspace, start, file) as server:
        options = () if by == "the source" else ("--in-doubt", "ask")
        asked = devall("resume", "r", *options, env=server.env, code=75)
        assert "tool pay was called with" in asked.stderr
        assert "--answer" in asked.stderr
        found = devall("resume", "r", "--answer", f"A={answer}", env=server.env, code=code)
        assert done(workspace) == tool
        if result:
            assert found.stdout == "thanks\n"
            assert server.calls["a"][-1]["messages"][-1]["content"] == result
        else:
            assert "tool pay was called with" in found.stderr


def test_a_tool_that_asks_a_human_begins_anew_with_the_answer(write_paying, workspace, devall):
    file = write_paying()
    with ChatServer({"a": [tool_call("order"), "thanks"]}, strict=True) as server:
        asked = devall("run", file, "--task", "x", "--run-id", "r", env=server.env, code=75)
        assert "How many?" in asked.stderr
        assert done(workspace) == ["looked"]
        devall("resume", "r", env=server.env, code=75)
        assert done(workspace) == ["looked", "looked"]
        found = devall("resume", "r", "--answer", "A=3", env=server.env, code=0)
        assert found.stdout == "thanks\n"
        assert done(workspace)[2:] == ["looked", "ordered 3"]
        assert len(server.calls["a"]) == 2


def test_a_tool_that_could_not_be_opened_is_not_in_doubt(write_paying, workspace, start, devall):
    """The tools are there when they are listed, and no more when the first is called."""
    file = write_paying()
    place = workspace / "functions/function_calling/tools.py"
    unlicensed = "import os\nif 'UNLICENSED' in os.environ:\n    raise RuntimeError('no licence')\n"
    place.write_text(unlicensed + place.read_text())
    with ChatServer({"a": [{"text": "x", "delay": 60}, tool_call("pay", euros=5), "ok"]}) as server:
        process = start("run", file, "--task", "x", "--run-id", "r", server=server)
        wait_for(lambda: server.calls.get("a"))
        process.kill()
        process.wait()
        env = server.env | {"UNLICENSED": "1"}
        failed = devall("resume", "r", env=env, code=4)
        assert "no licence" in failed.stderr
        assert len(server.calls["a"]) == 2
        assert devall("resume", "r", env=server.env, code=0).stdout == "ok\n"
    assert done(workspace) == ["paying 5", "paid 5"]


# Two processes


def test_a_process_that_wakes_up_is_refused_once_another_has_gone_on(
    write, workspace, start, devall
):
    file = write("w.yaml", CHAIN)
    script = {"b": [{"text": "too late", "delay": 1}, "in time"]}
    with ChatServer(script) as server:
        first = start("run", file, "--task", "x", "--run-id", "r", "--json", server=server)
        wait_for(lambda: server.calls.get("b"))
        first.send_signal(signal.SIGSTOP)
        second = devall("resume", "r", env=server.env, code=0)
        assert second.stdout == "c reply 1\n"
        assert server.calls["c"][0]["messages"][-1]["content"] == "in time"
        first.send_signal(signal.SIGCONT)
        out, err = first.communicate(timeout=30)
        assert first.returncode == 1
        assert json.loads(out)["error"]["code"] == "taken_over"
        assert json.loads(out)["answer"] is None
        assert "run r was taken over by another process" in err
        assert "Traceback" not in err
        assert len(server.calls["c"]) == 1
    with Reader(workspace / "logs") as journal:
        row = journal.run("r")
        steps = {step.key: step for step in journal.steps(row)}
    assert (row.status, row.epoch) == ("completed", 2)
    assert row.result is not None
    assert row.result["answer"] == "c reply 1"
    assert steps["/B@1/turn:1"].value["message"]["content"] == "in time"
    assert {step.epoch for key, step in steps.items() if key[1] in "BC"} == {2}
    told = last_turn(events_of(workspace / "logs/r"))
    assert getattr(told[-1], "answer", None) == "c reply 1", "the run's folder is the second's too"


def test_a_run_that_is_alive_cannot_be_gone_on_with(write, workspace, start, devall):
    file = write("w.yaml", CHAIN)
    with ChatServer({"b": [{"fault": "silence"}]}) as server:
        process = start("run", file, "--task", "x", "--run-id", "r", server=server)
        wait_for(lambda: server.calls.get("b"))
        refused = devall("resume", "r", env=server.env, code=2)
        assert f"run r is alive in process {process.pid}" in refused.stderr
        assert process.poll() is None
        assert len(server.calls["b"]) == 1


def test_of_two_processes_that_go_on_at_once_one_is_refused(write, workspace, start, devall):
    file = write("w.yaml", CHAIN)
    with ChatServer({"b": [{"fault": "silence"}]}) as server:
        process = start("run", file, "--task", "x", "--run-id", "r", server=server)
        wait_for(lambda: server.calls.get("b"))
        process.kill()
        process.wait()
        both = [start("resume", "r", server=server) for _ in range(2)]
        codes = sorted(each.wait(60) for each in both)
        asked = [len(server.calls[model]) for model in "abc"]
    assert codes in ([0, 2], [0, 0])  # the second may find it completed already
    assert asked == [1, 2, 1]


# Humans

QUESTIONS = """
    graph:
      start: L
      end: J
      nodes:
        - {id: L, type: literal, config: {content: "one, two, three"}}
        - {id: M, type: human, config: {description: What of it?}}
        - {id: H, type: human, config: {description: All right?}}
        - {id: J, type: passthrough, config: {only_last_message: false}}
        - {id: A, type: agent, config: {provider: openai, name: a}}
      edges:
        - {from: L, to: M, dynamic: {type: map, split: {type: regex, pattern: '\\w+'}}}
        - {from: L, to: H}
        - {from: M, to: A}
        - {from: H, to: A}
        - {from: A, to: J}
"""


def test_questions_have_ids_of_their_own_and_are_answered_one_by_one(write, workspace, devall):
    file = write("w.yaml", QUESTIONS)
    with ChatServer({"a": ["so be it"]}, strict=True) as server:
        asked = devall("run", file, "--run-id", "r", env=server.env, code=75)
        units = [f"/M@1/unit:{number}" for number in (1, 2, 3)]
        assert all(unit in asked.stderr for unit in units)
        assert "--answer H=TEXT" in asked.stderr
        given = "H=yes", "/M@1/unit:2=second", "/M@1/unit:3=third"
        for number, each in enumerate(given):
            left = devall("resume", "r", "--json", "--answer", each, env=server.env, code=75)
            waiting = [question["path"] for question in json.loads(left.stdout)["waiting"]]
            assert len(waiting) == len(given) - number
            assert each.partition("=")[0] not in waiting
        found = devall("resume", "r", "--answer", "M=first", env=server.env, code=0)
        assert found.stdout == "so be it\n"
        said = [message["content"] for message in server.calls["a"][0]["messages"]]
    assert said == ["first", "second", "third", "yes"]


def test_answers_are_kept_without_going_on(write, workspace, devall):
    file = write("w.yaml", QUESTIONS)
    with ChatServer({"a": ["so be it"]}, strict=True) as server:
        devall("run", file, "--run-id", "r", env=server.env, code=75)
        logs = workspace / "logs"
        left = asyncio.run(answer_questions("r", {"M": ["1", "2"], "H": "yes"}, logs_dir=logs))
        assert left == ["/M@1/unit:3"]
        with pytest.raises(UsageError, match="no open question for H"):
            asyncio.run(answer_questions("r", {"H": "no"}, logs_dir=logs))
        assert asyncio.run(answer_questions("r", {"/M@1/unit:3": "3"}, logs_dir=logs)) == []
        with Reader(logs) as journal:
            assert journal.run("r").status == "waiting"
        assert devall("resume", "r", env=server.env, code=0).stdout == "so be it\n"
        said = [message["content"] for message in server.calls["a"][0]["messages"]]
    assert said == ["1", "2", "3", "yes"]


ASKING = """
    graph:
      start: H
      nodes:
        - {id: H, type: human}
        - {id: A, type: agent, config: {provider: openai, name: a}}
        - {id: Z, type: passthrough}
      edges:
        - {from: H, to: A}
        - {from: A, to: H, condition: {type: keyword, config: {none: [over]}}}
        - {from: A, to: Z, condition: {type: keyword, config: {any: [over]}}}
"""


def test_answers_given_as_a_list_go_on_where_they_were(write, workspace, start, devall):
    file = write("w.yaml", ASKING)
    write("answers.yaml", "H: [one, two, three]\n")
    write("more.yaml", "H: [four]\n")
    with ChatServer({"a": ["1", {"fault": "silence"}, "2", "3", "over"]}) as server:
        options = ("--task", "x", "--run-id", "r", "--answers", "answers.yaml")
        process = start("run", file, *options, server=server)
        wait_for(lambda: len(server.calls.get("a", ())) == 2)
        process.kill()
        process.wait()
        devall("resume", "r", env=server.env, code=75)
        found = devall("resume", "r", "--answers", "more.yaml", env=server.env, code=0)
        said = [body["messages"][-1]["content"] for body in server.calls["a"]]
    assert said == ["one", "two", "two", "three", "four"]
    assert found.stdout == "over\n"


class Slow:
    """A human who thinks."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    async def ask(self, question: Question, /) -> str:
        await asyncio.sleep(self.seconds)
        return "three"


@pytest.mark.parametrize(
    ("graph", "node"),
    [("{max_seconds: 1}", "{}"), ("{}", "{max_seconds: 1}"), ("{}", "{}")],
)
async def test_no_clock_goes_on_while_a_human_thinks_over_a_tools_question(
    write_paying, workspace, monkeypatch, graph, node
):
    file = write_paying()
    text = file.read_text().replace("start: A", f"start: A\n  limits: {graph}")
    timeout = 1 if graph == node else 60
    text = text.replace(
        "type: agent", f"type: agent\n      timeout: {timeout}\n      limits: {node}"
    )
    file.write_text(text)
    async with ChatServer({"a": [tool_call("order"), "thanks"]}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await api.run(file, task="x", human=Slow(1.5))
    assert result.answer == "thanks", result.error
    assert result.status == "completed"
    assert done(workspace) == ["looked", "ordered three"]


async def test_a_resumed_run_has_the_answer_of_a_journal_that_an_older_version_wrote(
    write, workspace, monkeypatch
):
    """A file of version 1 is brought up to date by whoever goes on with one of its runs."""
    file = write("w.yaml", CHAIN)
    async with ChatServer({"b": [{"status": 400, "error": "bad"}]}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        failed = await api.run(file, task="x", run_id="r", logs_dir="logs")
        assert failed.status == "failed"
        database = sqlite3.connect("logs/devall.db", isolation_level=None)
        database.executescript(
            dedent("""
                DROP INDEX runs_by_time;
                ALTER TABLE steps DROP COLUMN seconds;
                PRAGMA user_version = 1;
            """)
        )
        database.close()
        result = await resume("r")
    assert result.answer == "c reply 1"
    assert [len(server.calls[model]) for model in "abc"] == [1, 2, 1]
