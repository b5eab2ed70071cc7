"""The ids of calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from devall.agents.calls import with_unique_ids
from devall.core.messages import ToolCall

IDS = st.sampled_from(["", "a", "b", "call_1_1", "call_1_2", "call_1_2_"])


def calls(*ids: str) -> list[ToolCall]:
    return [ToolCall(i, "t", "{}") for i in ids]


@given(st.lists(IDS, max_size=6), st.sets(IDS))
def test_ids_are_never_empty_nor_used_twice(ids: list[str], taken: set[str]):
    found = [call.id for call in with_unique_ids(calls(*ids), 1, taken)]
    assert "" not in found
    assert len({*found, *taken}) == len(found) + len(taken)


def test_ids_that_are_unique_stay():
    assert [c.id for c in with_unique_ids(calls("x", "y"), 1, {"z"})] == ["x", "y"]


def test_made_ids_depend_on_nothing_but_the_conversation():
    assert [c.id for c in with_unique_ids(calls("", "x", "x"), 3, ())] == [
        "call_3_1",
        "x",
        "call_3_3",
    ]


def test_what_the_provider_wants_back_stays():
    [found] = with_unique_ids([ToolCall("", "t", "{}", {"thought_signature": "s"})], 1, ())
    assert found.extra == {"thought_signature": "s"}


def test_an_id_that_is_no_text_gives_way():
    assert [c.id for c in with_unique_ids(calls("\ud800", "é"), 2, ())] == ["call_2_1", "é"]
