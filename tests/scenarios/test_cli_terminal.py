"""`devall run` at a terminal: a pseudo-terminal is standard input and error, a pipe the output."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.cells import cell_len

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

    def __init__(self, workspace: Path, *arguments: str, env=None, size=None) -> None:
        self._ours, theirs = os.openpty()
        sized = {"COLUMNS": "80", "LINES": "24"}
        if size is not None:
            self.resize(*size)
            sized = {"COLUMNS": "", "LINES": ""}
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WITH_INTERRUPTS, "run", *arguments],
            cwd=workspace,
            env=os.environ | {"TERM": "xterm"} | sized | dict(env or {}),
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
            self.look(0.1)
        return self.seen

    def look(self, seconds: float) -> None:
        """Take in what is shown next, if it is within the time."""
        with contextlib.suppress(OSError):  # a terminal without anybody at its other end
            if select.select([self._ours], [], [], seconds)[0]:
                self.seen += os.read(self._ours, 65536).decode("utf-8", "replace")

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    @property
    def shown(self) -> list[str]:
        """All lines that were shown, without what colours them and moves the cursor."""
        text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.seen).replace("\r", "\n")
        return [line.rstrip() for line in text.split("\n") if line.strip()]

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def ends_with(self, code: int, answer: str) -> None:
        """Check how it ends; all that was shown is in `seen`."""
        end = time.monotonic() + 20
        while self.process.poll() is None and time.monotonic() < end:
            self.look(0.1)  # a terminal that nobody reads lets nobody write
        out, _ = self.process.communicate(timeout=5)
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

    def start(*arguments: str | Path, env=None, size=None) -> Terminal:
        opened.append(Terminal(workspace, *map(str, arguments), env=env, size=size))
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


ALL = """
    graph:
      start: [Writer, Items]
      end: Writer
      limits: {max_loop_iterations: 5}
      nodes:
        - id: Writer
          type: agent
          config:
            provider: openai
            name: writer
            tooling: [{type: function, config: {tools: [{name: "mine:add"}]}}]
        - {id: Items, type: literal, config: {content: "one\\ntwo\\nthree\\nfour"}}
        - {id: Each, type: agent, config: {provider: openai, name: each}}
        - {id: Never, type: passthrough}
        - {id: May, type: agent, on_error: continue, config: {provider: openai, name: may}}
      edges:
        - {from: Writer, to: Writer, condition: {type: keyword, config: {any: [again]}}}
        - {from: Writer, to: Never, condition: {type: keyword, config: {any: [never]}}}
        - from: Items
          to: Each
          dynamic:
            type: map
            split: {type: regex, pattern: "[a-z]+"}
            config: {max_parallel: 2, on_unit_error: skip}
        - {from: Each, to: May}
"""
MINE = 'def add(a: int, b: int) -> int:\n    """The sum."""\n    return a + b\n'
ADD = {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}


def script():
    return {
        "writer": [ADD, "again", {"text": "a text of its own", "pause": 0.25}],
        "each": [{"status": 400}] + [{"text": "a word", "pause": 0.5}] * 3,
        "may": [{"error": "invalid_api_key"}],
    }


@pytest.fixture
def everything(write):
    write("functions/function_calling/mine.py", MINE)
    return write("w.yaml", ALL)


@pytest.mark.parametrize(
    ("columns", "lines", "nodes"),
    [(40, 15, "nodes  ●✓●··"), (200, 50, "nodes  ● Writer  ✓ Items  ● Each  · Never  · May")],
)
def test_all_that_goes_on_is_seen_at_any_size(everything, at_terminal, columns, lines, nodes):
    with ChatServer(script()) as server:
        terminal = at_terminal(everything, "--task", "x", env=server.env, size=(columns, lines))
        terminal.ends_with(0, "a text of its own\n")
    shown = terminal.shown
    assert max(map(cell_len, shown[:-2])) <= columns
    text = "\n".join(shown)
    for words in (
        nodes,
        "⚒ Writer: add(a=1, b=2) (0.",
        "loops  Writer: round 2/5",
        "✓ Items: done",
        "! May: failed after",
        "· Never: skipped",
        "a text of",
        "cost unknown",
    ):
        assert words in text, words
    assert re.search(r"! Each: unit \d of 4 failed and is left", text)
    assert re.search(r"[23]/4 units · 1 failed", text)
    assert re.search(r"━+✗[━╍─]*", text)


def test_the_picture_follows_the_terminals_size(write, at_terminal):
    file = write("w.yaml", POEM)
    with ChatServer({"poet": [{"text": "word " * 60, "pause": 0.1}]}) as server:
        terminal = at_terminal(file, "--task", "x", env=server.env, size=(120, 30))
        terminal.until("word word word word word")
        terminal.resize(40, 15)
        time.sleep(0.5)
        terminal.seen += "\n== narrow ==\n"
        terminal.until("completed")
        terminal.ends_with(0, "word " * 60 + "\n")
    narrow = terminal.seen.partition("== narrow ==")[2]
    assert "poet, turn 1" in narrow
    assert max(cell_len(line) for line in terminal.shown if "poet, turn 1" in line) <= 40


def test_a_terminal_without_other_signs_gets_ascii(everything, at_terminal):
    with ChatServer(script()) as server:
        env = server.env | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        terminal = at_terminal(everything, "--task", "x", env=env)
        terminal.ends_with(0, "a text of its own\n")
    assert terminal.seen.isascii()
    assert "\\u" not in terminal.seen
    assert "* Writer: add(a=1, b=2) (0." in "\n".join(terminal.shown)


def test_everything_is_said_where_it_is_wanted(everything, at_terminal):
    with ChatServer(script()) as server:
        terminal = at_terminal(everything, "--task", "x", "--verbose", env=server.env)
        terminal.ends_with(0, "a text of its own\n")
    text = "\n".join(terminal.shown)
    for words in ("Writer: writer is asked, turn 2: 1 new message, 1 tool", "Items -> Each: fires"):
        assert words in text


def test_nothing_and_everything_exclude_each_other(write, at_terminal):
    terminal = at_terminal(write("w.yaml", POEM), "--task", "x", "-q", "-v")
    terminal.ends_with(2, "")
    assert "--quiet and --verbose exclude each other" in terminal.seen


def test_a_thousand_nodes_need_no_more_room_than_three(write, at_terminal):
    nodes = "".join(f"        - {{id: N{n}, type: passthrough}}\n" for n in range(1000))
    edges = "".join(f"        - {{from: N{n}, to: N{n + 1}}}\n" for n in range(999))
    ask = "        - {id: Ask, type: human, config: {description: Well?}}\n"
    text = f"\n    graph:\n      start: [N0, Ask]\n      end: N999\n      nodes:\n{nodes}{ask}"
    terminal = at_terminal(write("w.yaml", f"{text}      edges:\n{edges}"), "--task", "x")
    terminal.until("answer> ")
    terminal.type("fine\n")
    terminal.ends_with(0, "x\n")
    assert "1,001 nodes" in terminal.seen
    assert ": done" not in terminal.seen
    assert len(terminal.shown) < 60
