"""`devall run` at a terminal: a pseudo-terminal is standard input and error, a pipe the output."""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from devall.testing.chat_server import ChatServer

POEM = """
    graph:
      start: A
      initial_instruction: Two numbers, please.
      nodes: [{id: A, type: agent, config: {provider: openai, name: poet}}]
      edges: []
"""
REVIEW = """
    graph:
      start: A
      end: Z
      nodes:
        - {id: A, type: literal, config: {content: the draft}}
        - {id: one, type: human, config: {description: "First question?"}}
        - {id: two, type: human, config: {description: "Second question?"}}
        - {id: Z, type: passthrough, config: {only_last_message: false}}
      edges:
        - {from: A, to: one}
        - {from: A, to: two}
        - {from: one, to: Z}
        - {from: two, to: Z}
"""


# Ctrl-C reaches the command even where the tests themselves were started to ignore it.
_WITH_INTERRUPTS = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
    "os.execv(sys.executable, [sys.executable, '-m', 'devall', *sys.argv[1:]])"
)


class Terminal:
    """A command and the person in front of it."""

    def __init__(self, workspace: Path, *arguments: str, env=None) -> None:
        self._ours, theirs = os.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WITH_INTERRUPTS, "run", *arguments],
            cwd=workspace,
            env=os.environ | {"TERM": "xterm", "COLUMNS": "80", "LINES": "24"} | dict(env or {}),
            stdin=theirs,
            stderr=theirs,
            stdout=subprocess.PIPE,
        )
        os.close(theirs)
        self.seen = ""

    def until(self, words: str, seconds: float = 30) -> str:
        """All that was shown, as soon as the words are among it."""
        end = time.monotonic() + seconds
        while words not in self.seen:
            assert time.monotonic() < end, f"{words!r} was not shown, but {self.seen!r}"
            if select.select([self._ours], [], [], 0.1)[0]:
                self.seen += os.read(self._ours, 65536).decode("utf-8", "replace")
        return self.seen

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ends_with(self, code: int, answer: str) -> None:
        """Check how it ends; all that was shown is in `seen`."""
        out, _ = self.process.communicate(timeout=20)
        with contextlib.suppress(OSError):  # a terminal without anybody at its other end
            while select.select([self._ours], [], [], 0)[0]:
                self.seen += os.read(self._ours, 65536).decode("utf-8", "replace")
        assert (self.process.returncode, out.decode()) == (code, answer), self.seen

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()
        os.close(self._ours)


@pytest.fixture
def at_terminal(workspace: Path):
    opened: list[Terminal] = []

    def start(*arguments: str | Path, env=None) -> Terminal:
        opened.append(Terminal(workspace, *map(str, arguments), env=env))
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def test_the_task_is_asked_for_and_the_run_is_watched(write, at_terminal):
    file = write("w.yaml", POEM)
    with ChatServer({"poet": [{"text": "a poem of five words", "pause": 0.2}]}) as server:
        terminal = at_terminal(file, env=server.env)
        assert "Two numbers, please." in terminal.until("task> ")
        terminal.type("1 100\n")
        terminal.until("a poem of five")
        terminal.ends_with(0, "a poem of five words\n")
        assert server.calls["poet"][0]["messages"][-1]["content"] == "1 100"
    assert "poet, turn 1" in terminal.seen
    assert "✓ A: done in" in re.sub(r"\x1b\[[0-9;]*m", "", terminal.seen)
    assert terminal.seen.count("\x1b[?25h") >= terminal.seen.count("\x1b[?25l") > 0


@pytest.mark.parametrize(
    ("env", "has_colour", "moves"),
    [({}, True, True), ({"NO_COLOR": "1"}, False, True), ({"TERM": "dumb"}, False, False)],
)
def test_colours_and_movement_are_left_out_where_they_are_not_wanted(
    write, at_terminal, env, has_colour, moves
):
    file = write("w.yaml", POEM)
    with ChatServer() as server:
        terminal = at_terminal(file, "--task", "x", env=server.env | env)
        terminal.ends_with(0, "poet reply 1\n")
    assert bool(re.search(r"\x1b\[[0-9;]*3[0-9]", terminal.seen)) == has_colour
    assert ("\x1b[?25l" in terminal.seen) == moves


def test_questions_are_asked_one_after_the_other(write, at_terminal):
    terminal = at_terminal(write("w.yaml", REVIEW))
    shown = terminal.until("answer> ")
    first = "one" if "── one asks ──" in shown else "two"
    assert "the draft" in shown
    assert shown.count(" asks ──") == 1
    terminal.type("one\n")
    terminal.until(f"── {'two' if first == 'one' else 'one'} asks ──")
    terminal.until("answer> ")
    terminal.type("two\n")
    terminal.ends_with(0, "two\n" if first == "one" else "one\n")


def test_the_end_of_input_instead_of_an_answer_ends_with_75(write, at_terminal):
    terminal = at_terminal(write("w.yaml", REVIEW), "--answer", "one=x")
    terminal.until("answer> ")
    terminal.type("\x04")
    terminal.ends_with(75, "")
    assert "--answer two=TEXT" in terminal.seen


def test_an_interrupt_at_a_question_ends_the_run(write, at_terminal):
    terminal = at_terminal(write("w.yaml", REVIEW))
    terminal.until("answer> ")
    terminal.process.send_signal(signal.SIGINT)
    terminal.ends_with(130, "")
    assert "interrupted: ending the run" in terminal.seen
    assert "Traceback" not in terminal.seen


def test_quiet_asks_but_shows_nothing_else(write, at_terminal):
    terminal = at_terminal(write("w.yaml", REVIEW), "-q", "--answer", "one=x")
    terminal.until("answer> ")
    terminal.type("y\n")
    terminal.ends_with(0, "y\n")
    assert "done in" not in terminal.seen
    assert "\x1b" not in terminal.seen
