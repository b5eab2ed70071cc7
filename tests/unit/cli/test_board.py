from __future__ import annotations

from dataclasses import replace

from devall.cli.board import Board
from devall.cli.visits import Loop
from devall.core.events import (
    Event,
    HumanAnswered,
    HumanAsked,
    LoopLeft,
    LoopRound,
    ModelCallDelayed,
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
from devall.core.shape import EdgeShape, GraphShape, NodeShape
from devall.core.usage import TokenUsage, Usage

CALL = {"path": "/A@1", "node": "A", "provider": "openai", "model": "gpt", "turn": 1}
BEGIN = RunStarted(run_id="r", workflow="w", nodes=("A", "B", "C"), at=1)
UNIT_CALL = {"path": "/A@1/unit:1", "node": "A", "call_id": "1", "tool": "t"}
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
        ModelCallFailed(**CALL, attempt=1, message="503", wait=2, at=5),
    )
    visit = board.visits["/A@1"]
    assert (visit.note, visit.until, visit.is_asking) == ("503", 7, False)
    board(ModelCallStarted(**CALL, attempt=2))
    assert (visit.note, visit.until, visit.is_asking) == ("", 0, True)


def test_an_endpoint_that_asked_for_time_is_given_it():
    board = board_after(A_STARTED, ModelCallDelayed(**CALL, seconds=3, at=5))
    visit = board.visits["/A@1"]
    assert (visit.note, visit.until) == ("gpt: its endpoint asked to wait", 8)


def test_open_tool_calls_show_their_progress():
    call = {"path": "/A@1", "node": "A", "call_id": "1", "tool": "t"}
    board = board_after(A_STARTED, ToolCallStarted(**call, arguments={"a": 1}, at=3))
    board(ToolProgress(**call, progress=2, total=4, message="half"))
    assert board.visits["/A@1"].calls["/A@1", "1"].progress == "2/4 half"
    board(ToolCallFinished(**call, seconds=1, result="r"))
    assert board.visits["/A@1"].calls == {}
    assert board.tool_calls == 1


def test_a_loop_shows_its_round_while_it_goes():
    board = board_after(
        LoopRound(loop=("A", "B"), round=1, bound=3), LoopRound(loop=("A", "B"), round=2, bound=3)
    )
    assert list(board.loops.values()) == [Loop(("A", "B"), 2, 3)]
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
    board = board_after(A_STARTED, unit(1, 2, 1), unit(2, 2, 1))
    units = board.visits["/A@1"].units
    assert units is not None
    assert (units.done, units.failed, len(units.open), units.total) == (0, 0, 2, 2)
    board(done(1, 2, 1))
    board(failed)
    assert (units.done, units.failed, units.over, len(units.open)) == (1, 1, 2, 0)
    board(unit(1, 1, 2))
    newest = board.visits["/A@1"].units
    assert newest is not None
    assert (newest.over, newest.total, newest.layer) == (0, 1, 2)


def test_calls_of_one_id_in_two_units_are_two():
    calls = [
        ToolCallStarted(path=f"/A@1/unit:{n}", node="A", call_id="1", tool="t", arguments={})
        for n in (1, 2)
    ]
    board = board_after(A_STARTED, *calls)
    assert len(board.visits["/A@1"].calls) == 2
    board(ToolCallFinished(**UNIT_CALL, seconds=1, result="r"))
    assert list(board.visits["/A@1"].calls) == [("/A@1/unit:2", "1")]


def test_money_is_counted_where_it_is_known():
    board = board_after(A_STARTED, ModelCallStarted(**CALL))
    assert board.usage == Usage(model_calls=1)
    board(ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(5, 2)))
    assert (board.usage.usd, board.usage.unpriced_calls) == (None, 1)
    board(ModelCallFinished(**CALL, seconds=1, usage=TokenUsage(5, 2), usd=0.5))
    assert (board.usage.usd, board.usage.unpriced_calls) == (0.5, 1)
    board(ModelCallFailed(**CALL, attempt=1, message="m", usage=TokenUsage(3, 0), usd=0.25))
    assert (board.usage.usd, board.usage.input_tokens) == (0.75, 13)


GRAPH = GraphShape(
    "g",
    (NodeShape("A", "agent"), NodeShape("B", "human"), NodeShape("C", "passthrough")),
    (EdgeShape("A", "C"), EdgeShape("B", "C"), EdgeShape("A", "B", trigger=False)),
)


def test_what_comes_next_waits_for_what_is_not_over():
    board = Board()
    board(replace(BEGIN, graph=GRAPH))
    assert list(board.next()) == []
    board(A_STARTED)
    assert list(board.next()) == [("C", ["A", "B"])]
    board(NodeStarted(path="/B@1", node="B", visit=1))
    board(NodeFinished(path="/A@1", node="A", visit=1, seconds=1))
    assert list(board.next()) == [("C", ["B"])]


def test_a_node_that_had_nothing_to_do_runs_no_more():
    board = board_after(A_STARTED, NodeSkipped(node="A"))
    assert (board.nodes["A"], board.visits) == ("skipped", {})


def test_the_kinds_of_nodes_are_known_inside_of_subgraphs_too():
    inner = GraphShape("s", (NodeShape("X", "python"),))
    board = Board()
    board(replace(BEGIN, graph=GraphShape("g", (NodeShape("S", "subgraph", inner),))))
    assert board.types == {"S": "subgraph", "S/X": "python"}
