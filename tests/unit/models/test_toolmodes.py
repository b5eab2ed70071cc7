"""Tools offered in words, and replies read as native ones."""

from __future__ import annotations

import json

import pytest

from devall.core.errors import BadModelResponse, SetupError
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, assistant, user
from devall.models.base import ChatRequest, ModelChoice, ToolSchema
from devall.models.providers import Models
from devall.models.toolmodes import folded, read_calls, with_tool_mode
from devall.testing.chat_server import ChatServer
from devall.testing.scripted_model import ScriptedModels

RAND = ToolSchema(
    "rand_num", "Draws.", {"type": "object", "properties": {"a": {"type": "integer"}}}
)
PING = ToolSchema("ping", "Pings.", {"type": "object", "properties": {}})
CALL = ToolCall("c1", "rand_num", '{"a": 1}')
EXCHANGE = (
    user("1 100"),
    Message("assistant", tool_calls=(CALL,)),
    Message("tool", "73", tool_call_id="c1"),
)


async def ask(reply, *messages: Message, mode="json_schema", tools=(RAND, PING), **params):
    """The reply, the request that was sent, and what was heard of the text."""
    models = ScriptedModels({"m": [reply]})
    heard: list[str] = []
    model = with_tool_mode(models.model(ModelChoice("x", "m")), mode)
    request = ChatRequest(messages or (user("hi"),), tools, params)
    return await model.complete(request, heard.append), models.requests["m"][0], heard


def branches(request: ChatRequest) -> set[str]:
    schema = request.params["response_format"]["json_schema"]["schema"]
    return {b["properties"]["tool"]["const"] for b in schema.get("anyOf", [schema])}


def test_mode_native_is_the_model_itself():
    model = ScriptedModels().model(ModelChoice("x", "m"))
    assert with_tool_mode(model, "native") is model
    with pytest.raises(SetupError, match="magic"):
        with_tool_mode(model, "magic")


async def test_tools_are_told_of_in_the_system_prompt():
    _, sent, _ = await ask("x", Message("system", "You are a poet."), user("hi"))
    assert sent.tools == ()
    assert sent.messages[0].text.startswith("You are a poet.\n\nYou can use these tools:\n")
    assert "- rand_num: Draws." in sent.messages[0].text
    assert sent.messages[1:] == (user("hi"),)


async def test_without_a_system_prompt_one_is_made():
    _, sent, _ = await ask("x")
    assert [m.role for m in sent.messages] == ["system", "user"]


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        (None, ["none", "ping", "rand_num"]),
        ("auto", ["none", "ping", "rand_num"]),
        ("required", ["ping", "rand_num"]),
        ({"type": "function", "function": {"name": "ping"}}, ["ping"]),
        ({"type": "function", "name": "ping"}, ["ping"]),
    ],
    ids=str,
)
async def test_tool_choice_leaves_only_its_branches(choice, names):
    reply = json.dumps({"tool": "ping", "arguments": {}})
    _, sent, _ = await ask(reply, tool_choice=choice, parallel_tool_calls=True, temperature=0)
    assert sorted(branches(sent)) == names
    assert sent.params.keys() == {"temperature", "response_format"}


async def test_tool_choice_none_offers_nothing():
    reply, sent, heard = await ask("plain", tool_choice="none")
    assert sent.params == {}
    assert sent.messages == (user("hi"),)
    assert (reply.message.text, heard) == ("plain", ["plain"])


async def test_a_call_looks_like_a_native_one():
    written = json.dumps({"tool": "rand_num", "arguments": {"a": 1}})
    reply, _, heard = await ask(written)
    (call,) = reply.message.tool_calls
    assert (call.name, json.loads(call.arguments)) == ("rand_num", {"a": 1})
    assert call.id
    assert (reply.finish_reason, reply.message.text, heard) == ("tool_calls", "", [])
    assert reply.usage is not None


