"""One agent's run, turn by turn."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from devall.core.errors import (
    LimitReached,
    ModelRefused,
    NoProgress,
    OutputTruncated,
    RunCancelled,
    ToolError,
)
from devall.core.events import (
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    Warned,
)
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, assistant, to_json, user
from devall.core.usage import TokenUsage
from devall.models.base import ChatRequest


def calls(*named: tuple[str, Any], **more: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": n, "arguments": a} for n, a in named]} | more


def call(name: str, call_id: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": arguments, "id": call_id}]}


def results(request: ChatRequest) -> list[Message]:
    return [m for m in request.messages if m.role == "tool"]


def square(x: int) -> int:
    return x * x


def forbidden(x: int) -> int:
    pytest.fail(f"called with {x}")


async def test_the_answer_is_one_assistant_message_of_the_node(played, scope):
    agent = played(["hello"], config={"role": "r"})
    result = await agent.run(scope, "the task")
    assert result.outputs == (assistant("hello", "A"),)
    assert result.remembered == (assistant("hello", "A"),)
    assert agent.requests[0].messages == (Message("system", "r"), user("the task"))


async def test_the_loop_goes_on_until_the_model_answers(played, scope):
    agent = played([call("square", "c1", x=7), "49 it is"], tools={"square": square})
    result = await agent.run(scope, "7 squared?")
    asked = Message(
        "assistant", "", "A", tool_calls=(ToolCall("c1", "square", json.dumps({"x": 7})),)
    )
    answered = Message("tool", "49", "A", tool_call_id="c1")
    assert agent.requests[1].messages == (user("7 squared?"), asked, answered)
    assert [tool.name for tool in agent.requests[1].tools] == ["square"]
    assert result.outputs == (assistant("49 it is", "A"),)
    assert result.remembered == (asked, answered, assistant("49 it is", "A"))


async def test_remembered_exchanges_are_sent_and_their_ids_not_given_again(played, new_scope):
    first = played([call("square", "c1", x=7), "49"], tools={"square": square})
    seen = (user("7?"), *(await first.run(new_scope(), "7?")).remembered)
    second = played([call("square", "c1", x=8), "64"], tools={"square": square})
    await second.run(new_scope(), *seen, "8?")
    messages = second.requests[1].messages
    assert messages[: len(seen)] == seen
    assert [m.tool_call_id for m in messages if m.role == "tool"] == ["c1", "call_1_1"]


async def test_what_the_provider_put_beside_a_message_goes_back_and_no_further(played, scope):
    reply = {
        "text": "thinking",
        "extra": {"reasoning_content": "hm"},
        "tool_calls": [
            {"name": "square", "arguments": {"x": 1}, "extra": {"thought_signature": "s"}}
        ],
    }
    agent = played(
        [reply, {"text": "1", "extra": {"reasoning_content": "so"}}], tools={"square": square}
    )
    result = await agent.run(scope, "go")
    sent = agent.requests[1].messages[1]
    assert sent.extra == {"reasoning_content": "hm"}
    assert sent.tool_calls[0].extra == {"thought_signature": "s"}
    assert result.outputs[0].extra == {}
    assert result.remembered[-1].extra == {"reasoning_content": "so"}


# Batches


async def test_calls_of_a_turn_run_side_by_side_and_results_keep_their_order(played, scope):
    running, most = 0, 0
    everyone = asyncio.Event()

    async def wait(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 3:
            everyone.set()
        await everyone.wait()
        await asyncio.sleep(0.01 * (3 - n))
        running -= 1
        return n

    agent = played([calls(*(("wait", {"n": n}) for n in range(3))), "ok"], tools={"wait": wait})
    await agent.run(scope, "go")
    assert most == 3
    assert [m.text for m in results(agent.requests[1])] == ["0", "1", "2"]


async def test_no_more_calls_run_at_once_than_the_file_allows(played, scope):
    running, most, started = 0, 0, []

    async def wait(n: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        started.append(n)
        await asyncio.sleep(0.005)
        running -= 1
        return n

    agent = played(
        [calls(*(("wait", {"n": n}) for n in range(6))), "ok"],
        tools={"wait": wait},
        config={"parallel_tool_calls": 2},
    )
    await agent.run(scope, "go")
    assert most == 2
    assert started == list(range(6))


async def test_a_call_that_fails_leaves_the_others_alone(played, scope):
    async def work(n: int) -> str:
        await asyncio.sleep(0.005)
        if n == 1:
            raise ToolError("disk full")
        return f"done {n}"

    replies = [calls(("work", {"n": 0}), ("work", {"n": 1}), ("work", {"n": 2})), "ok"]
    agent = played(replies, tools={"work": work})
    result = await agent.run(scope, "go")
    found = results(agent.requests[1])
    assert [m.text for m in found] == ["done 0", "disk full", "done 2"]
    assert [m.is_error for m in found] == [False, True, False]
    assert [e.is_error for e in scope.recorder.of(ToolCallFinished)].count(True) == 1
    assert result.outputs[0].text == "ok"


@pytest.mark.parametrize(
    "written", ['{"x":', "null", "[1]", '"x"', "", '{"x": NaN}', '{"x": 1, "x": 2}', "12"]
)
async def test_arguments_that_are_no_object_run_nothing_and_tell_the_model(played, scope, written):
    ran: list[int] = []
    replies = [calls(("note", written), ("note", {"x": 5})), "ok"]
    agent = played(replies, tools={"note": lambda x: ran.append(x) or "noted"})
    await agent.run(scope, "go")
    assert ran == [5]
    assert [m.is_error for m in results(agent.requests[1])] == [True, False]


async def test_an_invented_tool_is_an_error_result(played, scope):
    agent = played([calls(("foo", {}), ("square", {"x": 3})), "ok"], tools={"square": square})
    await agent.run(scope, "go")
    assert [m.is_error for m in results(agent.requests[1])] == [True, False]
    assert "foo" in results(agent.requests[1])[0].text


async def test_an_agent_without_tools_that_calls_one_is_told_so(played, scope):
    agent = played([calls(("foo", {})), "ok"])
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"
    assert "no tool foo" in results(agent.requests[1])[0].text


async def test_pictures_of_a_tool_stay_parts(played, scope):
    picture = MediaPart("image", "image/png", attachment="x.png")
    agent = played([calls(("shoot", {})), "ok"], tools={"shoot": lambda: (picture,)})
    await agent.run(scope, "go")
    assert results(agent.requests[1])[0].parts == (picture,)


async def test_texts_of_a_tool_become_one(played, scope):
    parts = (TextPart("a"), TextPart("b"))
    agent = played([calls(("say", {})), "ok"], tools={"say": lambda: parts})
    await agent.run(scope, "go")
    assert results(agent.requests[1])[0].content == "a\nb"


async def test_empty_and_repeated_call_ids_are_told_apart(played, scope):
    replies = [
        {"tool_calls": [{"name": "square", "arguments": {"x": x}, "id": "same"} for x in (1, 2)]},
        "ok",
    ]
    agent = played(replies, tools={"square": square})
    await agent.run(scope, "go")
    sent = agent.requests[1].messages[1].tool_calls
    assert [c.id for c in sent] == ["same", "call_1_2"]
    assert [(m.tool_call_id, m.text) for m in results(agent.requests[1])] == [
        ("same", "1"),
        ("call_1_2", "4"),
    ]


# Limits


async def test_the_tool_loop_limit_is_a_failure_and_not_an_answer(played, scope):
    agent = played(
        [calls(("square", {"x": x})) for x in range(3)],
        tools={"square": square},
        config={"params": {"tool_loop_limit": 2}},
    )
    with pytest.raises(LimitReached) as caught:
        await agent.run(scope, "go")
    assert (caught.value.limit, caught.value.bound) == ("tool_loop_limit", 2)
    assert len(scope.recorder.of(ToolCallFinished)) == 2
    assert len(agent.requests) == 3


async def test_an_answer_after_as_many_rounds_as_the_limit_is_an_answer(played, scope):
    agent = played(
        [calls(("square", {"x": 1})), calls(("square", {"x": 2})), "ok"],
        tools={"square": square},
        config={"params": {"tool_loop_limit": 2}},
    )
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"


async def test_a_limit_on_model_calls_holds_before_the_call(played, new_scope):
    scope = new_scope(bounds={"model_call": 1})
    agent = played([calls(("square", {"x": 1}))], tools={"square": square})
    with pytest.raises(LimitReached):
        await agent.run(scope, "go")
    assert len(agent.requests) == 1


async def test_each_model_call_is_announced_with_an_estimate_of_its_tokens(played, scope):
    usage = {"prompt_tokens": 520, "completion_tokens": 9}
    first = {**calls(("square", {"x": 1})), "usage": usage}
    agent = played([first, "ok"], tools={"square": square}, config={"params": {"max_tokens": 30}})
    await agent.run(scope, "word " * 400)
    read = [estimate.usage.input_tokens for estimate in scope.estimates]
    assert [400 < tokens < 700 for tokens in read] == [True, True]
    assert read[0] < read[1]
    assert {estimate.usage.output_tokens for estimate in scope.estimates} == {30}
    assert {(estimate.provider, estimate.model) for estimate in scope.estimates} == {
        ("openai", "m")
    }


async def test_a_limit_reached_within_a_batch_keeps_what_was_done(played, new_scope):
    scope = new_scope(bounds={"tool_call": 2})
    done: list[int] = []

    async def work(n: int) -> str:
        await asyncio.sleep(0.005)
        done.append(n)
        return "done"

    agent = played([calls(*(("work", {"n": n}) for n in range(5)))], tools={"work": work})
    with pytest.raises(LimitReached):
        await agent.run(scope, "go")
    assert done == [0, 1]
    assert len(scope.recorder.of(ToolCallFinished)) == 2
    assert [key for key, kind in scope.kinds.items() if kind == "tool"] == [
        "turn:1/tool:call_m_1_0",
        "turn:1/tool:call_m_1_1",
    ]


async def test_calls_cut_off_by_the_length_are_not_run(played, scope):
    ran: list[str] = []
    replies = [
        calls(("write", {"text": "abc"}), ("write", '{"text": "ab'), finish_reason="length"),
        calls(("write", {"text": "short"})),
        "ok",
    ]
    agent = played(replies, tools={"write": lambda text: ran.append(text) or "written"})
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"
    assert ran == ["short"]
    cut = results(agent.requests[1])
    assert len(cut) == 2
    assert all(m.is_error and "cut off" in m.text for m in cut)
    assert [w.code for w in scope.recorder.of(Warned)] == ["output_truncated"]
    assert scope.allowed["tool_call"] == 1


async def test_twice_cut_off_in_a_row_fails(played, scope):
    cut = calls(("write", {"text": "abc"}), finish_reason="length")
    agent = played([cut, cut], tools={"write": lambda text: text})
    with pytest.raises(OutputTruncated, match="cut off"):
        await agent.run(scope, "go")


async def test_cut_off_with_a_good_turn_between_does_not_fail(played, scope):
    cut = calls(("write", {"text": "abc"}), finish_reason="length")
    good = calls(("write", {"text": "a"}))
    agent = played([cut, good, cut, good, "ok"], tools={"write": lambda text: text})
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"


async def test_an_answer_cut_off_by_the_length_stands_with_a_warning(played, scope):
    agent = played([{"text": "half an", "finish_reason": "length"}])
    assert (await agent.run(scope, "go")).outputs[0].text == "half an"
    assert [w.code for w in scope.recorder.of(Warned)] == ["answer_truncated"]


async def test_the_same_call_again_and_again_is_told_and_then_fails(played, scope):
    agent = played([calls(("read", {"path": "x"}))] * 4, tools={"read": lambda path: path})
    with pytest.raises(NoProgress):
        await agent.run(scope, "go")
    assert [m.text for m in results(agent.requests[2])] == ["x", "x"]
    told = results(agent.requests[3])[-1].text
    assert told.startswith("x\n\n")
    assert "read 3 times" in told


async def test_a_model_that_heeds_the_warning_goes_on(played, scope):
    agent = played([calls(("read", {"path": "x"}))] * 3 + ["ok"], tools={"read": lambda path: path})
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"


async def test_a_tool_that_polls_may_be_called_for_ever(played, scope):
    agent = played(
        [calls(("poll", {}))] * 12 + ["ok"],
        tools={"poll": lambda: "not yet"},
        config={"params": {"repeat_limit": 0}},
    )
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"


# Parameters


async def test_parameters_go_to_the_model_as_given_and_ours_do_not(played, scope):
    params = {"temperature": 0.1, "max_tokens": 50, "seed": 7, "tool_loop_limit": 3, "timeout": 9}
    agent = played(["ok"], config={"params": params})
    await agent.run(scope, "go")
    assert dict(agent.requests[0].params) == {"temperature": 0.1, "max_tokens": 50, "seed": 7}


NAMED = {"type": "function", "function": {"name": "square"}}


@pytest.mark.parametrize("choice", ["required", NAMED])
async def test_a_forced_choice_holds_for_the_first_turn(played, scope, choice):
    agent = played(
        [calls(("square", {"x": 1})), "ok"],
        tools={"square": square},
        config={"params": {"tool_choice": choice, "temperature": 0}},
    )
    await agent.run(scope, "go")
    assert [dict(r.params) for r in agent.requests] == [
        {"tool_choice": choice, "temperature": 0},
        {"temperature": 0},
    ]
    assert all(r.tools for r in agent.requests)


@pytest.mark.parametrize("choice", ["auto", "none"])
async def test_a_free_choice_holds_for_every_turn(played, scope, choice):
    agent = played(
        [calls(("square", {"x": 1})), "ok"],
        tools={"square": square},
        config={"params": {"tool_choice": choice}},
    )
    await agent.run(scope, "go")
    assert [r.params["tool_choice"] for r in agent.requests] == [choice, choice]


async def test_after_the_first_turn_no_tool_is_offered_where_the_file_says_so(played, scope):
    agent = played(
        [calls(("square", {"x": 1})), calls(("square", {"x": 2})), "ok"],
        tools={"square": square},
        config={"params": {"tool_choice": "required", "tool_choice_then": "none"}},
    )
    await agent.run(scope, "go")
    assert [len(r.tools) for r in agent.requests] == [1, 0, 0]
    assert [dict(r.params) for r in agent.requests[1:]] == [{}, {}]
    assert [m.is_error for m in results(agent.requests[2])] == [False, True]


async def test_without_tools_no_choice_of_a_tool_is_sent(played, scope):
    agent = played(["ok"], config={"params": {"tool_choice": "required"}})
    await agent.run(scope, "go")
    assert dict(agent.requests[0].params) == {}


# Steps and events


async def test_every_effect_is_a_step_under_its_logical_name(played, scope):
    replies = [calls(("square", {"x": 1}), ("square", {"x": 2})), call("square", "a/b", x=3), "ok"]
    agent = played(replies, tools={"square": square})
    await agent.run(scope, "go")
    assert scope.kinds == {
        "turn:1/tools": "tools",
        "turn:1": "model",
        "turn:1/tool:call_m_1_0": "tool",
        "turn:1/tool:call_m_1_1": "tool",
        "turn:2": "model",
        "turn:2/tool:a%2Fb": "tool",
        "turn:3": "model",
    }


async def test_a_run_that_is_replayed_calls_nothing_and_gives_the_same(played, new_scope):
    replies = [calls(("square", {"x": 1}), ("square", {"x": 2})), "ok"]
    first, second = new_scope(), new_scope()
    done = await played(replies, tools={"square": square}).run(first, "go")
    second.journal = first.journal
    nobody = played([], tools={"square": forbidden})
    assert await nobody.run(second, "go") == done
    assert second.made == []
    assert [e.replayed for e in second.recorder.of(ModelCallFinished)] == [True, True]
    assert [e.replayed for e in second.recorder.of(ToolCallFinished)] == [True, True]
    assert [e.turn for e in second.recorder.of(ModelCallStarted)] == [1, 2]
    assert [e.arguments for e in second.recorder.of(ToolCallStarted)] == [{"x": 1}, {"x": 2}]
    assert [e.usage for e in second.recorder.of(ModelCallFinished)] == [
        e.usage for e in first.recorder.of(ModelCallFinished)
    ]


async def test_a_run_cancelled_within_a_batch_goes_on_with_the_calls_that_are_missing(
    played, new_scope
):
    stuck = asyncio.Event()

    async def work(n: int) -> str:
        if n == 1:
            stuck.set()
            await asyncio.Event().wait()
        return f"done {n}"

    replies = [calls(*(("work", {"n": n}) for n in range(3)))]
    scope = new_scope()
    running = asyncio.create_task(played(replies, tools={"work": work}).run(scope, "go"))
    await stuck.wait()
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert "turn:1/tool:call_m_1_1" not in scope.journal

    again = new_scope(journal=scope.journal)
    ran: list[int] = []
    agent = played(["ok"], tools={"work": lambda n: ran.append(n) or f"done {n}"})
    result = await agent.run(again, "go")
    assert ran == [1]
    assert [m.text for m in results(agent.requests[0])] == ["done 0", "done 1", "done 2"]
    assert result.outputs[0].text == "ok"


async def test_what_ends_the_run_is_no_result_for_the_model(played, scope):
    def stop() -> str:
        raise RunCancelled("SIGTERM")

    agent = played([calls(("stop", {}))], tools={"stop": stop})
    with pytest.raises(RunCancelled):
        await agent.run(scope, "go")


async def test_no_call_begins_after_the_end_of_the_run(played, scope):
    began: list[int] = []

    async def work(n: int) -> str:
        began.append(n)
        raise RunCancelled

    agent = played(
        [calls(*(("work", {"n": n}) for n in range(3)))],
        tools={"work": work},
        config={"parallel_tool_calls": 1},
    )
    with pytest.raises(RunCancelled):
        await agent.run(scope, "go")
    assert began == [0]


async def test_events_tell_of_calls_and_results(played, scope):
    usage = {"prompt_tokens": 11, "completion_tokens": 3}
    agent = played(
        [call("square", "c1", x=7), {"text": "done", "usage": usage}], tools={"square": square}
    )
    await agent.run(scope, "go")
    assert scope.recorder.kinds() == [
        "ModelCallStarted",
        "ModelCallFinished",
        "ToolCallStarted",
        "ToolCallFinished",
        "ModelCallStarted",
        "TextDelta",
        "ModelCallFinished",
    ]
    assert {e.path for e in scope.recorder.events} == {"/A@1"}
    [started], [finished] = scope.recorder.of(ToolCallStarted), scope.recorder.of(ToolCallFinished)
    assert (started.call_id, started.tool, started.arguments) == ("c1", "square", {"x": 7})
    assert (finished.call_id, finished.result, finished.is_error) == ("c1", "49", False)
    assert scope.recorder.of(TextDelta)[0].text == "done"
    last = scope.recorder.of(ModelCallFinished)[1]
    assert (last.turn, last.finish_reason, last.replayed) == (2, "stop", False)
    assert last.usage == TokenUsage(11, 3)


async def test_arguments_that_are_no_json_stand_in_the_event_as_they_came(played, scope):
    agent = played([calls(("square", "{x")), "ok"], tools={"square": square})
    await agent.run(scope, "go")
    assert scope.recorder.of(ToolCallStarted)[0].arguments == "{x"


async def test_attempts_are_told_one_by_one_and_are_one_step(played, scope):
    agent = played([{"status": 503, "retry_after": 0}, {"status": 503, "retry_after": 0}, "ok"])
    assert (await agent.run(scope, "go")).outputs[0].text == "ok"
    assert [e.attempt for e in scope.recorder.of(ModelCallStarted)] == [1, 2, 3]
    assert [e.attempt for e in scope.recorder.of(ModelCallFailed)] == [1, 2]
    assert all(e.wait is not None for e in scope.recorder.of(ModelCallFailed))
    assert list(scope.journal) == ["turn:1"]
    assert scope.allowed == {"model_call": 1}


async def test_events_tell_each_message_of_a_conversation_once(played, scope):
    script = [call("square", "c1", x=7), call("square", "c2", x=8), "49 and 64"]
    agent = played(script, tools={"square": square}, config={"role": "r"})
    await agent.run(scope, "go")
    started, finished = scope.recorder.of(ModelCallStarted), scope.recorder.of(ModelCallFinished)
    assert started[0].messages == (Message("system", "r"), user("go"))
    assert [[m.text for m in e.messages] for e in started[1:]] == [["49"], ["64"]]
    assert {e.tools for e in started} == {("square",)}
    assert [e.reply.text for e in finished] == ["", "", "49 and 64"]
    assert [c.name for e in finished for c in e.reply.tool_calls] == ["square", "square"]


async def test_a_message_that_comes_twice_is_told_twice(played, scope):
    script = [call("square", "c1", x=7), call("square", "c2", x=7), "ok"]
    agent = played(script, tools={"square": square})
    await agent.run(scope, "same", "same")
    told = [[m.text for m in e.messages] for e in scope.recorder.of(ModelCallStarted)]
    assert told == [["same", "same"], ["49"], ["49"]]


async def test_what_is_told_grows_as_the_conversation_does_and_not_with_its_square(
    played, new_scope
):
    def told(turns: int) -> int:
        scope = scopes.pop()
        assert len(scope.recorder.of(ModelCallStarted)) == turns + 1
        return sum(len(e.messages) for e in scope.recorder.of(ModelCallStarted))

    scopes = []
    for turns in (20, 10):
        scopes.append(new_scope())
        script = [call("square", f"c{n}", x=n) for n in range(turns)]
        agent = played([*script, "ok"], tools={"square": square})
        await agent.run(scopes[-1], "go")
    assert (told(10), told(20)) == (11, 21)


async def test_the_attempts_that_repeat_a_request_do_not_tell_its_messages_again(played, scope):
    agent = played([{"status": 503, "retry_after": 0}, "ok"])
    await agent.run(scope, "go")
    assert [len(e.messages) for e in scope.recorder.of(ModelCallStarted)] == [1, 0]


async def test_a_run_from_the_journal_tells_the_same_messages_and_replies(played, new_scope):
    script = [{"status": 503, "retry_after": 0}, call("square", "c1", x=7), "49"]
    first = new_scope()
    await played(script, tools={"square": square}).run(first, "go")
    again = new_scope(first.journal)
    await played([], tools={"square": square}).run(again, "go")
    assert not again.made

    def said(scope):
        started = scope.recorder.of(ModelCallStarted)
        replies = [e.reply for e in scope.recorder.of(ModelCallFinished)]
        return [(e.turn, e.attempt, e.messages, e.tools) for e in started], replies

    assert said(again) == said(first)
    assert len(said(again)[0]) == 3


async def test_a_refusal_is_told_and_fails_the_run(played, scope):
    agent = played([{"status": 401}])
    with pytest.raises(ModelRefused):
        await agent.run(scope, "go")
    [failed] = scope.recorder.of(ModelCallFailed)
    assert (failed.attempt, failed.wait) == (1, None)
    assert scope.journal == {}


# What stands in the inputs


async def test_open_calls_among_the_inputs_are_answered_and_orphans_dropped(played, scope):
    asked = Message("assistant", "", "A", tool_calls=(ToolCall("1", "t", "{}"),))
    orphan = Message("tool", "r", "A", tool_call_id="9")
    agent = played(["ok"])
    await agent.run(scope, orphan, user("a"), asked, user("b"))
    sent = agent.requests[0].messages
    assert [m.role for m in sent] == ["user", "assistant", "tool", "user"]
    assert "unknown" in sent[2].text


async def test_no_input_is_an_empty_user_message(played, scope):
    agent = played(["ok"])
    await agent.run(scope)
    assert agent.requests[0].messages == (user(""),)


async def test_the_input_mode_prompt_puts_all_into_one_message(played, scope):
    agent = played(["ok"], config={"input_mode": "prompt", "role": "r"})
    await agent.run(scope, user("one", "X"), user("two", "Y"))
    assert [to_json(m)["role"] for m in agent.requests[0].messages] == ["system", "user"]
    assert agent.requests[0].messages[1].text == "=== X ===\none\n\n=== Y ===\ntwo"
