from __future__ import annotations

import pytest
from rich.cells import cell_len

from devall.cli.board import Board
from devall.cli.picture import Picture
from devall.cli.words import Teller
from devall.core.events import (
    Event,
    HumanAsked,
    LoopRound,
    ModelCallDelayed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunStarted,
    TextDelta,
    ToolCallStarted,
    UnitFailed,
    UnitFinished,
    UnitStarted,
)
from devall.core.shape import EdgeShape, GraphShape, NodeShape
from devall.core.usage import TokenUsage
from devall.telemetry.redaction import Redactor

SECRET = "sk-0123456789abcdef"
NOW = 100.0
CALL = {"path": "/A@1", "node": "A", "provider": "openai", "model": "gpt", "turn": 1}
INNER = GraphShape("s", (NodeShape("X", "agent"),))
GRAPH = GraphShape(
    "g",
    (
        NodeShape("A", "agent"),
        NodeShape("B", "human"),
        NodeShape("S", "subgraph", INNER),
        NodeShape("End", "passthrough"),
    ),
    (EdgeShape("A", "End"), EdgeShape("B", "End"), EdgeShape("S", "End")),
)
BEGIN = RunStarted(run_id="r", workflow="w", nodes=("A", "B", "S", "End"), graph=GRAPH, at=NOW - 10)
A_STARTED = NodeStarted(path="/A@1", node="A", visit=1, at=NOW - 3)


def drawn(
    *events: Event, width: int = 80, height: int = 24, is_ascii: bool = False, begin: Event = BEGIN
) -> list[str]:
    board = Board()
    for event in (begin, *events):
        board(event)
    picture = Picture(board, Teller(Redactor([SECRET])), is_ascii)
    lines = [line.plain.rstrip() for line in picture.lines(width, height, NOW)]
    assert max(map(cell_len, lines)) <= width
    return lines


def unit(number: int, units: int = 40) -> dict[str, object]:
    return {"path": f"/A@1/unit:{number}", "node": "A", "unit": number, "units": units}


def test_before_anything_runs_all_nodes_wait():
    assert drawn() == ["  nodes  · A  · B  · S  · End", "  10 s · 0/4 nodes"]


def test_what_was_asked_and_has_not_spoken_is_waited_for():
    lines = drawn(A_STARTED, ModelCallStarted(**CALL))
    assert lines == [
        "⠋ A  3.0 s · waits for gpt, turn 1",
        "  next   End waits for A, B, S",
        "  nodes  ● A  · B  · S  · End",
        "  10 s · 0/4 nodes · 1 running · 1 model call",
    ]
    lines = drawn(A_STARTED, ModelCallStarted(**CALL), TextDelta(path="/A@1", node="A", text="hm"))
    assert lines[:2] == ["⠋ A  3.0 s · gpt, turn 1", "  hm"]


def test_an_agent_that_has_not_come_to_its_model_waits_for_what_it_needs():
    assert drawn(A_STARTED)[0] == "⠋ A  3.0 s · waits for its tools and memories"
    soon = NodeStarted(path="/A@1", node="A", visit=1, at=NOW - 0.2)
    assert drawn(soon)[0] == "⠋ A  0.2 s"
    human = NodeStarted(path="/B@1", node="B", visit=1, at=NOW - 3)
    assert drawn(human)[0] == "⠋ B  3.0 s"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            ModelCallFailed(**CALL, attempt=1, message=f"503 for {SECRET}", wait=4, at=NOW - 1),
            "  again in 3.0 s: 503 for ***",
        ),
        (
            ModelCallDelayed(**CALL, seconds=4, at=NOW - 3),
            "  again in 1.0 s: gpt: its endpoint asked to wait",
        ),
    ],
)
def test_a_wait_says_how_long_it_still_is_and_why(event: Event, line: str):
    assert drawn(A_STARTED, ModelCallStarted(**CALL), event)[1] == line


def test_whoever_is_asked_is_waited_for():
    started = NodeStarted(path="/B@1", node="B", visit=1, at=NOW - 3)
    lines = drawn(started, HumanAsked(path="/B@1", node="B", question="Is it\ngood?"))
    assert lines[:2] == ["? B  3.0 s · waits for an answer", "  Is it good?"]
    assert "? B" in lines[3]


def test_units_are_a_bar_with_numbers():
    events = [UnitStarted(**unit(n)) for n in range(1, 31)]
    events += [UnitFinished(**unit(n), seconds=1) for n in range(1, 21)]
    events += [UnitFailed(**unit(n), seconds=1, code="c", message="m") for n in (21, 22)]
    lines = drawn(A_STARTED, *events)
    assert lines[0].startswith("⠋ A  3.0 s · 22/40 units · 2 failed · 8 running")
    assert lines[1] == "  " + "━" * 30 + "✗" * 3 + "╍" * 12 + "─" * 15