async def test_an_answer_looks_like_a_native_one():
    reply, _, heard = await ask('{"tool": "none", "answer": "It is 7."}')
    assert (reply.message.text, reply.message.tool_calls) == ("It is 7.", ())
    assert (reply.finish_reason, heard) == ("stop", ["It is 7."])


async def test_an_answer_in_the_shape_that_was_asked_for_is_json():
    wanted = {"type": "object", "properties": {"n": {"type": "integer"}}}
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": wanted}}
    written = '{"tool": "none", "answer": {"n": 1}}'
    reply, sent, _ = await ask(written, response_format=form)
    assert json.loads(reply.message.text) == {"n": 1}
    assert branches(sent) == {"rand_num", "ping", "none"}


async def test_an_endpoint_that_ignores_the_schema_is_read_all_the_same():
    reply, _, _ = await ask("Just an answer.")
    assert reply.message.text == "Just an answer."
    reply, _, _ = await ask('```json\n{"name": "ping", "arguments": {}}\n```')
    assert reply.message.tool_calls[0].name == "ping"


@pytest.mark.parametrize("mode", ["json_schema", "text"])
async def test_a_call_that_was_demanded_and_not_made_is_a_bad_response(mode):
    with pytest.raises(BadModelResponse, match="I would rather talk"):
        await ask("I would rather talk", mode=mode, tool_choice="required")


@pytest.mark.parametrize(
    ("written", "text", "arguments"),
    [
        ('{"tool": "rand_num", "arguments": {"a": 1', "", '{"a": 1'),
        ('{"tool": "none", "answer": "half of', "half of", None),
        ('{"tool": "none", "answer": "half\\u00', "half", None),
        ('{"tool": "no', '{"tool": "no', None),
    ],
)
async def test_a_reply_that_was_cut_says_what_it_had(written, text, arguments):
    reply, _, _ = await ask({"text": written, "finish_reason": "length"})
    assert reply.finish_reason == "length"
    assert reply.message.text == text
    assert [c.arguments for c in reply.message.tool_calls] == ([arguments] if arguments else [])


async def test_mode_text_sends_no_schema():
    reply, sent, _ = await ask('{"name": "ping", "arguments": {}}', mode="text")
    assert sent.params == {}
    assert '{"name": "NAME", "arguments": {...}}' in sent.messages[0].text
    assert reply.message.tool_calls[0].name == "ping"


NAMES = {"rand_num", "ping"}


@pytest.mark.parametrize(
    ("text", "calls", "rest"),
    [
        ('{"name": "ping", "arguments": {}}', ["ping"], ""),
        ('  {"name": "ping", "arguments": {}}\n', ["ping"], ""),
        ('{"name": "ping", "parameters": {}}', ["ping"], ""),
        ('{"tool": "ping", "arguments": {}}', ["ping"], ""),
        ('{"name": "ping", "arguments": "{}"}', ["ping"], ""),
        ('{"name": "gone", "arguments": {}}', ["gone"], ""),
        ('```json\n{"name": "ping", "arguments": {}}\n```', ["ping"], ""),
        ('```\n{"name": "ping", "arguments": {}}\n```', ["ping"], ""),
        ('I look.\n```tool_call\n{"name": "ping", "arguments": {}}\n```', ["ping"], "I look."),
        ('<tool_call>{"name": "ping", "arguments": {}}</tool_call>', ["ping"], ""),
        ('[{"name": "ping", "arguments": {}}, {"name": "rand_num", "arguments": {"a": 1}}]',
         ["ping", "rand_num"], ""),
        ('```json\n{"name": "ping", "arguments": {}}\n```\n```json\n'
         '{"name": "rand_num", "arguments": {}}\n```', ["ping", "rand_num"], ""),
        ('{"name": "Ann", "age": 5}', [], '{"name": "Ann", "age": 5}'),
        ('{"name": "Ann", "arguments": {}, "age": 5}', [], '{"name": "Ann", "arguments": {}, "age": 5}'),
        ('```python\nprint({"name": 1})\n```', [], '```python\nprint({"name": 1})\n```'),
        ('[1, {"name": "ping", "arguments": {}}]', [], '[1, {"name": "ping", "arguments": {}}]'),
        ("{not json", [], "{not json"),
        ("[]", [], "[]"),
        ("null", [], "null"),
        ("", [], ""),
        ('{"tool": "none", "answer": "x"}', [], "x"),
    ],
)  # fmt: skip
def test_calls_are_read_bare_or_fenced_and_all_else_is_text(text, calls, rest):
    found, made = read_calls(text, NAMES)
    assert [c.name for c in made] == calls
    assert found == rest


