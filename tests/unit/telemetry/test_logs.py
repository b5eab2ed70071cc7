from __future__ import annotations

import io
import stat
from pathlib import Path

import pytest
import structlog

from devall.core.events import (
    EdgeFired,
    Event,
    HumanAsked,
    LoopLeft,
    LoopRound,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunFinished,
    RunStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    Warned,
)
from devall.core.messages import assistant
from devall.core.outcome import COMPLETED, ErrorReport, Outcome
from devall.core.usage import TokenUsage, Usage
from devall.telemetry.logs import LogLines
from devall.telemetry.redaction import Redactor

CALL = {"node": "A", "provider": "openai", "model": "m", "turn": 1}


def lines_of(*events: Event, level="INFO", secrets: tuple[str, ...] = ()) -> list[str]:
    stream = io.StringIO()
    log = LogLines(stream, level=level, redactor=Redactor(secrets))
    for event in events:
        log(event)
    log.close()
    return stream.getvalue().splitlines()


def test_a_line_says_when_how_grave_what_and_its_facts():
    event = NodeFinished(at=1.5, node="A b", visit=2, seconds=0.4204, outputs=(assistant("four"),))
    (line,) = lines_of(event)
    head, facts = line.split(" node=")
    assert head == "1970-01-01T00:00:01.500Z INFO node_finished"
    assert facts == '"A b" visit=2 seconds=0.42 outputs=1 chars=4'


@pytest.mark.parametrize(
    ("event", "level"),
    [
        (RunStarted(run_id="r", workflow="w"), "INFO"),
        (NodeStarted(node="A", visit=1), "DEBUG"),
        (NodeSkipped(node="A"), "INFO"),
        (NodeFailed(node="A", visit=1, seconds=1, code="x", message="m"), "ERROR"),
        (
            NodeFailed(node="A", visit=1, seconds=1, code="x", message="m", continued=True),
            "WARNING",
        ),
        (LoopRound(loop=("A",), round=2), "INFO"),
        (LoopLeft(loop=("A",), rounds=2, exited=True), "INFO"),
        (EdgeFired(source="A", target="B", edge=0), "DEBUG"),
        (ModelCallStarted(**CALL), "DEBUG"),
        (ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(3, 4)), "INFO"),
        (ModelCallFailed(**CALL, attempt=1, message="503", wait=2.0), "WARNING"),
        (ToolCallStarted(node="A", call_id="1", tool="t", arguments={}), "DEBUG"),
        (ToolProgress(node="A", call_id="1", tool="t", progress=1), "DEBUG"),
        (ToolCallFinished(node="A", call_id="1", tool="t", seconds=1, result="r"), "INFO"),
        (
            ToolCallFinished(
                node="A", call_id="1", tool="t", seconds=1, result="disk full", is_error=True
            ),
            "WARNING",
        ),
        (HumanAsked(node="A", question="?"), "INFO"),
        (Warned(code="c", message="m"), "WARNING"),
        (
            RunFinished(run_id="r", outcome=COMPLETED, answer="", usage=Usage(), seconds=1),
            "INFO",
        ),
        (
            RunFinished(
                run_id="r",
                outcome=Outcome("failed", 1, ErrorReport("x", "why")),
                answer=None,
                usage=Usage(),
                seconds=1,
            ),
            "ERROR",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_each_event_has_its_level_and_stands_in_no_log_above_it(event: Event, level: str):
    levels = ["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
    for at_level in levels:
        found = lines_of(event, level=at_level)
        if levels.index(at_level) > levels.index(level):
            assert found == []
        else:
            assert len(found) == 1
            assert f" {level} " in found[0]


def test_streaming_text_is_in_no_log():
    assert lines_of(TextDelta(node="A", text="x"), level="DEBUG") == []


def test_texts_are_shown_at_debug_only_and_not_where_the_file_forbids_it():
    said = (assistant("the words"),)
    event = NodeFinished(node="A", visit=1, seconds=1, outputs=said)
    private = NodeFinished(node="A", visit=1, seconds=1, outputs=said, log_output=False)
    assert "words" not in lines_of(event)[0]
    assert 'output="the words"' in lines_of(event, level="DEBUG")[0]
    assert "words" not in lines_of(private, level="DEBUG")[0]


def test_no_line_break_or_control_character_gets_into_a_line():
    (line,) = lines_of(Warned(code="c", message="one\ntwo\x1b[31mred"))
    assert line.isprintable()


def test_secrets_are_gone_before_texts_are_cut():
    secret = "sk-0123456789abcdef"
    event = Warned(code="c", message="x" * 190 + secret)
    (line,) = lines_of(event, secrets=(secret,))
    assert "sk-" not in line
    assert "***" in line


def test_a_runs_log_is_private_and_appended_to(tmp_path: Path):
    for _ in range(2):
        log = LogLines.to_file(tmp_path / "run", level="INFO", redactor=Redactor())
        log(Warned(code="c", message="m"))
        log.close()
    file = tmp_path / "run" / "run.log"
    assert file.read_text().count("\n") == 2
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_structlog_stays_as_its_user_configured_it(capsys: pytest.CaptureFixture[str]):
    before = structlog.get_config()
    lines_of(Warned(code="c", message="m"))
    assert structlog.get_config() == before
    assert not structlog.is_configured()
    assert capsys.readouterr() == ("", "")
