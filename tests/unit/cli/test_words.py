from __future__ import annotations

import pytest

from devall.cli.views import as_text
from devall.cli.words import Teller, count, duration, money
from devall.core.events import (
    EdgeFired,
    EmbeddingFinished,
    Event,
    HistoryCut,
    HumanAnswered,
    HumanAsked,
    LoopLeft,
    LoopRound,
    MemoryIndexed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    UnitFailed,
    UnitFinished,
    UnitStarted,
    Warned,
)
from devall.core.messages import Message, ToolCall, assistant, user
from devall.core.usage import TokenUsage, Usage
from devall.telemetry.redaction import Redactor

CALL = {"node": "A", "provider": "openai", "model": "gpt", "turn": 1}
SECRET = "sk-0123456789"


def told(*events: Event, **options: bool) -> list[str]:
    teller = Teller(Redactor([SECRET]), **options)
    lines = [teller.line(event) for event in events]
    return [as_text(line) for line in lines if line is not None]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (RunStarted(run_id="r", workflow="w.yaml", nodes=("A",)), "run r: w.yaml, 1 node"),
        (ModelCallStarted(**CALL), "A: gpt is asked"),
        (
            MemoryIndexed(store="notes", done=64, files=103, passages=1200),
            "memory notes: 64 of 103 files read, 1,200 passages",
        ),
        (
            NodeFinished(node="A", visit=1, seconds=1.24, outputs=(assistant("one\n\ntwo"),)),
            "A: done in 1.2 s: one two",
        ),
        (
            NodeFinished(node="A", visit=3, seconds=0.011),
            "A (run 3): done in 0.01 s, without a word",
        ),
        (
            NodeFinished(
                node="A", visit=1, seconds=70, outputs=(assistant("secret"),), log_output=False
            ),
            "A: done in 1 min 10 s (its output is kept out of logs)",
        ),
        (
            NodeFailed(node="A", visit=1, seconds=1, code="model", message="401"),
            "A: failed after 1.0 s: 401 [model]",
        ),
        (
            NodeFailed(node="A", visit=1, seconds=1, code="model", message="401", continued=True),
            "warning: A: failed after 1.0 s: 401 [model]; the run goes on without it",
        ),
        (NodeSkipped(node="A"), "A: skipped"),
        (LoopRound(loop=("A", "B"), round=2), "loop A, B: round 2"),
        (LoopLeft(loop=("A",), rounds=3, exited=True), "loop A: left after 3 rounds"),
        (
            LoopLeft(loop=("A",), rounds=1, exited=False),
            "loop A: ended, as nothing triggered another round, after 1 round",
        ),
        (
            ModelCallFailed(**CALL, attempt=1, message="503", wait=2.0),
            "warning: A: 503; again in 2.0 s",
        ),
        (HumanAsked(node="A", question="good?"), "A: asks a human: good?"),
        (Warned(code="c", message="odd", node="A"), "warning: A: odd [c]"),
        (Warned(code="c", message="odd"), "warning: odd [c]"),
    ],
)
def test_what_is_said_about_an_event(event: Event, words: str):
    assert told(event) == [words]


@pytest.mark.parametrize(
    "event",
    [
        NodeStarted(node="A", visit=1),
        EdgeFired(source="A", target="B", edge=0),
        TextDelta(node="A", text="x"),
        LoopRound(loop=("A",), round=1),
        ModelCallStarted(**{**CALL, "turn": 2}),
        ModelCallStarted(**CALL, attempt=2),
        ModelCallFailed(**CALL, attempt=5, message="the node's failure says it"),
    ],
)
def test_what_matters_little_is_not_said(event: Event):
    assert told(event) == []


UNIT = {"node": "M", "unit": 3, "units": 40}


@pytest.mark.parametrize(
    ("event", "words"),
    [
        (NodeStarted(node="A", visit=1, inputs=(user("x"),)), "A: begins with 1 input"),
        (NodeStarted(node="A", visit=3), "A (run 3): begins with 0 inputs"),
        (EdgeFired(source="A", target="B", edge=0), "A -> B: fires"),
        (LoopRound(loop=("A", "B"), round=2, bound=5), "loop A, B: round 2 of at most 5"),
        (UnitStarted(**UNIT), "M: unit 3 of 40 begins"),
        (UnitFinished(**UNIT, seconds=1), "M: unit 3 of 40 done in 1.0 s"),
        (
            UnitFailed(**UNIT, layer=1, seconds=1, code="c", message="odd"),
            "M: unit 3 of 40 of layer 1 failed after 1.0 s: odd [c]",
        ),
        (
            ModelCallStarted(**CALL | {"turn": 2}, attempt=2, messages=(user("x"),), tools=("t",)),
            "A: gpt is asked, turn 2, attempt 2: 1 new message, 1 tool",
        ),
        (
            ModelCallFinished(
                **CALL, seconds=1, usage=TokenUsage(1200, 30), usd=0.5, finish_reason="stop"
            ),
            "A: gpt, turn 1 (1.0 s), 1,200 tokens in, 30 out, $0.5000, stop",
        ),
        (
            ModelCallFinished(
                **CALL,
                seconds=0,
                replayed=True,
                reply=Message("assistant", tool_calls=(ToolCall("1", "t", "{}"),)),
            ),
            "A: gpt, turn 1 (from the journal), tokens unknown, 1 tool call",
        ),
        (ModelCallFailed(**CALL, attempt=5, message="503"), "A: 503"),
        (
            ToolCallStarted(node="A", call_id="1", tool="t", arguments={"a": 1}),
            "A: t(a=1) begins",
        ),
        (
            ToolProgress(node="A", call_id="1", tool="t", progress=2, total=4, message="half"),
            "A: t: 2/4 half",
        ),
        (HumanAnswered(node="H", answer="yes\nindeed"), "H: was answered: yes indeed"),
        (
            HistoryCut(node="A", turn=3, left_out=2, shortened=1, tokens=900, most=1000),
            "A: turn 3: 2 messages left out, 1 shortened: 900 of at most 1,000 tokens",
        ),
        (
            EmbeddingFinished(store="s", provider="openai", model="e", texts=3, seconds=1),
            "memory s: 3 texts embedded by e in 1.0 s",
        ),
        (NodeSkipped(node="A"), "A: skipped"),
    ],
)
def test_whoever_wants_all_hears_of_every_event(event: Event, words: str):
    assert told(event, is_verbose=True) == [words]