def test_a_finished_exchange_is_folded_into_the_user_s_message():
    assert folded(EXCHANGE, has_tools=False) == (
        user("1 100\n\nThe tool rand_num gave: 73\n\nAnswer now."),
    )


def test_where_tools_are_offered_still_another_one_is_legal():
    (message,) = folded(EXCHANGE, has_tools=True)
    assert message.text.endswith("\n\nAnswer now, or use another tool if you need one.")


def test_exchanges_of_the_past_do_not_ask_for_an_answer():
    messages = folded((*EXCHANGE, assistant("It was 73."), user("thanks")), has_tools=True)
    assert messages == (
        user("1 100\n\nThe tool rand_num gave: 73"),
        assistant("It was 73."),
        user("thanks"),
    )


def test_several_rounds_failures_and_words_are_all_told():
    second = ToolCall("c2", "ping", "{}")
    (message,) = folded(
        (
            *EXCHANGE,
            Message("assistant", "One more.", tool_calls=(second,)),
            Message("tool", "no route", tool_call_id="c2", is_error=True),
        ),
        has_tools=False,
    )
    assert message.text == (
        "1 100\n\nThe tool rand_num gave: 73\n\nYou said: One more.\n\n"
        "The tool ping failed: no route\n\nAnswer now."
    )


def test_two_calls_of_one_tool_are_told_apart_by_their_arguments():
    calls = (CALL, ToolCall("c2", "rand_num", '{"a": 2}'))
    results = (
        Message("tool", "73", tool_call_id="c1"),
        Message("tool", "74", tool_call_id="c2"),
    )
    (message,) = folded(
        (user("x"), Message("assistant", tool_calls=calls), *results), has_tools=False
    )
    assert 'The tool rand_num with {"a": 1} gave: 73' in message.text
    assert 'The tool rand_num with {"a": 2} gave: 74' in message.text


def test_an_exchange_without_a_user_s_message_makes_one():
    messages = folded((Message("system", "s"), *EXCHANGE[1:]), has_tools=False)
    assert [m.role for m in messages] == ["system", "user"]


def test_media_of_a_result_go_along():
    image = MediaPart("image", "image/png", attachment="a.png")
    result = Message("tool", (TextPart("a picture"), image), tool_call_id="c1")
    (message,) = folded((*EXCHANGE[:2], result), has_tools=False)
    assert message.parts[-1] == image
    assert "gave: a picture" in message.text


async def test_any_endpoint_may_have_a_tool_mode():
    models = Models({})
    written = json.dumps({"tool": "ping", "arguments": {}})
    async with ChatServer({"m": [written]}) as server:
        choice = ModelChoice("openai", "m", server.url, tool_mode="json_schema")
        model = models.model(choice)
        reply = await model.complete(ChatRequest((user("hi"),), (PING,)), lambda _: None)
        sent = server.calls["m"][0]
    await models.aclose()
    assert (model.provider, model.name, model.url) == ("openai", "m", server.url)
    assert reply.message.tool_calls[0].name == "ping"
    assert sent["response_format"]["type"] == "json_schema"
    assert "tools" not in sent
