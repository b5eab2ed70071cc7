"""Models behind a real HTTP endpoint."""

from __future__ import annotations

import asyncio
import re
import time

import pytest

from devall.core.errors import (
    BadModelResponse,
    ContextOverflow,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from devall.core.messages import Message, ToolCall, user
from devall.core.usage import TokenUsage
from devall.models.base import ChatReply, ChatRequest, ModelChoice, ToolSchema
from devall.models.providers import Models
from devall.testing.chat_server import ChatServer, refused_url

SECRET = "sk-sentinel-4242"
BOTH = pytest.mark.parametrize("protocol", ["chat", "responses"])
LONG = "a text that is long enough to come in several pieces"


@pytest.fixture
async def models():
    source = Models({})
    yield source
    await source.aclose()


async def ask(
    models: Models, url: str, *messages: Message, heard: list[str] | None = None, **choice
) -> ChatReply:
    tools = choice.pop("tools", ())
    params = choice.pop("params", {})
    model = models.model(ModelChoice("openai", "m", url, SECRET, **choice))
    request = ChatRequest(messages or (user("hi"),), tools, params)
    return await model.complete(request, (heard if heard is not None else []).append)


async def failed(models: Models, url: str, **choice) -> ModelError:
    with pytest.raises(ModelError) as caught:
        await ask(models, url, **choice)
    return caught.value


@BOTH
async def test_the_answer_streams_in_pieces(models, protocol):
    heard: list[str] = []
    async with ChatServer({"m": [LONG]}) as server:
        reply = await ask(models, server.url, heard=heard, protocol=protocol)
    assert reply.message == Message("assistant", LONG)
    assert "".join(heard) == LONG
    assert len(heard) > 1
    assert (reply.finish_reason, reply.model) == ("stop", "m")


@BOTH
@pytest.mark.parametrize("how", ["asked for", "given all the same"])
async def test_an_answer_in_one_piece_is_read_too(models, protocol, how):
    heard: list[str] = []
    fault, params = (None, {"stream": False}) if how == "asked for" else ("plain_json", {})
    async with ChatServer({"m": [{"text": LONG, "fault": fault}]}) as server:
        reply = await ask(models, server.url, heard=heard, protocol=protocol, params=params)
    assert reply.message.text == LONG
    assert heard == [LONG]
    assert reply.usage is not None


@BOTH
async def test_nothing_is_sent_that_was_not_asked_for(models, protocol):
    async with ChatServer() as server:
        await ask(models, server.url, protocol=protocol)
        sent = server.calls["m"][0]
    ours = {"stream_options"} if protocol == "chat" else set()
    assert set(sent) == {"model", "stream", "messages" if protocol == "chat" else "input"} | ours


@BOTH
async def test_tool_calls_and_their_results_make_the_round_trip(models, protocol):
    calls = [{"name": "f", "arguments": {"a": 1}}, {"name": "g", "arguments": {}}]
    tools = (ToolSchema("f", "", {"type": "object"}),)
    async with ChatServer({"m": [{"text": "wait", "tool_calls": calls}, "done"]}) as server:
        first = await ask(models, server.url, protocol=protocol, tools=tools)
        results = [Message("tool", "42", tool_call_id=c.id) for c in first.message.tool_calls]
        await ask(models, server.url, user("hi"), first.message, *results, protocol=protocol)
        sent = server.calls["m"][1]
    assert first.finish_reason == "tool_calls"
    assert [(c.name, c.arguments) for c in first.message.tool_calls] == [
        ("f", '{"a": 1}'),
        ("g", "{}"),
    ]
    ids = [c.id for c in first.message.tool_calls]
    if protocol == "chat":
        assert [c["id"] for c in sent["messages"][1]["tool_calls"]] == ids
        assert [m["tool_call_id"] for m in sent["messages"][2:]] == ids
    else:
        kinds = [item.get("type", item.get("role")) for item in sent["input"]]
        assert kinds[:2] == ["user", "assistant"]
        assert kinds[2:] == ["function_call"] * 2 + ["function_call_output"] * 2
        assert [item["call_id"] for item in sent["input"][2:]] == ids * 2


async def test_an_endpoint_that_demands_its_own_fields_back_gets_them(models):
    def demanding(body):
        assistant_sent = body["messages"][1]
        has_thoughts = assistant_sent.get("reasoning_content") == "I wonder"
        signature = assistant_sent["tool_calls"][0].get("extra_content")
        if has_thoughts and signature == {"google": {"thought_signature": "sig"}}:
            return "accepted"
        return {"status": 400, "text": "thought_signature is missing"}

    call = {
        "name": "f",
        "arguments": {},
        "extra": {"extra_content": {"google": {"thought_signature": "sig"}}},
    }
    first = {"tool_calls": [call], "extra": {"reasoning_content": "I wonder"}}
    async with ChatServer({"m": [first, demanding]}) as server:
        said = (await ask(models, server.url)).message
        result = Message("tool", "1", tool_call_id=said.tool_calls[0].id)
        reply = await ask(models, server.url, user("hi"), said, result)
    assert reply.message.text == "accepted"


async def test_reasoning_items_of_the_responses_api_go_back(models):
    reasoning = {"encrypted_content": "xyz"}
    call = {"name": "f", "arguments": {}}
    first = {"tool_calls": [call], "extra": {"reasoning": reasoning}}
    async with ChatServer({"m": [first]}) as server:
        said = (await ask(models, server.url, protocol="responses")).message
        await ask(models, server.url, user("hi"), said, protocol="responses")
        items = server.calls["m"][1]["input"]
    assert items[1]["type"] == "reasoning"
    assert items[1]["encrypted_content"] == "xyz"
    assert items[2]["call_id"] == said.tool_calls[0].id


@BOTH
async def test_finish_reason_length_is_told(models, protocol):
    reply_cut = {"tool_calls": [{"name": "f", "arguments": '{"a'}], "finish_reason": "length"}
    async with ChatServer({"m": [reply_cut]}) as server:
        reply = await ask(models, server.url, protocol=protocol)
    assert reply.finish_reason == "length"
    assert reply.message.tool_calls[0].arguments == '{"a'


@BOTH
async def test_cached_and_reasoning_tokens_are_part_of_the_counts(models, protocol):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 80},
        "completion_tokens_details": {"reasoning_tokens": 5},
    }
    async with ChatServer({"m": [{"text": "x", "usage": usage}]}) as server:
        reply = await ask(models, server.url, protocol=protocol)
    assert reply.usage == TokenUsage(100, 20, 80, 5)


