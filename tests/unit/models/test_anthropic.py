"""Models behind a real server that speaks the Messages API."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

pytest.importorskip("anthropic", reason="pip install devall[anthropic]")

from devall.agents.retry import is_worth_repeating
from devall.config.agents import RetryConfig
from devall.core.errors import BadModelResponse, ContextOverflow, ModelRefused, ModelUnavailable
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, user
from devall.core.usage import TokenUsage
from devall.models.base import ChatRequest, ModelChoice, ToolSchema
from devall.models.convert_messages import body_of
from devall.models.providers import Models
from devall.testing.chat_server import ChatServer, refused_url

SECRET = "sk-ant-sentinel-4242"
LONG = "a text that is long enough to come in several pieces"
TOOL = ToolSchema("f", "Does it.", {"type": "object", "properties": {}})


@pytest.fixture
async def models():
    source = Models({})
    yield source
    await source.aclose()


async def ask(models, url, *messages, heard=None, name="claude", tools=(), params=None, **choice):
    model = models.model(ModelChoice("anthropic", name, url, SECRET, **choice))
    request = ChatRequest(messages or (user("hi"),), tools, params or {}, lambda _: b"bytes")
    return await model.complete(request, (heard if heard is not None else []).append)


async def failed(models, url, **more):
    with pytest.raises(Exception, match=r".") as caught:
        await ask(models, url, **more)
    return caught.value


def body(*messages: Message, tools=(), **params):
    return body_of(ChatRequest(messages, tools, params, lambda _: b"bytes"), "claude")


async def test_the_answer_streams_in_pieces(models):
    heard: list[str] = []
    async with ChatServer({"claude": [LONG]}) as server:
        reply = await ask(models, server.url, heard=heard)
        (request,) = server.requests
    assert reply.message == Message("assistant", LONG)
    assert "".join(heard) == LONG
    assert len(heard) > 1
    assert (reply.finish_reason, reply.model) == ("stop", "claude")
    assert request.path == "/v1/messages"
    assert SECRET in {request.headers.get("x-api-key"), request.headers.get("authorization")}
    assert request.headers["anthropic-version"]


@pytest.mark.parametrize("ending", ["", "/", "/v1", "/v1/"])
async def test_the_url_may_end_in_v1_or_not(models, ending):
    async with ChatServer() as server:
        await ask(models, server.url.removesuffix("/v1") + ending)
        assert server.requests[0].path == "/v1/messages"


@pytest.mark.parametrize("how", ["asked for", "given all the same"])
async def test_an_answer_in_one_piece_is_read_too(models, how):
    heard: list[str] = []
    call = {"name": "f", "arguments": {"a": 1}}
    fault, params = (None, {"stream": False}) if how == "asked for" else ("plain_json", {})
    script = {"claude": [{"text": LONG, "fault": fault, "tool_calls": [call]}]}
    async with ChatServer(script) as server:
        reply = await ask(models, server.url, heard=heard, params=params)
    assert (reply.message.text, reply.finish_reason) == (LONG, "tool_calls")
    assert reply.message.tool_calls[0].arguments == '{"a": 1}'
    assert heard == [LONG]


async def test_nothing_is_sent_that_was_not_asked_for(models):
    async with ChatServer() as server:
        await ask(models, server.url)
        await ask(models, server.url, Message("system", "be brief"), user("hi"), tools=(TOOL,))
        first, second = server.calls["claude"]
    assert first.keys() == {"model", "messages", "stream", "max_tokens"}
    assert second.keys() - first.keys() == {"system", "tools"}
    assert second["system"] == "be brief"
    assert second["tools"][0]["input_schema"] == {"type": "object", "properties": {}}


async def test_tool_calls_and_their_results_make_the_round_trip(models):
    calls = [{"name": "f", "arguments": {"a": "ä"}}, {"name": "g", "arguments": {}}]
    async with ChatServer({"claude": [{"text": "wait", "tool_calls": calls}, "done"]}) as server:
        first = await ask(models, server.url, tools=(TOOL,))
        one, two = first.message.tool_calls
        results = (
            Message("tool", "42", tool_call_id=one.id),
            Message("tool", "no", tool_call_id=two.id, is_error=True),
        )
        await ask(models, server.url, user("hi"), first.message, *results, user("go on"))
        sent = server.calls["claude"][1]["messages"]
    assert first.finish_reason == "tool_calls"
    assert [(c.name, json.loads(c.arguments)) for c in (one, two)] == [("f", {"a": "ä"}), ("g", {})]
    assert [m["role"] for m in sent] == ["user", "assistant", "user"]
    assert sent[1]["content"] == [
        {"type": "text", "text": "wait"},
        {"type": "tool_use", "id": one.id, "name": "f", "input": {"a": "ä"}},
        {"type": "tool_use", "id": two.id, "name": "g", "input": {}},
    ]
    assert sent[2]["content"] == [
        {"type": "tool_result", "tool_use_id": one.id, "content": "42"},
        {"type": "tool_result", "tool_use_id": two.id, "content": "no", "is_error": True},
        {"type": "text", "text": "go on"},
    ]


async def test_thoughts_go_back_as_they_came(models):
    thinking = [
        {"type": "thinking", "thinking": "I wonder about it", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]
    first = {"tool_calls": [{"name": "f", "arguments": {}}], "extra": {"thinking": thinking}}
    async with ChatServer({"claude": [first]}) as server:
        said = (await ask(models, server.url)).message
        await ask(models, server.url, user("hi"), said)
        content = server.calls["claude"][1]["messages"][1]["content"]
    assert content[:2] == thinking
    assert content[2]["id"] == said.tool_calls[0].id


@pytest.mark.parametrize("stream", [True, False])
async def test_cached_tokens_are_part_of_the_input_once(models, stream):
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 20,
        "prompt_tokens_details": {"cached_tokens": 80},
        "cache_creation_input_tokens": 7,
        "output_tokens_details": {"thinking_tokens": 5},
    }
    async with ChatServer({"claude": [{"text": "x", "usage": usage}]}) as server:
        reply = await ask(models, server.url, params={"stream": stream})
    assert reply.usage == TokenUsage(107, 20, 80, 5)


async def test_usage_that_the_provider_does_not_give_is_unknown_and_not_zero(models):
    async with ChatServer({"claude": [{"text": "x", "usage": {}}]}) as server:
        assert (await ask(models, server.url)).usage is None


@pytest.mark.parametrize(
    ("finish", "ours"),
    [("length", "length"), ("refusal", "content_filter"), ("pause_turn", "pause_turn"),
     ("stop_sequence", "stop"), ("model_context_window_exceeded", "length")],
)  # fmt: skip
async def test_the_finish_reason_is_in_our_words(models, finish, ours):
    async with ChatServer({"claude": [{"text": "x", "finish_reason": finish}]}) as server:
        assert (await ask(models, server.url)).finish_reason == ours


async def test_arguments_that_were_cut_off_stay_as_they_came(models):
    cut = {"tool_calls": [{"name": "f", "arguments": '{"a'}], "finish_reason": "length"}
    async with ChatServer({"claude": [cut]}) as server:
        reply = await ask(models, server.url)
    assert (reply.finish_reason, reply.message.tool_calls[0].arguments) == ("length", '{"a')


REFUSED = [
    ({"status": 400}, ModelRefused, 400, ""),
    ({"status": 401}, ModelRefused, 401, "`api_key` of the node"),
    ({"status": 403}, ModelRefused, 403, "may not use this model"),
    ({"status": 404}, ModelRefused, 404, "claude"),
    ({"status": 400, "text": "Your credit balance is too low"}, ModelRefused, 400, "quota"),
    ({"status": 400, "text": "prompt is too long: 9 > 8"}, ContextOverflow, 400, "context_window"),
    ({"status": 429, "retry_after": 7}, ModelUnavailable, 429, ""),
    ({"status": 500}, ModelUnavailable, 500, ""),
    ({"status": 529}, ModelUnavailable, 503, ""),
]


@pytest.mark.parametrize(
    ("written", "kind", "status", "hint"), REFUSED, ids=[str(r[0]) for r in REFUSED]
)
async def test_what_goes_wrong_is_told_after_one_request(models, written, kind, status, hint):
    async with ChatServer({"claude": [written]}) as server:
        error = await failed(models, server.url)
        assert len(server.requests) == 1
    assert (type(error), error.status) == (kind, status)
    assert hint in error.hint
    assert server.url in str(error)
    assert error.retry_after == written.get("retry_after")
    assert is_worth_repeating(error, RetryConfig()) is (kind is ModelUnavailable)


@pytest.mark.parametrize(
    ("code", "kind"),
    [("overloaded_error", ModelUnavailable), ("api_error", ModelUnavailable),
     ("invalid_request_error", ModelRefused), ("billing_error", ModelRefused)],
)  # fmt: skip
async def test_an_error_in_the_midst_of_a_stream_is_an_error(models, code, kind):
    script = {"claude": [{"text": LONG, "fault": "stream_error", "error": code}]}
    async with ChatServer(script) as server:
        assert type(await failed(models, server.url)) is kind


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        ("html", BadModelResponse, "a page of HTML"),
        ("empty_body", BadModelResponse, "answered with nothing"),
        ("empty_stream", BadModelResponse, "with no message"),
        ("broken_json", BadModelResponse, "cannot be read"),
        ("half_stream", ModelUnavailable, "broke off"),
        ("early_end", ModelUnavailable, "broke off before its end"),
        ("close", ModelUnavailable, "closed the connection without an answer"),
    ],
)
async def test_an_answer_that_is_none_says_what_came(models, fault, kind, text):
    async with ChatServer({"claude": [{"text": LONG, "fault": fault}]}) as server:
        error = await failed(models, server.url)
    assert type(error) is kind
    assert text in str(error)


async def test_a_connection_that_is_refused_names_the_url(models):
    with refused_url() as url:
        error = await failed(models, url)
    assert type(error) is ModelUnavailable
    assert "Connection refused" in str(error)
    assert url in str(error)


async def test_the_timeout_is_that_of_the_whole_attempt(models):
    async with ChatServer({"claude": [{"text": LONG, "fault": "stall"}]}) as server:
        error = await failed(models, server.url, timeout=0.3)
    assert type(error) is ModelUnavailable
    assert "0.3 s" in str(error)


async def test_cancelling_the_task_closes_the_request(models):
    async with ChatServer({"claude": [{"text": LONG, "fault": "stall"}]}) as server:
        task = asyncio.create_task(ask(models, server.url))
        await server.until(lambda: server.active == 1)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await server.until(lambda: server.abandoned == 1 and server.active == 0, 1)


async def test_a_key_that_the_endpoint_echoes_stands_in_no_text(models):
    async with ChatServer({"claude": [{"status": 401, "text": f"bad {SECRET}"}]}) as server:
        error = await failed(models, server.url)
    assert SECRET not in f"{error} {error.hint} {error!r} {error.__dict__}"


async def test_a_model_that_gives_fewer_tokens_than_we_ask_for_is_asked_for_those(models):
    def small(body):
        if body["max_tokens"] > 4096:
            text = f"max_tokens: {body['max_tokens']} > 4096, which is the maximum for small-claude"
            return {"status": 400, "text": text}
        return "fine"

    async with ChatServer({"small-claude": [small] * 4}) as server:
        for _ in range(2):
            assert (await ask(models, server.url, name="small-claude")).message.text == "fine"
        error = await failed(models, server.url, name="small-claude", params={"max_tokens": 5000})
        sent = [call["max_tokens"] for call in server.calls["small-claude"]]
    assert sent == [8192, 4096, 4096, 5000]
    assert error.status == 400


async def test_a_parameter_that_is_not_taken_is_left_out_and_told_once(models):
    def new(body):
        if "temperature" in body:
            return {"status": 400, "text": "temperature: Extra inputs are not permitted"}
        return "fine"

    async with ChatServer({"new-claude": [new] * 3}) as server:
        params = {"temperature": 0.5}
        first = await ask(models, server.url, name="new-claude", params=params)
        second = await ask(models, server.url, name="new-claude", params=params)
        assert len(server.requests) == 3
    assert "does not take `temperature`" in first.notes[0]
    assert second.notes == ()


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"max_completion_tokens": 5}, {"max_tokens": 5}),
        ({"max_tokens": 5, "temperature": 0.5, "top_k": 3}, {"max_tokens": 5, "top_k": 3}),
        ({"stop": "END"}, {"stop_sequences": ["END"]}),
        ({"stop": ["A", "B"]}, {"stop_sequences": ["A", "B"]}),
        ({"tool_choice": "required"}, {"tool_choice": {"type": "any"}}),
        ({"tool_choice": "none"}, {"tool_choice": {"type": "none"}}),
        (
            {"tool_choice": {"type": "function", "function": {"name": "f"}}},
            {"tool_choice": {"type": "tool", "name": "f"}},
        ),
        (
            {"parallel_tool_calls": False},
            {"tool_choice": {"type": "auto", "disable_parallel_tool_use": True}},
        ),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
        ),
        ({"user": "me"}, {"metadata": {"user_id": "me"}}),
        ({"thinking": {"type": "adaptive"}}, {"thinking": {"type": "adaptive"}}),
        (
            {
                "reasoning_effort": "low",
                "response_format": {"type": "json_schema", "json_schema": {"schema": {"a": 1}}},
            },
            {"output_config": {"effort": "low", "format": {"type": "json_schema",
                                                           "schema": {"a": 1}}}},
        ),
        ({"seed": None}, {}),
    ],
    ids=str,
)  # fmt: skip
def test_parameters_are_said_in_the_words_of_the_api(given, sent):
    found = body(user("hi"), tools=(TOOL,), **given)
    assert {k: found.get(k) for k in sent} == sent
    known = {"model", "max_tokens", "messages", "tools", "temperature"}
    assert found.keys() - known == sent.keys() - known


def test_media_are_written_as_the_api_takes_them():
    parts = (
        TextPart("look"),
        MediaPart("image", "image/png", attachment="a.png"),
        MediaPart("image", "image/png", url="https://x/y.png"),
        MediaPart("image", "image/png", url="data:image/gif;base64,AAAA"),
        MediaPart("file", "application/pdf", attachment="b.pdf", name="B"),
        MediaPart("file", "text/csv", attachment="c.csv"),
        MediaPart("audio", "audio/mpeg", url="https://x/z.mp3"),
    )
    text, image, by_url, by_data, pdf, csv, audio = body(Message("user", parts))["messages"][0][
        "content"
    ]
    assert text == {"type": "text", "text": "look"}
    assert image["source"] == {"type": "base64", "media_type": "image/png", "data": "Ynl0ZXM="}
    assert by_url["source"] == {"type": "url", "url": "https://x/y.png"}
    assert by_data["source"] == {"type": "base64", "media_type": "image/gif", "data": "AAAA"}
    assert (pdf["type"], pdf["title"], pdf["source"]["type"]) == ("document", "B", "base64")
    assert csv["source"] == {"type": "text", "media_type": "text/plain", "data": "bytes"}
    assert "https://x/z.mp3" in audio["text"]


def test_a_tool_s_picture_stands_within_its_result():
    call = Message("assistant", "", tool_calls=(ToolCall("c", "f", "{}"),))
    parts = (TextPart("here"), MediaPart("image", "image/png", attachment="a.png"))
    sent = body(user("hi"), call, Message("tool", parts, tool_call_id="c"))["messages"]
    (result,) = sent[2]["content"]
    assert [part["type"] for part in result["content"]] == ["text", "image"]


def test_a_kind_of_file_that_the_api_does_not_take_is_told():
    with pytest.raises(ModelRefused, match="takes no audio") as caught:
        body(Message("user", (MediaPart("audio", "audio/mpeg", attachment="a.mp3"),)))
    assert "images, PDF" in caught.value.hint


def test_malformed_arguments_and_odd_ids_of_another_model_are_sent_in_a_form_that_is_taken():
    call = Message("assistant", "", tool_calls=(ToolCall("call.1/x", "f", "{oops"),))
    sent = body(user("hi"), call, Message("tool", "", tool_call_id="call.1/x"))["messages"]
    assert sent[1]["content"] == [
        {
            "type": "tool_use",
            "id": "call_1_x",
            "name": "f",
            "input": {"malformed_arguments": "{oops"},
        }
    ]
    assert sent[2]["content"] == [{"type": "tool_result", "tool_use_id": "call_1_x"}]


def test_a_missing_extra_names_the_command_that_installs_it():
    code = (
        "import sys\n"
        "import importlib.util\n"
        "real = importlib.util.find_spec\n"
        "importlib.util.find_spec = lambda n, *a: None if n == 'anthropic' else real(n, *a)\n"
        "from devall.models.base import ModelChoice\n"
        "from devall.models.providers import Models\n"
        "try:\n"
        "    Models({'ANTHROPIC_API_KEY': 'k'}).model(ModelChoice('anthropic', 'm'))\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error.exit_code, error.hint, 'anthropic' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "SetupError 4 pip install devall[anthropic] False"
