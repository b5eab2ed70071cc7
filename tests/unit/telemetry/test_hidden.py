from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any

import pytest

from devall.core.events import (
    Event,
    HumanAnswered,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    RunFinished,
    ToolCallStarted,
    UnitFinished,
    Warned,
)
from devall.core.messages import Message, TextPart, ToolCall, assistant, from_json, user
from devall.core.outcome import ErrorReport, Outcome
from devall.core.usage import Usage
from devall.telemetry.logs import LogLines
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import RunLog, read_events

WORDS = 'the "plan"\nnobody may read'
CALL = {"provider": "p", "model": "m", "turn": 1}


def log_of(folder: Path, *events: Event, hidden: set[str] | None = None) -> list[dict[str, Any]]:
    log = RunLog(folder, Redactor(), hidden=hidden or set())
    for event in events:
        log(event)
    log.close()
    everything = b"".join(p.read_bytes() for p in folder.rglob("*") if p.is_file()).decode()
    for part in ("nobody may read", "nobody\\u0020may"):
        assert part not in everything
    return read_events(folder)


def prompt(*messages: Message, node: str = "B") -> ModelCallStarted:
    return ModelCallStarted(node=node, **CALL, messages=messages)


def said(text: str = WORDS, node: str = "A") -> NodeFinished:
    return NodeFinished(
        node=node, visit=1, seconds=0, outputs=(assistant(text, node),), log_output=False
    )


def test_a_hidden_nodes_reply_is_hidden_before_its_output_is_known(tmp_path: Path):
    calls = (ToolCall("1", "look", "{}"),)
    reply = Message("assistant", WORDS, tool_calls=calls, extra={"thoughts": WORDS})
    [line] = log_of(
        tmp_path, ModelCallFinished(node="A", seconds=1, reply=reply, **CALL), hidden={"A"}
    )
    assert line["reply"] == {
        "role": "assistant",
        "content": {"hidden": True, "chars": len(WORDS)},
        "tool_calls": [{"id": "1", "name": "look", "arguments": "{}"}],
    }


@pytest.mark.parametrize(
    "text",
    [
        f"You said: {WORDS}, did you not?",
        f"=== A ===\n{WORDS}\n\n=== task ===\ngo",
        json.dumps({"notes": [WORDS]}),
        json.dumps(json.dumps(WORDS), ensure_ascii=False)[1:-1],
        f"From memory:\n- [A] {WORDS}\n  (to: plan)",
    ],
)
def test_a_prompt_holds_hidden_words_in_no_form(tmp_path: Path, text: str):
    lines = log_of(tmp_path, said(), prompt(user("open"), user(text)), hidden={"A"})
    assert lines[1]["messages"][0] == {"role": "user", "content": "open"}
    assert "kept out of logs" in str(lines[1]["messages"][1]) or "hidden" in str(lines[1])


def test_only_the_part_that_is_hidden_goes_from_a_longer_text(tmp_path: Path):
    lines = log_of(
        tmp_path, said("the plan nobody may read"), prompt(user("see: the plan nobody may read!"))
    )
    assert lines[1]["messages"][0]["content"] == "see: (kept out of logs: 24 characters)!"


def test_a_part_of_hidden_words_is_known_by_whom_it_comes_from(tmp_path: Path):
    part = "nobody may read"
    lines = log_of(
        tmp_path,
        said(),
        prompt(user(part, "A"), user("open", "C")),
        prompt(user(f"=== A ===\n{part}")),
        prompt(user(f"From memory:\n- [A] {part}")),
        prompt(user(f"again: {part}")),
        hidden={"A"},
    )
    assert lines[1]["messages"][1]["content"] == "open"
    assert [line["messages"][0]["content"] for line in lines[2:4]] == [
        {"hidden": True, "chars": 25},
        {"hidden": True, "chars": 34},
    ]


