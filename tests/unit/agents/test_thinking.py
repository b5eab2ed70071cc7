"""Second thoughts."""

from __future__ import annotations

import pytest

from devall.core.messages import Message, assistant, user

CHECK = "Check the answer and give a better one."
REFLECT = {"thinking": {"type": "reflection", "config": {"reflection_prompt": CHECK}}}


async def test_the_second_answer_stands(played, scope):
    agent = played(["first answer", "better answer"], config=REFLECT | {"role": "solver"})
    result = await agent.run(scope, "the task")
    assert agent.requests[1].messages == (
        Message("system", "solver"),
        user("the task"),
        assistant("first answer", "A"),
        user(CHECK),
    )
    assert result.outputs == (assistant("better answer", "A"),)
    assert result.remembered == (assistant("better answer", "A"),)


async def test_the_first_answer_stands_where_the_second_is_empty(played, scope):
    agent = played(["first answer", ""], config=REFLECT)
    assert (await agent.run(scope, "the task")).outputs[0].text == "first answer"


@pytest.mark.parametrize("choice", [None, "required"])
async def test_no_tools_are_offered_when_thinking_and_the_exchange_is_remembered(
    played, scope, choice
):
    replies = [{"tool_calls": [{"name": "now", "arguments": {}}]}, "first", "second"]
    params = {"params": {"tool_choice": choice}} if choice else {}
    agent = played(replies, tools={"now": lambda: "noon"}, config=REFLECT | params)
    result = await agent.run(scope, "when?")
    assert agent.requests[2].tools == ()
    assert "tool_choice" not in agent.requests[2].params
    assert all(not m.tool_calls and m.role != "tool" for m in agent.requests[2].messages)
    assert [m.role for m in result.remembered] == ["assistant", "tool", "assistant"]
    assert result.remembered[-1].text == "second"


async def test_a_call_made_when_thinking_is_not_run(played, scope):
    ran: list[str] = []
    second = {"text": "second", "extra": {"responses_output": [{"type": "function_call"}]}}
    replies = ["first", second | {"tool_calls": [{"name": "now", "arguments": {}}]}]
    agent = played(replies, tools={"now": lambda: ran.append("x")}, config=REFLECT)
    result = await agent.run(scope, "when?")
    assert ran == []
    assert result.outputs[0].text == "second"
    assert result.remembered == (assistant("second", "A"),)


async def test_the_second_request_is_the_next_turn(played, scope):
    await played(["first", "second"], config=REFLECT).run(scope, "go")
    assert list(scope.journal) == ["turn:1", "turn:2"]