@BOTH
async def test_usage_that_the_provider_does_not_give_is_unknown_and_not_zero(models, protocol):
    async with ChatServer({"m": [{"text": "x", "usage": {}}]}) as server:
        reply = await ask(models, server.url, protocol=protocol)
    assert reply.usage is None


async def test_an_endpoint_that_does_not_know_stream_options_is_asked_without_from_then_on(models):
    def old(body):
        if "stream_options" in body:
            return {"error": "unknown_parameter", "param": "stream_options",
                    "text": "Unrecognized request argument supplied: stream_options"}  # fmt: skip
        return "fine"

    async with ChatServer({"m": [old] * 4}) as server:
        for _ in range(2):
            assert (await ask(models, server.url)).message.text == "fine"
        assert len(server.calls["m"]) == 3


REFUSED = [
    ({"status": 400}, 400, "scripted 400", ""),
    ({"error": "invalid_api_key"}, 401, "Incorrect API key", "`api_key` of the node"),
    ({"status": 402}, 402, "want of credit", "quota"),
    ({"status": 403}, 403, "scripted 403", "may not use this model"),
    ({"error": "model_not_found"}, 404, "does not exist", ""),
    ({"status": 413}, 413, "scripted 413", ""),
    ({"status": 422}, 422, "scripted 422", ""),
    ({"error": "insufficient_quota"}, 429, "exceeded your current quota", "repeating does not"),
    ({"error": "context_length_exceeded"}, 400, "maximum context length", "context_window"),
    ({"error": "unsupported_parameter", "param": "max_tokens"}, 400, "max_tokens", "`max_tokens`"),
]


@BOTH
@pytest.mark.parametrize(
    ("written", "status", "text", "hint"), REFUSED, ids=[str(r[0]) for r in REFUSED]
)
async def test_what_stays_wrong_is_refused_after_one_request(
    models, protocol, written, status, text, hint
):
    async with ChatServer({"m": [written]}) as server:
        error = await failed(models, server.url, protocol=protocol)
        assert len(server.calls["m"]) == 1
    is_long = "context_length_exceeded" in written.values()
    assert type(error) is (ContextOverflow if is_long else ModelRefused)
    assert error.status == status
    assert text in str(error)
    assert hint in error.hint
    assert server.url in str(error)


