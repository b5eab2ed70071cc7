from __future__ import annotations

import itertools

from devall.core.events import (
    LoopLeft,
    LoopRound,
    ModelCallFinished,
    ModelCallStarted,
    NodeFinished,
    NodeStarted,
    RunStarted,
    UnitFinished,
    UnitStarted,
)
from devall.history.story import story_of
from devall.page.clock import clock_of
from devall.page.timeline import MOST_BARS, MOST_LANES, MOST_ROUNDS, timeline_of


def node(path, start, end, visit=1):
    name = "/".join(part.rpartition("@")[0] for part in path.split("/") if "@" in part)
    return [
        NodeStarted(at=start, path=path, node=name, visit=visit),
        NodeFinished(at=end, path=path, node=name, visit=visit, seconds=end - start),
    ]


def call(path, turn, start, end):
    made = {"path": path, "node": "A", "provider": "p", "model": "m", "turn": turn}
    return [
        ModelCallStarted(at=start, **made),
        ModelCallFinished(at=end, seconds=end - start, **made),
    ]


def drawn(*events):
    told = [RunStarted(at=0, run_id="r", workflow="w")]
    told += sorted(itertools.chain.from_iterable(events), key=lambda event: event.at)
    return timeline_of(story_of(told), clock_of(told), {}, lambda text: text)


def test_nodes_of_a_subgraph_stand_below_it_and_are_indented():
    found = drawn(node("/S@1", 0, 9), node("/B@1", 1, 3), node("/S@1/X@1", 2, 4))
    assert [(lane.name, lane.depth) for lane in found.lanes] == [("S", 0), ("X", 1), ("B", 0)]


def test_runs_of_a_node_at_the_same_time_lie_below_each_other():
    found = drawn(node("/S@1", 0, 9), node("/S@1/unit:1/X@1", 0, 5), node("/S@1/unit:2/X@1", 1, 6))
    bars = next(lane.bars for lane in found.lanes if lane.name == "X")
    assert bars[0].y != bars[1].y
    assert bars[0].x < bars[1].x < bars[0].x + bars[0].width


def test_the_rounds_of_a_loop_cover_its_time_however_many_there_are():
    for many in (3, 10 * MOST_ROUNDS + 7):
        rounds = [LoopRound(at=n, loop=("A",), round=n + 1) for n in range(many)]
        end = LoopLeft(at=many, loop=("A",), rounds=many, exited=True)
        lane = drawn(node("/A@1", 0, many), [*rounds, end]).lanes[0]
        assert lane.is_loop
        assert len(lane.bars) <= MOST_ROUNDS
        assert lane.bars[0].x == 0
        assert lane.bars[-1].x + lane.bars[-1].width > 99.8
        assert str(many) in lane.bars[-1].title


def test_what_happened_within_runs_is_drawn_as_a_whole_or_not_at_all():
    few = drawn(node("/A@1", 0, 9), call("/A@1", 1, 1, 2), call("/A@1", 2, 3, 4)).lanes[0]
    assert [bar.look for bar in few.bars] == ["visit", "model", "model"]
    calls = [call("/A@1", n, n, n + 1) for n in range(MOST_BARS + 1)]
    lots = drawn(node("/A@1", 0, MOST_BARS + 9), *calls).lanes[0]
    assert [bar.look for bar in lots.bars] == ["visit"]


def test_of_many_nodes_those_that_took_longest_are_shown_and_all_are_counted():
    nodes = [node(f"/N{n}@1", n, n + 1 + (n % 7 == 0) * 50) for n in range(MOST_LANES * 3)]
    found = drawn(*nodes)
    assert len(found.lanes) == MOST_LANES
    assert len(found.folded) == MOST_LANES * 2
    assert len(found.rows) == MOST_LANES * 3
    assert {f"N{n}" for n in range(0, MOST_LANES * 3, 7)} <= {lane.name for lane in found.lanes}
    assert found.overview is not None
    assert found.overview.crowd


def test_a_crowd_of_units_is_one_lane_and_few_units_are_bars():
    def units(many):
        told = []
        for n in range(1, many + 1):
            known = {"path": f"/A@1/unit:{n}", "node": "A", "unit": n, "units": many}
            told += [UnitStarted(at=1, **known), UnitFinished(at=2, seconds=1, **known)]
        return drawn(node("/A@1", 0, 3), told).lanes[1]

    assert len(units(4).bars) == 4
    crowd = units(400)
    assert not crowd.bars
    assert (crowd.name, crowd.about) == ("400 units", "400 at once")


def test_every_run_of_a_node_is_a_row_of_the_table():
    found = drawn(node("/A@1", 0, 2), node("/A@2", 3, 7, visit=2))
    assert [(row.node, row.number, row.took, row.status) for row in found.rows] == [
        ("A", 1, "2.0 s", "completed"),
        ("A", 2, "4.0 s", "completed"),
    ]
