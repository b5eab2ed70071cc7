from __future__ import annotations

import pytest

from devall.core.events import (
    LoopLeft,
    LoopRound,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeStarted,
    RunResumed,
    RunStarted,
    ToolCallFinished,
    ToolCallStarted,
)
from devall.page.clock import Clock, Span, clock_of


def begun(at, turn=1, changed=()):
    events = [RunStarted(at=at, run_id="r", workflow="w")]
    if turn > 1:
        events.append(RunResumed(at=at, run_id="r", turn=turn, kept=1, changed=changed))
    return events


def started(node, at):
    return NodeStarted(at=at, path=f"/{node}@1", node=node, visit=1)


def finished(node, at):
    return NodeFinished(at=at, path=f"/{node}@1", node=node, visit=1, seconds=1)


def failed(node, at):
    return NodeFailed(
        at=at, path=f"/{node}@1", node=node, visit=1, seconds=1, code="c", message="m"
    )


def pieces(spans):
    return [(span.start, span.end, span.is_open, span.has_failed) for span in spans]


def test_the_pause_between_two_processes_takes_no_time():
    clock = clock_of(
        [
            *begun(100),
            started("A", 101),
            finished("A", 104),
            *begun(5000, 2),
            started("A", 5000),
            finished("A", 5000),
            started("B", 5001),
            finished("B", 5003),
        ]
    )
    assert clock.seconds == 4 + 3
    assert clock.pauses == [(4, 4896)]
    assert pieces(clock.visits["/A@1"]) == [(1, 4, False, False)]
    assert pieces(clock.visits["/B@1"]) == [(5, 7, False, False)]


def test_what_broke_off_with_its_process_is_told_in_both():
    clock = clock_of(
        [
            *begun(0),
            started("A", 1),
            started("B", 2),
            failed("B", 4),
            *begun(100, 2),
            started("A", 100),
            finished("A", 105),
            started("B", 101),
            finished("B", 103),
        ]
    )
    assert pieces(clock.visits["/A@1"]) == [(1, 4, True, False), (4, 9, False, False)]
    assert pieces(clock.visits["/B@1"]) == [(2, 4, False, True), (5, 7, False, False)]


def test_what_a_later_process_did_anew_was_never_there():
    clock = clock_of(
        [
            *begun(0),
            started("A", 0),
            finished("A", 9),
            *begun(100, 2, ("A",)),
            started("A", 100),
            finished("A", 101),
        ]
    )
    assert pieces(clock.visits["/A@1"]) == [(9, 10, False, False)]


def test_attempts_and_the_waits_between_them_are_told_apart():
    def call(kind, at, **more):
        return kind(at=at, path="/A@1", node="A", provider="p", model="m", turn=1, **more)

    clock = clock_of(
        [
            *begun(0),
            call(ModelCallStarted, 1),
            call(ModelCallFailed, 2, attempt=1, message="no", wait=5),
            call(ModelCallStarted, 6, attempt=2),
            call(ModelCallFinished, 8, seconds=2),
        ]
    )
    assert pieces(clock.calls["/A@1", 1]) == [(1, 2, False, True), (6, 8, False, False)]
    assert pieces(clock.waits["/A@1", 1]) == [(2, 6, False, False)]


@pytest.mark.parametrize("is_error", [False, True])
def test_a_tool_whose_result_is_known_is_not_called_again(is_error):
    def use(at):
        known = {"path": "/A@1", "node": "A", "call_id": "c", "tool": "t"}
        return [
            ToolCallStarted(at=at, arguments={}, **known),
            ToolCallFinished(at=at + 2, seconds=2, result="", is_error=is_error, **known),
        ]

    clock = clock_of([*begun(0), *use(1), *begun(50, 2), *use(50)])
    assert pieces(clock.uses["/A@1", "c"]) == [(1, 3, False, is_error)]


def test_rounds_of_a_loop_go_on_in_the_process_that_took_the_run_up():
    loop = ("A", "B")

    def begins(number, at):
        return LoopRound(at=at, loop=loop, round=number)

    clock = clock_of(
        [
            *begun(0),
            begins(1, 0),
            begins(2, 3),
            started("A", 5),
            *begun(100, 2),
            begins(1, 100),
            begins(2, 100),
            begins(3, 104),
            LoopLeft(at=106, loop=loop, rounds=3, exited=True),
        ]
    )
    rounds = clock.rounds["", loop]
    assert [(each.number, each.span.start, each.span.end) for each in rounds] == [
        (1, 0, 3),
        (2, 3, 5),
        (2, 5, 9),
        (3, 9, 11),
    ]


def test_a_wall_clock_that_was_set_back_takes_no_time_back():
    clock = clock_of([*begun(100), started("A", 90), finished("A", 103)])
    assert pieces(clock.visits["/A@1"]) == [(0, 3, False, False)]


def test_what_goes_on_has_lasted_until_now():
    clock = clock_of([*begun(0), started("A", 1)], 9)
    assert clock.seconds == 9
    assert pieces(clock.visits["/A@1"]) == [(1, 9, True, False)]


def test_a_run_without_events_has_no_time():
    assert clock_of([]) == Clock()
    assert Span(1, 3).seconds == 2