async def test_a_404_names_model_and_url_and_the_other_protocol(models):
    async with ChatServer(protocols=frozenset({"chat"})) as server:
        chat = await failed(models, server.url + "/wrong")
        other = await failed(models, server.url, protocol="responses")
    assert f"({server.url}/wrong)" in chat.hint
    assert "(m)" in chat.hint
    assert "protocol: chat" in other.hint


UNAVAILABLE = [
    ({"status": 408}, 408, None),
    ({"status": 409}, 409, None),
    ({"status": 425}, 425, None),
    ({"error": "rate_limit_exceeded", "retry_after": 7}, 429, 7),
    ({"status": 429, "headers": {"retry-after-ms": "1500"}}, 429, 1.5),
    ({"status": 429, "retry_after": "soon"}, 429, None),
    ({"status": 500}, 500, None),
    ({"status": 502, "body": "<html><body>Bad gateway</body></html>"}, 502, None),
    ({"error": "overloaded", "retry_after": 3}, 503, 3),
    ({"status": 529}, 529, None),
]


@BOTH
@pytest.mark.parametrize(
    ("written", "status", "wait"), UNAVAILABLE, ids=[str(r[0]) for r in UNAVAILABLE]
)
async def test_what_may_pass_is_unavailable_and_not_repeated_here(
    models, protocol, written, status, wait
):
    async with ChatServer({"m": [written]}) as server:
        error = await failed(models, server.url, protocol=protocol)
        assert len(server.calls["m"]) == 1
    assert type(error) is ModelUnavailable
    assert (error.status, error.retry_after) == (status, wait)


async def test_retry_after_may_be_a_date_or_google_s_own_field(models):
    later = time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(time.time() + 30))
    detail = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
    body = [{"error": {"code": 429, "message": "quota", "details": [detail]}}]
    replies = [{"status": 429, "retry_after": later}, {"status": 429, "body": body}]
    async with ChatServer({"m": replies}) as server:
        dated = await failed(models, server.url)
        google = await failed(models, server.url)
    assert dated.retry_after is not None
    assert 20 < dated.retry_after <= 30
    assert google.retry_after == 17
    assert "quota" in str(google)


@BOTH
@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("html", BadModelResponse, "a page of HTML: <!DOCTYPE html>"),
        ("empty_body", BadModelResponse, "answered with nothing"),
        ("empty_stream", BadModelResponse, "with no (choices|output)"),
        ("broken_json", BadModelResponse, 'cannot be read: {"id"'),
        ("half_stream", ModelUnavailable, "broke off"),
        ("early_end", ModelUnavailable, "broke off before its end"),
        ("close", ModelUnavailable, "closed the connection without an answer"),
    ],
)
async def test_an_answer_that_is_none_says_what_came(models, protocol, fault, kind, text):
    async with ChatServer({"m": [{"text": LONG, "fault": fault}]}) as server:
        error = await failed(models, server.url, protocol=protocol)
    assert type(error) is kind
    assert re.search(text, str(error))


async def test_choices_null_is_shown_as_it_came(models):
    replies = [{"fault": "null_choices"}, {"fault": "null_choices"}]
    async with ChatServer({"m": replies}) as server:
        streamed = await failed(models, server.url)
        whole = await failed(models, server.url, params={"stream": False})
        server.calls.clear()
        output = await failed(models, server.url, params={"stream": False}, protocol="responses")
    assert '"choices": null' in str(streamed)
    assert '"choices": null' in str(whole)
    assert '"output": null' in str(output)


@pytest.mark.parametrize("body", [[1, 2], "plain text", {"detail": "x"}])
async def test_other_json_with_status_200_is_no_answer(models, body):
    async with ChatServer({"m": [{"body": body}]}) as server:
        assert type(await failed(models, server.url)) is BadModelResponse


async def test_an_error_object_with_status_200_is_an_error(models):
    limited = {"error": {"code": 429, "message": "slow down"}}
    refused = {"error": {"code": "invalid_prompt", "message": "no"}}
    async with ChatServer({"m": [{"body": limited}, {"body": refused}]}) as server:
        first = await failed(models, server.url)
        second = await failed(models, server.url)
    assert (type(first), first.status) == (ModelUnavailable, 429)
    assert type(second) is ModelRefused


@BOTH
@pytest.mark.parametrize(
    ("code", "kind"), [("server_error", ModelUnavailable), ("insufficient_quota", ModelRefused)]
)
async def test_an_error_in_the_midst_of_a_stream_is_an_error(models, protocol, code, kind):
    async with ChatServer(
        {"m": [{"text": LONG, "fault": "stream_error", "error": code}]}
    ) as server:
        assert type(await failed(models, server.url, protocol=protocol)) is kind


