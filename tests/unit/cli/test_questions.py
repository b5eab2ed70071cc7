from __future__ import annotations

import asyncio
import contextlib
import os
import sys

import pytest

from devall.cli.questions import TerminalHuman, as_asked, can_ask, read_answer
from devall.cli.views import Silence
from devall.core.errors import AnswerNeeded
from devall.core.ids import node_of, node_path
from devall.core.messages import assistant, user
from devall.core.ports import Question
from devall.telemetry.redaction import Redactor

QUESTION = Question("S/H", "/S@1/H@1", "Is it good?", (assistant("the draft", "writer"),))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch):
    """The other end of a terminal that is standard input."""
    ours, theirs = os.openpty()
    stream = open(theirs, closefd=False)  # noqa: SIM115 - closed below
    monkeypatch.setattr(sys, "stdin", stream)
    yield lambda text: os.write(ours, text.encode())
    stream.close()
    os.close(theirs)
    os.close(ours)


@pytest.mark.parametrize("node", ["X", "a/b", "a@2", "100%", "unit:3", "日本"])
def test_the_node_of_a_path_is_what_options_call_it(node: str):
    assert node_of(node_path(node_path("", "S", 3), node, 12)) == f"S/{node}"
    assert node_of(node_path("", "M", 1) + "/unit:3") == "M"


def test_a_question_shows_what_belongs_to_it():
    long = user("\n".join(map(str, range(100))), "counter")
    shown = as_asked(Question("H", "/H@1", "Go on?", (assistant("a draft\x1b[31m", "A"), long)))
    assert shown.splitlines()[1] == "── H asks ──"
    assert "A:\n  a draft\n" in shown
    assert "… 60 more lines" in shown
    assert shown.endswith("\n\nGo on?")


def test_a_question_of_a_server_that_several_nodes_use_names_no_node():
    shown = as_asked(Question("mcp_local server.py", "/S@1/A@2/ask:c1.1", "Who are you?"))
    assert shown.splitlines()[1] == "── mcp_local server.py asks ──"
    shown = as_asked(Question("S/A", "/S@1/A@2/ask:c1.1", "Who are you?"))
    assert shown.splitlines()[1] == "── S/A asks ──"


async def test_the_person_at_the_terminal_answers(terminal, capsys):
    asking = asyncio.ensure_future(TerminalHuman(Silence()).ask(QUESTION))
    await asyncio.sleep(0.05)
    terminal("very good\n")
    assert await asking == "very good"
    assert "S/H asks" in capsys.readouterr().err


async def test_a_backslash_continues_on_the_next_line(terminal):
    terminal("one\\\ntwo\\\n\n")
    assert await read_answer("> ") == "one\ntwo\n"


async def test_what_was_typed_ahead_answers_the_next_question_in_turn(terminal):
    human = TerminalHuman(Silence())
    first, second = (asyncio.ensure_future(human.ask(QUESTION)) for _ in range(2))
    await asyncio.sleep(0.05)
    terminal("one\n")
    assert await first == "one"
    await asyncio.sleep(0.05)
    terminal("two\n")
    assert await second == "two"


async def test_the_end_of_input_is_no_answer(terminal):
    asking = asyncio.ensure_future(TerminalHuman(Silence()).ask(QUESTION))
    await asyncio.sleep(0.05)
    terminal("\x04")
    with pytest.raises(AnswerNeeded) as raised:
        await asking
    assert raised.value.questions == (("/S@1/H@1", "Is it good?"),)


async def test_a_question_that_is_withdrawn_reads_no_more(terminal):
    human = TerminalHuman(Silence())
    asking = asyncio.ensure_future(human.ask(QUESTION))
    await asyncio.sleep(0.05)
    asking.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asking
    again = asyncio.ensure_future(human.ask(QUESTION))
    await asyncio.sleep(0.05)
    terminal("now\n")
    assert await again == "now"


async def test_secrets_are_not_shown_in_a_question(terminal, capsys):
    asked = Question("H", "/H@1", "Use sk-0123456789?", ())
    asking = asyncio.ensure_future(TerminalHuman(Silence(), Redactor(["sk-0123456789"])).ask(asked))
    await asyncio.sleep(0.05)
    terminal("y\n")
    await asking
    assert "Use ***?" in capsys.readouterr().err


def test_nobody_is_asked_without_a_terminal(terminal):
    assert not can_ask(), "standard error is no terminal here"