def test_hidden_words_are_nowhere_else(tmp_path: Path):
    outcome = Outcome(
        "failed", 1, ErrorReport("x", f"refused: {WORDS}", "B", WORDS), (("/H", WORDS),)
    )
    log_of(
        tmp_path,
        HumanAnswered(node="A", answer=WORDS),
        NodeStarted(node="B", visit=1, inputs=(Message("user", (TextPart(WORDS),)),)),
        UnitFinished(node="B", unit=1, units=1, seconds=0, outputs=(assistant(WORDS, "B"),)),
        NodeFinished(node="P", visit=1, seconds=0, outputs=(assistant(WORDS, "P"),)),
        ToolCallStarted(node="B", call_id="1", tool="t", arguments={"q": [{"text": WORDS}]}),
        ModelCallFinished(
            node="B",
            seconds=1,
            reply=Message(
                "assistant",
                f"So: {WORDS}",
                tool_calls=(ToolCall("1", "t", json.dumps({"q": WORDS})),),
            ),
            **CALL,
        ),
        ModelCallFailed(node="B", attempt=1, message=f"bad request: {WORDS}", **CALL),
        NodeFailed(node="B", visit=1, seconds=0, code="x", message=WORDS, hint=WORDS),
        Warned(code="x", message=f"it said {WORDS}"),
        RunFinished(run_id="r", outcome=outcome, answer=f"So: {WORDS}", usage=Usage(), seconds=1),
        hidden={"A"},
    )


def test_short_words_are_hidden_as_whole_messages_only(tmp_path: Path):
    lines = log_of(
        tmp_path, said("YES"), prompt(user("YES"), user("answer with YES or NO")), hidden={"A"}
    )
    assert [m["content"] for m in lines[1]["messages"]] == [
        {"hidden": True, "chars": 3},
        "answer with YES or NO",
    ]


def test_names_of_nodes_and_tools_stay_what_they_are(tmp_path: Path):
    started = ToolCallStarted(node="Researcher", call_id="1", tool="Researcher", arguments={})
    lines = log_of(tmp_path, said("Researcher"), started)
    assert (lines[1]["node"], lines[1]["tool"]) == ("Researcher", "Researcher")


@pytest.mark.parametrize("word", ["assistant", "text", "failed", "x"])
def test_words_of_the_format_stay_what_they_are(tmp_path: Path, word: str):
    message = Message("assistant", (TextPart("open"),), tool_calls=(ToolCall("x", "text", "{}"),))
    end = Outcome("failed", 1, ErrorReport("x", "open", "text"))
    lines = log_of(
        tmp_path,
        said(word),
        prompt(message),
        RunFinished(run_id="r", outcome=end, answer=None, usage=Usage(), seconds=1),
    )
    assert from_json(lines[1]["messages"][0]) == message
    assert lines[2]["outcome"] == {
        "status": "failed",
        "exit_code": 1,
        "error": {"code": "x", "message": "open", "node": "text", "hint": ""},
        "waiting": [],
    }


def test_lines_for_people_hold_no_hidden_words_either():
    stream = io.StringIO()
    lines = LogLines(stream, level="DEBUG", hidden={"A"})
    for event in (
        said(),
        said("YES"),
        NodeFinished(node="P", visit=1, seconds=0, outputs=(assistant("YES", "P"),)),
        NodeFinished(node="P", visit=2, seconds=0, outputs=(assistant(f"So: {WORDS}", "P"),)),
        ToolCallStarted(node="B", call_id="1", tool="t", arguments={"q": WORDS}),
        NodeFailed(node="B", visit=1, seconds=0, code="x", message=f"refused: {WORDS}"),
    ):
        lines(event)
    shown = stream.getvalue()
    assert "YES" not in shown
    assert "nobody may read" not in shown
    assert shown.count("kept out of logs") == 4


def test_where_nothing_is_hidden_nothing_is_changed(tmp_path: Path):
    lines = log_of(tmp_path, prompt(user("=== A ===\nopen", "A")))
    assert lines[0]["messages"][0]["content"] == "=== A ===\nopen"


def test_what_thousands_of_units_have_said_does_not_make_every_later_line_dear(tmp_path: Path):
    def best(units: int) -> float:
        folder = tmp_path / str(units)
        log = RunLog(folder, Redactor(), hidden={"A"})
        for number in range(units):
            log(said(f"unit number {number:06} has this to say"))
        event = prompt(user("a prompt like many others, of some length " * 5))
        times: list[float] = []
        for _ in range(5):
            begin = time.perf_counter()
            for _ in range(50):
                log(event)
            times.append(time.perf_counter() - begin)
        log.close()
        return min(times)

    assert best(4_000) < 10 * best(200)
