"""Each call with its one result."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from devall.agents.history import UNKNOWN_OUTCOME, answered
from devall.core.messages import Message, ToolCall, assistant, user


def call(*ids: str) -> Message:
    return Message("assistant", "", "A", tool_calls=tuple(ToolCall(i, "t", "{}") for i in ids))


def result(call_id: str, text: str = "r") -> Message:
    return Message("tool", text, "A", tool_call_id=call_id)


PIECES = st.one_of(
    st.builds(user, st.just("u")),
    st.builds(assistant, st.just("a")),
    st.lists(st.sampled_from("123"), min_size=1, max_size=3, unique=True).map(lambda i: call(*i)),
    st.sampled_from("1234").map(result),
)


@given(st.lists(PIECES, max_size=12))
def test_whatever_comes_in_each_call_has_exactly_one_result_right_behind_it(
    messages: list[Message],
):
    found = list(answered(messages))
    while found:
        message = found.pop(0)
        assert message.role != "tool"
        for expected in message.tool_calls:
            assert found.pop(0).tool_call_id == expected.id


@given(st.lists(PIECES, max_size=12))
def test_nothing_but_results_is_dropped_or_added(messages: list[Message]):
    def others(of: object) -> list[Message]:
        return [m for m in of if m.role != "tool"]

    assert others(answered(messages)) == others(messages)


@given(st.lists(PIECES, max_size=12))
def test_a_whole_conversation_is_left_as_it_is(messages: list[Message]):
    whole = answered(messages)
    assert answered(whole) == whole


def test_a_missing_result_is_filled_in_as_an_error():
    found = answered((user("go"), call("1", "2"), result("1")))
    assert found[2] == result("1")
    assert (found[3].tool_call_id, found[3].is_error) == ("2", True)
    assert found[3].text == UNKNOWN_OUTCOME


def test_an_orphaned_result_is_dropped():
    assert answered((result("1"), user("go"))) == (user("go"),)


def test_results_come_in_the_order_of_the_calls():
    found = answered((call("1", "2"), result("2", "two"), user("x"), result("1", "one")))
    assert [m.text for m in found] == ["", "one", "two", "x"]
