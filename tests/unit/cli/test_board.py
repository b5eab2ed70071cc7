from __future__ import annotations

from devall.cli.board import Board
from devall.core.events import (
    Event,
    HumanAnswered,
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
    UnitFailed,
    UnitFinished,
    UnitStarted,
)
from devall.core.outcome import COMPLETED
from devall.core.usage import TokenUsage, Usage

CALL = {"path": "/A@1", "node": "A", "provider": "openai", "model": "gpt", "turn": 1}
BEGIN = RunStarted(run_id="r", workflow="w", nodes=("A", "B", "C"), at=1)
A_STARTED = NodeStarted(path="/A@1", node="A", visit=1, at=2)


def board_after(*events: Event) -> Board:
    board = Board()
    for event in (BEGIN, *events):
        board(event)
    return board


def test_nodes_wait_run_and_end():
    board = board_after(
        A_STARTED,
        NodeFinished(path="/A@1", node="A", visit=1, seconds=1),
        NodeStarted(path="/B@1", node="B", visit=1),
        NodeFailed(path="/B@1", node="B", visit=1, seconds=1, code="c", message="m"),
    )
    assert board.nodes == {"A": "done", "B": "failed", "C": "waiting"}
    board(NodeSkipped(node="C"))
    assert board.of("skipped", "done") == ["A", "C"]
    assert board.visits == {}


def test_a_node_runs_as_long_as_one_of_its_runs_does():
    board = board_after(
        A_STARTED,
        NodeStarted(path="/A@2", node="A", visit=2),
        NodeFinished(path="/A@1", node="A", visit=1, seconds=1),
    )
    assert board.nodes["A"] == "running"
    assert list(board.visits) == ["/A@2"]


def test_nodes_of_subgraphs_turn_up_when_they_run():
    board = board_after(NodeStarted(path="/C@1/X@1", node="C/X", visit=1))
    assert list(board.nodes) == ["A", "B", "C", "C/X"]
    assert board.root == ("A", "B", "C")


def test_text_streams_until_the_model_has_answered():
    board = board_after(
        A_STARTED, ModelCallStarted(**CALL), TextDelta(path="/A@1", node="A", text="a")
    )
    board(TextDelta(path="/A@1", node="A", text="b"))
    assert board.visits["/A@1"].tail == "ab"
    board(ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(5, 2)))
    assert board.visits["/A@1"].tail == ""
    assert (board.model_calls, board.input_tokens, board.output_tokens) == (1, 5, 2)


def test_of_a_long_text_the_end_is_kept():
    board = board_after(A_STARTED, ModelCallStarted(**CALL))
    for number in range(100_000):
        board(TextDelta(path="/A@1", node="A", text=f"{number} "))
    tail = board.visits["/A@1"].tail
    assert tail.endswith("99998 99999 ")
    assert len(tail) < 10_000


def test_of_several_units_the_text_of_the_last_one_asked_is_kept():
    board = board_after(
        A_STARTED,
        ModelCallStarted(**{**CALL, "path": "/A@1/unit:1"}),
        ModelCallStarted(**{**CALL, "path": "/A@1/unit:2"}),
        TextDelta(path="/A@1/unit:1", node="A", text="one"),
        TextDelta(path="/A@1/unit:2", node="A", text="two"),
        ModelCallFinished(**{**CALL, "path": "/A@1/unit:1"}, seconds=1),
    )
    assert board.visits["/A@1"].tail == "two"
    assert board.model_calls == 2


def test_a_failed_attempt_is_noted_until_the_next_one():
    board = board_after(
        A_STARTED,
        ModelCallStarted(**CALL),
        ModelCallFailed(**CALL, attempt=1, message="503", wait=2),
    )
    assert board.visits["/A@1"].note == "again in 2.0 s: 503"
    board(ModelCallStarted(**CALL, attempt=2))
    assert board.visits["/A@1"].note == ""


def test_open_tool_calls_show_their_progress():
    call = {"path": "/A@1", "node": "A", "call_id": "1", "tool": "t"}
    board = board_after(A_STARTED, ToolCallStarted(**call, arguments={"a": 1}, at=3))
    board(ToolProgress(**call, progress=2, total=4, message="half"))
    assert board.visits["/A@1"].calls["1"].progress == "2/4 half"
    board(ToolCallFinished(**call, seconds=1, result="r"))
    assert board.visits["/A@1"].calls == {}
    assert board.tool_calls == 1


def test_a_loop_shows_its_round_while_it_goes():
    board = board_after(LoopRound(loop=("A", "B"), round=1), LoopRound(loop=("A", "B"), round=2))
    assert list(board.loops.values()) == [(("A", "B"), 2)]
    board(LoopLeft(loop=("A", "B"), rounds=2, exited=True))
    assert board.loops == {}


def test_who_is_asked_is_asked_until_the_answer():
    board = board_after(A_STARTED, HumanAsked(path="/A@1", node="A", question="good?"))
    assert (board.nodes["A"], board.visits["/A@1"].question) == ("asking", "good?")
    board(HumanAnswered(path="/A@1", node="A", answer="yes"))
    assert (board.nodes["A"], board.visits["/A@1"].question) == ("running", "")


def test_nothing_goes_on_when_the_run_is_over():
    board = board_after(A_STARTED, LoopRound(loop=("A",), round=1))
    board(RunFinished(run_id="r", outcome=COMPLETED, answer="", usage=Usage(), seconds=1))
    assert (board.visits, board.loops, board.outcome) == ({}, {}, COMPLETED)


def test_events_of_runs_that_were_never_seen_do_no_harm():
    board = board_after(
        TextDelta(path="/X@1", node="X", text="x"),
        ToolCallFinished(path="/X@1", node="X", call_id="1", tool="t", seconds=0, result=""),
        NodeFinished(path="/X@1", node="X", visit=1, seconds=0),
        LoopLeft(loop=("X",), rounds=1, exited=True),
    )
    assert board.nodes["X"] == "done"


def unit(number: int, units: int, layer: int = 0) -> UnitStarted:
    path = f"/A@1/unit:{f'{layer}.' if layer else ''}{number}"
    return UnitStarted(path=path, node="A", unit=number, units=units, layer=layer)


def done(number: int, units: int, layer: int = 0) -> UnitFinished:
    start = unit(number, units, layer)
    return UnitFinished(
        path=start.path, node="A", unit=number, units=units, layer=layer, seconds=0.1
    )


def test_units_that_are_over_are_counted_layer_by_layer():
    failed = UnitFailed(
        path="/A@1/unit:1.2", node="A", unit=2, units=2, layer=1, seconds=0, code="c", message="m"
    )
    board = board_after(A_STARTED, unit(1, 2, 1), unit(2, 2, 1), done(1, 2, 1), failed)
    visit = board.visits["/A@1"]
    assert (visit.units_done, visit.units, visit.layer) == (2, 2, 1)
    board(unit(1, 1, 2))
    assert (visit.units_done, visit.units, visit.layer) == (0, 1, 2)
