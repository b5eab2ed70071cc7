from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.page.axis import MOST_TICKS, crowd_of, most_at_once, ticks_of, tracks_of
from devall.page.clock import Span

SPANS = st.lists(
    st.tuples(st.integers(0, 50), st.integers(0, 20)).map(lambda p: Span(p[0], p[0] + p[1])),
    max_size=40,
)


@given(SPANS)
def test_no_two_spans_of_a_track_lie_upon_each_other(spans):
    tracks = tracks_of(spans)
    for track in set(tracks):
        mine = sorted(
            (s for s, at in zip(spans, tracks, strict=True) if at == track),
            key=lambda s: (s.start, s.end),
        )
        assert all(a.end <= b.start for a, b in itertools.pairwise(mine))


@given(SPANS)
def test_there_are_no_more_tracks_than_things_at_once(spans):
    longer = [Span(s.start, s.end + 1) for s in spans]
    assert max(tracks_of(longer), default=-1) + 1 == most_at_once(longer)


@given(st.floats(1e-3, 1e8))
def test_ticks_are_few_and_within_the_axis(seconds):
    ticks = list(ticks_of(seconds))
    assert 1 <= len(ticks) <= MOST_TICKS + 1
    assert all(0 <= tick.x <= 100.001 for tick in ticks)
    assert len({tick.label for tick in ticks}) == len(ticks)


@pytest.mark.parametrize(
    ("seconds", "labels"),
    [
        (0.04, ["0", "0.005 s", "0.010 s"]),
        (3.0, ["0", "0.5 s", "1.0 s"]),
        (40, ["0", "5 s", "10 s"]),
        (400, ["0", "1 min", "2 min"]),
        (7200, ["0", "15 min", "30 min"]),
        (200_000, ["0", "12 h", "1 d"]),
    ],
)
def test_ticks_stand_at_round_times(seconds, labels):
    assert [tick.label for tick in ticks_of(seconds)][:3] == labels


def test_a_crowd_is_drawn_as_steps_up_to_its_top():
    spans = [Span(0, 10), Span(2, 8), Span(4, 6)]
    path = crowd_of(spans, 10, most_at_once(spans))
    heights = [float(each) for each in re.findall(r"V([\d.]+)", path)]
    assert min(heights) == 0
    assert heights[-1] == 100
    assert path.startswith("M0 100")
    assert path.endswith("Z")