def test_pieces_of_streaming_text_are_never_lines():
    assert told(TextDelta(node="A", text="x"), is_verbose=True) == []


def test_what_logs_must_not_hold_is_in_no_line():
    words = "what nobody may read"
    hidden = NodeFinished(
        node="A", visit=1, seconds=0, outputs=(assistant(words),), log_output=False
    )
    lines = told(
        hidden,
        NodeFinished(node="P", visit=1, seconds=0, outputs=(assistant(words),)),
        ToolCallStarted(node="B", call_id="1", tool="t", arguments={"q": words}),
        ToolCallFinished(node="B", call_id="1", tool="t", seconds=0, result=f"so: {words}"),
        is_verbose=True,
    )
    assert len(lines) == 4
    assert words not in "".join(lines)


def test_a_tool_call_is_one_line_with_arguments_time_and_result():
    started = ToolCallStarted(node="A", call_id="1", tool="rand", arguments={"a": 1, "b": "x\ny"})
    finished = ToolCallFinished(node="A", call_id="1", tool="rand", seconds=0.5, result="7\n3")
    assert told(started, finished) == ['A: rand(a=1, b="x\\ny") (0.5 s) → 7 3']


def test_a_tool_call_that_failed_says_so():
    started = ToolCallStarted(node="A", call_id="1", tool="rand", arguments="no object")
    finished = ToolCallFinished(
        node="A", call_id="1", tool="rand", seconds=0.5, result="disk full", is_error=True
    )
    assert told(started, finished) == ['A: rand("no object") failed (0.5 s): disk full']


def test_calls_with_one_id_in_two_nodes_keep_their_arguments_apart():
    events = [
        ToolCallStarted(path=f"/{node}@1", node=node, call_id="1", tool="t", arguments={"n": node})
        for node in "AB"
    ] + [
        ToolCallFinished(path=f"/{node}@1", node=node, call_id="1", tool="t", seconds=0, result="r")
        for node in "AB"
    ]
    assert [line[:9] for line in told(*events)] == ['A: t(n="A', 'B: t(n="B']


def test_secrets_and_control_characters_are_in_no_line():
    events = [
        ToolCallStarted(
            node="A", call_id="1", tool="t", arguments={"api_key": "short", "q": SECRET}
        ),
        ToolCallFinished(node="A", call_id="1", tool="t", seconds=0, result="x" * 150 + SECRET),
        NodeFinished(
            node="A\x1b[0m", visit=1, seconds=0, outputs=(assistant(f"\x1b[1m{SECRET}\r\n"),)
        ),
        Warned(code="c", message=f"url?key={SECRET}"),
    ]
    text = "\n".join(told(*events))
    assert "sk-0" not in text
    assert "short" not in text
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0.00 s"),
        (0.094, "0.09 s"),
        (0.096, "0.1 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (59.6, "1 min 00 s"),
        (3599.6, "1 h 00 min"),
        (90061, "25 h 01 min"),
    ],
)
def test_durations_are_said_as_people_do(seconds: float, words: str):
    assert duration(seconds) == words


def test_numbers_have_their_noun():
    assert [count(n, "node") for n in (0, 1, 1200)] == ["0 nodes", "1 node", "1,200 nodes"]


def test_a_thousand_units_are_told_of_in_ten_lines_and_each_that_is_left_out():
    units = [
        UnitFinished(path=f"/A@1/unit:{n}", node="A", unit=n, units=1000, seconds=0.1)
        for n in range(1, 1000)
    ]
    failed = UnitFailed(
        path="/A@1/unit:1000",
        node="A",
        unit=1000,
        units=1000,
        seconds=0.1,
        code="model",
        message=f"no {SECRET}",
        continued=True,
    )
    lines = told(*units, failed)
    assert lines[:2] == ["A: 100/1,000 units done", "A: 200/1,000 units done"]
    assert lines[-1] == "warning: A: unit 1000 of 1,000 failed and is left out: no *** [model]"
    assert len(lines) == 10


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        (Usage(model_calls=1, usd=0.0123), "$0.0123"),
        (Usage(model_calls=2, usd=0.0123, unpriced_calls=1), "at least $0.0123"),
        (Usage(model_calls=1, usd=None, unpriced_calls=1), "cost unknown"),
        (Usage(model_calls=2, usd=0.0, unpriced_calls=1), "cost unknown"),
    ],
)
def test_money_that_is_not_known_is_not_made_up(usage: Usage, words: str):
    assert money(usage) == words