@BOTH
async def test_a_connection_that_is_refused_names_the_url(models, protocol):
    with refused_url() as url:
        error = await failed(models, url, protocol=protocol)
    assert type(error) is ModelUnavailable
    assert "Connection refused" in str(error)
    assert url in str(error)


@BOTH
@pytest.mark.parametrize(("fault", "text"), [("silence", "did not answer"), ("stall", "finish")])
async def test_the_timeout_is_that_of_the_whole_attempt(models, protocol, fault, text):
    async with ChatServer({"m": [{"text": LONG, "fault": fault}]}) as server:
        error = await failed(models, server.url, protocol=protocol, timeout=0.2)
        assert type(error) is ModelUnavailable
        assert text in str(error)
        assert "0.2 s" in str(error)
        await server.until(lambda: server.active == 0 and server.connections == 0)


async def test_a_slow_drip_runs_into_the_timeout_too(models):
    async with ChatServer({"m": [{"text": LONG, "pause": 0.1}]}) as server:
        error = await failed(models, server.url, timeout=0.3)
    assert "did not finish its answer" in str(error)


@BOTH
@pytest.mark.parametrize("fault", ["silence", "stall"])
async def test_cancelling_the_task_closes_the_request_within_a_second(models, protocol, fault):
    heard: list[str] = []
    async with ChatServer({"m": [{"text": LONG, "fault": fault}]}) as server:
        task = asyncio.create_task(ask(models, server.url, heard=heard, protocol=protocol))
        await server.until(lambda: server.active == 1 and (fault == "silence" or bool(heard)))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda: server.abandoned == 1 and server.active == 0, 1)
        assert (await ask(models, server.url, protocol=protocol)).message.text == "m reply 2"


async def test_models_of_one_endpoint_and_key_share_one_client(models):
    async with ChatServer() as server:
        for name, key in [("a", "k1"), ("b", "k1"), ("c", "k2")]:
            model = models.model(ModelChoice("openai", name, server.url, key))
            await model.complete(ChatRequest((user("hi"),)), lambda _: None)
        keys = [request.headers["authorization"] for request in server.requests]
    assert keys == ["Bearer k1", "Bearer k1", "Bearer k2"]
    assert len(models._opened().opened) == 2


async def test_many_requests_run_at_once(models):
    async with ChatServer({"m": [{"text": "x", "delay": 0.2}] * 50}) as server:
        await asyncio.gather(*(ask(models, server.url) for _ in range(50)))
        assert server.most_active == 50


async def test_closing_the_source_closes_its_connections():
    models = Models({})
    async with ChatServer() as server:
        await ask(models, server.url)
        await models.aclose()
        await server.until(lambda: server.connections == 0)


@pytest.mark.parametrize("status", [400, 401, 429, 500])
async def test_a_key_that_the_endpoint_echoes_stands_in_no_text(models, status):
    said = f"Incorrect key {SECRET} given"
    async with ChatServer({"m": [{"status": status, "text": said}]}) as server:
        error = await failed(models, server.url.replace("//", "//user:pw@") + "?apiKey=hush")
    shown = f"{error} {error.hint} {error!r} {error.__dict__}"
    assert SECRET not in shown
    assert "pw" not in error.url
    assert "hush" not in shown
    assert "Incorrect key *** given" in str(error)


async def test_a_proxy_of_the_environment_is_not_asked_for_a_loopback_server(models, monkeypatch):
    with refused_url() as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        monkeypatch.setenv("http_proxy", url)
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        async with ChatServer() as server:
            assert (await ask(models, server.url)).message.text == "m reply 1"


async def test_what_a_listener_raises_is_not_taken_for_a_model_s_failure(models):
    def breaks(_: str) -> None:
        raise ValueError("ours")

    async with ChatServer() as server:
        model = models.model(ModelChoice("openai", "m", server.url))
        with pytest.raises(ValueError, match="ours"):
            await model.complete(ChatRequest((user("hi"),)), breaks)
        await server.until(lambda: server.active == 0)


async def test_a_call_s_id_that_is_missing_is_made_up(models):
    message = {"tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}
    body = {"choices": [{"message": message, "finish_reason": "tool_calls"}]}
    async with ChatServer({"m": [{"body": body}]}) as server:
        reply = await ask(models, server.url)
    (call,) = reply.message.tool_calls
    assert call == ToolCall(call.id, "f", "{}", {})
    assert call.id
