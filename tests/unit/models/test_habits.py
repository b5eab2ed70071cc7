"""Endpoints that refuse what others take: asked once more as they want it, and then at once."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from devall.core.errors import ModelRefused
from devall.core.messages import Message, ToolCall, assistant, user
from devall.models.base import ChatRequest, ModelChoice, ToolSchema
from devall.models.providers import Models
from devall.testing.chat_server import ChatServer

_numbers = itertools.count()


@pytest.fixture
def name() -> str:
    """A name of its own: what is learned of a model is kept for the whole process."""
    return f"habits-{next(_numbers)}"


@pytest.fixture
async def models():
    source = Models({})
    yield source
    await source.aclose()


async def ask(models, server, name, *messages, protocol="chat", echo="auto", **params):
    choice = ModelChoice("openai", name, server.url, "k", protocol=protocol, echo_reasoning=echo)
    request = ChatRequest(messages or (user("hi"),), params=params)
    return await models.model(choice).complete(request, lambda _: None)


def refusing(*names: str, instead: dict[str, str] | None = None, code="unsupported_parameter"):
    """An endpoint that takes none of these parameters."""

    def answer(body):
        for each in names:
            if each in body:
                other = (instead or {}).get(each)
                more = f" Use '{other}' instead." if other else ""
                text = f"Unsupported parameter: '{each}' is not supported with this model.{more}"
                return {"status": 400, "error": code, "param": each, "text": text}
        return "fine"

    return answer


async def test_max_tokens_is_renamed_and_temperature_left_out_once_for_the_process(models, name):
    picky = refusing("max_tokens", "temperature", instead={"max_tokens": "max_completion_tokens"})
    async with ChatServer({name: [picky] * 9}) as server:
        reply = await ask(models, server, name, max_tokens=50, temperature=0.2, stop=["x"])
        assert len(server.requests) == 3
        again = await ask(models, server, name, max_tokens=70, temperature=0.2)
        other = Models({})
        await ask(other, server, name, max_tokens=70)
        await other.aclose()
        assert len(server.requests) == 5
        sent = server.calls[name]
    assert "temperature" not in sent[2]
    assert (sent[2]["max_completion_tokens"], sent[2]["stop"]) == (50, ["x"])
    assert sent[3]["max_completion_tokens"] == sent[4]["max_completion_tokens"] == 70
    assert len(reply.notes) == 2
    assert "takes `max_completion_tokens` in place of `max_tokens`" in reply.notes[0]
    assert "does not take `temperature`" in reply.notes[1]
    assert again.notes == ()


@pytest.mark.parametrize(
    ("sent", "refusal"),
    [
        ("max_completion_tokens", {"text": "Unrecognized request argument: max_completion_tokens"}),
        ("temperature", {"body": {"detail": [{"loc": ["body", "temperature"],
                                              "msg": "Extra inputs are not permitted"}]}}),
        ("temperature", {"error": "unsupported_value", "param": "temperature",
                         "text": "Only the default (1) value is supported."}),
        ("parallel_tool_calls", {"text": "'parallel_tool_calls' is not supported"}),
        ("reasoning_effort", {"text": 'Unknown name "reasoning_effort": Cannot find field.'}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("status", [400, 422])
async def test_refusals_are_understood_in_the_words_of_many_endpoints(
    models, name, sent, refusal, status
):
    def answer(body):
        return {"status": status, **refusal} if sent in body else "fine"

    async with ChatServer({name: [answer] * 2}) as server:
        assert (await ask(models, server, name, **{sent: 1})).message.text == "fine"


@pytest.mark.parametrize(
    ("params", "refusal"),
    [
        ({"temperature": 9}, {"param": "temperature", "error": "decimal_above_max_value",
                              "text": "Invalid 'temperature': expected a value <= 2."}),
        ({"response_format": {"type": "json_object"}}, {"param": "response_format",
                                                        "error": "unsupported_parameter"}),
        ({"tool_choice": "required"}, {"text": "tool_choice is not supported"}),
        ({"max_tokens": 5}, {"text": "max_tokens is too large"}),
        ({}, {"param": "max_tokens", "error": "unsupported_parameter"}),
        ({"temperature": 1}, {"text": "this model is not supported"}),
    ],
)  # fmt: skip
async def test_what_changes_the_meaning_is_never_left_out(models, name, params, refusal):
    async with ChatServer({name: [{"status": 400, **refusal}]}) as server:
        with pytest.raises(ModelRefused):
            await ask(models, server, name, **params)
        assert len(server.requests) == 1


async def test_requests_at_the_same_time_learn_once(models, name):
    def strict(body):
        text = "Conversation roles must alternate user/assistant/user/assistant/..."
        refused = {"status": 400, "text": text, "delay": 0.1}
        return refused if len(body["messages"]) > 1 else "fine"

    async with ChatServer({name: [strict] * 20}) as server:
        asked = (ask(models, server, name, user("one"), user("two")) for _ in range(8))
        replies = await asyncio.gather(*asked)
        assert len(server.requests) == 16
    assert {reply.message.text for reply in replies} == {"fine"}
    assert sum(len(reply.notes) for reply in replies) == 1


async def test_an_endpoint_that_wants_either_name_and_takes_none_is_not_asked_for_ever(
    models, name
):
    picky = refusing("max_tokens", "max_completion_tokens")
    async with ChatServer({name: [picky] * 9}) as server:
        with pytest.raises(ModelRefused, match="max_completion_tokens"):
            await ask(models, server, name, max_tokens=5)
        assert len(server.requests) == 2


async def test_a_model_that_may_not_stream_is_asked_without(models, name):
    def answer(body):
        if body.get("stream"):
            return {"status": 400, "error": "unsupported_value", "param": "stream",
                    "text": "Your organization must be verified to stream this model."}  # fmt: skip
        return "fine"

    async with ChatServer({name: [answer] * 3}) as server:
        assert (await ask(models, server, name)).message.text == "fine"
        assert server.calls[name][-1].keys() == {"model", "messages"}


async def test_responses_learns_too(models, name):
    async with ChatServer({name: [refusing("temperature")] * 2}) as server:
        reply = await ask(models, server, name, protocol="responses", temperature=1)
    assert "does not take `temperature`" in reply.notes[0]


THOUGHT = Message(
    "assistant",
    "",
    tool_calls=(ToolCall("c", "f", "{}"),),
    extra={"reasoning_content": "I wonder", "x_trace": 7},
)
EXCHANGE = (user("hi"), THOUGHT, Message("tool", "1", tool_call_id="c"))


async def test_thoughts_go_back_until_the_endpoint_refuses_them(models, name):
    def forbids(body):
        if "reasoning_content" in body["messages"][1]:
            return {"status": 400, "text": "messages[1]: reasoning_content is not allowed in input"}
        return "fine"

    async with ChatServer({name: [forbids] * 3}) as server:
        for _ in range(2):
            assert (await ask(models, server, name, *EXCHANGE)).message.text == "fine"
        sent = [call["messages"][1] for call in server.calls[name]]
    assert ["reasoning_content" in each for each in sent] == [True, False, False]
    assert all(each["x_trace"] == 7 for each in sent)


async def test_thoughts_that_are_demanded_are_sent_where_a_call_came_without(models, name):
    def demands(body):
        if "reasoning_content" not in body["messages"][1]:
            text = "Missing `reasoning_content` field in the assistant message at index 1"
            return {"status": 400, "text": text}
        return "fine"

    bare = Message("assistant", "", tool_calls=THOUGHT.tool_calls)
    async with ChatServer({name: [demands] * 3}) as server:
        for _ in range(2):
            reply = await ask(models, server, name, user("hi"), bare, EXCHANGE[2])
            assert reply.message.text == "fine"
        assert [c["messages"][1].get("reasoning_content") for c in server.calls[name]] == [
            None,
            "",
            "",
        ]


async def test_an_endpoint_that_refuses_both_ways_is_asked_twice_and_no_more(models, name):
    text = "reasoning_content must be passed back, and is not allowed"
    async with ChatServer({name: [{"status": 400, "text": text}] * 9}) as server:
        with pytest.raises(ModelRefused):
            await ask(models, server, name, *EXCHANGE)
        assert len(server.requests) == 2


@pytest.mark.parametrize(
    ("echo", "field"), [("always", "I wonder"), ("never", None), ("auto", "I wonder")]
)
async def test_the_file_says_whether_thoughts_go_back(models, name, echo, field):
    async with ChatServer({name: ["fine", {"status": 400, "text": "reasoning_content"}]}) as server:
        await ask(models, server, name, *EXCHANGE, echo=echo)
        assert server.calls[name][0]["messages"][1].get("reasoning_content") == field
        if echo != "auto":
            with pytest.raises(ModelRefused):
                await ask(models, server, name, *EXCHANGE, echo=echo)
            assert len(server.requests) == 2


async def test_always_sends_an_empty_thought_where_a_call_came_without(models, name):
    bare = Message("assistant", "", tool_calls=THOUGHT.tool_calls)
    async with ChatServer() as server:
        await ask(models, server, name, user("hi"), bare, EXCHANGE[2], echo="always")
        assert server.calls[name][0]["messages"][1]["reasoning_content"] == ""


@pytest.mark.parametrize(
    "text",
    [
        "Conversation roles must alternate user/assistant/user/assistant/...",
        "Expected last role User or Tool for serving but got user after role user",
        "messages: text content blocks must be non-empty",
    ],
)
async def test_a_server_that_wants_turns_and_words_gets_them(models, name, text):
    def strict(body):
        roles = [m["role"] for m in body["messages"]]
        is_bad = any(a == b for a, b in itertools.pairwise(roles))
        return {"status": 400, "text": text} if is_bad else "fine"

    history = (user("one"), user("two"), assistant(""), user("three"), user("four"))
    async with ChatServer({name: [strict] * 3}) as server:
        for _ in range(2):
            assert (await ask(models, server, name, *history)).message.text == "fine"
        assert len(server.requests) == 3
        assert server.calls[name][2]["messages"] == [
            {"role": "user", "content": "one\n\ntwo\n\nthree\n\nfour"}
        ]


async def test_beside_calls_a_strict_server_gets_no_empty_text(models, name):
    def strict(body):
        if any(m["content"] == "" for m in body["messages"]):
            return {"status": 400, "text": "message content must not be empty"}
        return "fine"

    async with ChatServer({name: [strict] * 2}) as server:
        await ask(models, server, name, *EXCHANGE)
        assert server.calls[name][1]["messages"][1]["content"] is None


async def test_unknown_fields_make_the_round_trip_through_a_stream(models, name):
    call = {"name": "f", "arguments": {}, "extra": {"extra_content": {"google": {"s": "sig"}}}}
    first = {"tool_calls": [call], "extra": {"reasoning_content": "hm", "odd": {"a": [1]}}}
    async with ChatServer({name: [first]}) as server:
        choice = ModelChoice("openai", name, server.url, "k")
        tools = (ToolSchema("f", "", {"type": "object"}),)
        said = (await models.model(choice).complete(
            ChatRequest((user("hi"),), tools), lambda _: None)).message  # fmt: skip
        answer = Message("tool", "1", tool_call_id=said.tool_calls[0].id)
        await ask(models, server, name, user("hi"), said, answer)
        sent = server.calls[name][1]["messages"][1]
    assert (sent["reasoning_content"], sent["odd"]) == ("hm", {"a": [1]})
    assert sent["tool_calls"][0]["extra_content"] == {"google": {"s": "sig"}}