def test_open_tool_calls_are_shown_and_many_of_them_counted():
    calls = [
        ToolCallStarted(
            path="/A@1", node="A", call_id=str(n), tool="add", arguments={"n": n}, at=NOW - 1
        )
        for n in range(10)
    ]
    lines = drawn(A_STARTED, ModelCallStarted(**CALL), *calls)
    assert lines[1:5] == [
        "  add(n=0) 1.0 s",
        "  add(n=1) 1.0 s",
        "  add(n=2) 1.0 s",
        "  … 7 more tool calls",
    ]


def test_a_loop_shows_its_round_and_its_bound_until_that_is_passed():
    assert "  loops  A, B: round 2/5" in drawn(LoopRound(loop=("A", "B"), round=2, bound=5))
    assert "  loops  A, B: round 6" in drawn(LoopRound(loop=("A", "B"), round=6, bound=5))
    assert "  loops  A, B: round 6" in drawn(LoopRound(loop=("A", "B"), round=6))


def test_the_inside_of_a_subgraph_is_shown_in_place_of_its_node():
    outer = NodeStarted(path="/S@1", node="S", visit=1, at=NOW - 3)
    inner = NodeStarted(path="/S@1/X@1", node="S/X", visit=1, at=NOW - 0.2)
    assert drawn(outer)[0] == "⠋ S  3.0 s"
    assert drawn(outer, inner)[0] == "⠋ S/X  0.2 s"


def test_totals_count_tokens_and_money():
    done = ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(1200, 30), usd=0.0123)
    unpriced = ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(10, 5))
    started = (A_STARTED, ModelCallStarted(**CALL))
    lines = drawn(*started, done, width=120)
    assert lines[-1].endswith("1,200 tokens in, 30 out · $0.0123")
    lines = drawn(*started, unpriced, width=120)
    assert lines[-1].endswith("10 tokens in, 5 out · cost unknown")
    lines = drawn(*started, done, unpriced, width=120)
    assert lines[-1].endswith("1,210 tokens in, 35 out · at least $0.0123")


def test_totals_break_where_the_terminal_is_narrow():
    done = ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(1200, 30), usd=0.0123)
    over = [
        NodeSkipped(node="B"),
        NodeFailed(path="/S@1", node="S", visit=1, seconds=1, code="c", message="m"),
    ]
    lines = drawn(A_STARTED, ModelCallStarted(**CALL), done, *over, width=39, height=15)
    assert lines[-3:] == [
        "  10 s · 2/4 nodes · 1 running",
        "  1 failed · 1 skipped · 1 model call",
        "  1,200 tokens in, 30 out · $0.0123",
    ]


@pytest.mark.parametrize(("width", "height"), [(79, 24), (39, 15), (199, 50), (20, 10)])
@pytest.mark.parametrize("count", [3, 30, 1000])
def test_however_many_nodes_there_are_the_picture_fits(width: int, height: int, count: int):
    names = tuple(f"node number {n}" for n in range(count))
    edges = tuple(EdgeShape(names[n], names[(n + 7) % count]) for n in range(count))
    graph = GraphShape("g", tuple(NodeShape(n, "agent") for n in names), edges)
    begin = RunStarted(run_id="r", workflow="w", nodes=names, graph=graph, at=NOW - 10)
    events: list[Event] = []
    for at, name in enumerate(names[: count * 2 // 3]):
        place = {"path": f"/{name}@1", "node": name}
        events.append(NodeStarted(**place, visit=1, at=NOW - 1))
        events.append(ModelCallStarted(**CALL | place))
        events.append(TextDelta(**place, text="word " * 100))
        if at % 2:
            events.append(NodeFinished(**place, visit=1, seconds=1))
    events.append(LoopRound(loop=names, round=2, bound=3))
    lines = drawn(*events, begin=begin, width=width, height=height)
    assert len(lines) <= max(10, height // 2 + 1)
    assert any("●" in line for line in lines)
    assert lines[-1].strip()


def test_without_other_signs_the_picture_is_ascii():
    events = [
        A_STARTED,
        UnitStarted(**unit(1)),
        UnitFailed(**unit(1), seconds=1, code="c", message="m"),
        ModelCallStarted(**CALL),
        TextDelta(path="/A@1", node="A", text="word " * 100),
        LoopRound(loop=("A", "B", "S", "End"), round=2, bound=5),
    ]
    assert all(line.isascii() for line in drawn(*events, is_ascii=True))
