"""Which vectors are most like one."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.memory.vectors import Vector, VectorTable, decoded, encoded, likeness, unit

FLOATS = st.floats(-1, 1, width=32)


def table(*vectors: Vector) -> VectorTable:
    return VectorTable((v.tobytes() for v in vectors), len(vectors), len(vectors[0]))


@given(
    st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=12),
    st.lists(FLOATS, min_size=3, max_size=3),
    st.integers(1, 13),
)
def test_the_nearest_are_those_of_a_plain_sort(
    rows: list[list[float]], sought: list[float], top_k: int
):
    vectors, wanted = [unit(row) for row in rows], unit(sought)
    found = table(*vectors).nearest(wanted, top_k)
    best = sorted((likeness(wanted, v) for v in vectors), reverse=True)[:top_k]
    assert [likeness(wanted, vectors[row]) for row in found] == pytest.approx(best, abs=1e-5)
    assert len(set(found)) == len(found)


def test_of_equals_the_last_comes_first():
    one, other = unit([1, 0]), unit([0, 1])
    assert table(one, other, one, one).nearest(one, 2) == [3, 2]
    assert table(one, other, one, one).nearest(one, 9) == [3, 2, 0, 1]


def test_what_is_less_alike_than_the_threshold_is_left_out():
    rows = table(unit([1, 0]), unit([1, 1]), unit([0, 1]), unit([-1, 0]))
    assert rows.nearest(unit([1, 0]), 4, 0.5) == [0, 1]
    assert rows.nearest(unit([1, 0]), 4, 1) == [0]
    assert len(rows.nearest(unit([1, 0]), 4, -1)) == 4


@given(st.lists(st.floats(width=32, allow_nan=False), max_size=20))
def test_a_vector_survives_its_text_form(values: list[float]):
    found = decoded(encoded(array("f", values)))
    assert found is not None
    assert list(found) == values
