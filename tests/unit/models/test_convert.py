"""Messages on the wire of Chat Completions, and answers read from it."""

from __future__ import annotations

import base64
import json

import pytest

from devall.core.errors import BadModelResponse, ModelRefused
from devall.core.messages import DataPart, MediaPart, Message, TextPart, ToolCall, assistant, user
from devall.core.usage import TokenUsage
from devall.models.base import ChatRequest, ToolSchema
from devall.models.convert import RESPONSES_OUTPUT, ChatAnswer, body_of, usage_of, wire_messages

PNG = MediaPart("image", "image/png", attachment="ab.png")
FILES = {"ab.png": b"\x89PNG", "s.mp3": b"ID3"}


def wire(*messages: Message) -> list[dict]:
    return wire_messages(ChatRequest(messages, attachments=FILES.__getitem__))


def fed(*chunks: dict) -> ChatAnswer:
    answer = ChatAnswer()
    for chunk in chunks:
        answer.feed(chunk)
    return answer


def delta(**fields) -> dict:
    return {"choices": [{"index": 0, "delta": fields}]}


def test_nothing_is_sent_that_the_file_does_not_set():
    body = body_of(ChatRequest((user("hi"),)), "m")
    assert body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


def test_params_are_sent_as_given_and_null_is_not_given():
    request = ChatRequest((user("hi"),), params={"temperature": 0, "seed": None, "odd": {"a": 1}})
    body = body_of(request, "m")
    assert (body["temperature"], body["odd"], "seed" in body) == (0, {"a": 1}, False)


def test_tools_are_offered_as_functions():
    parameters = {"type": "object", "properties": {"a": {"type": "integer"}}}
    request = ChatRequest((user("hi"),), (ToolSchema("f", "does", parameters),))
    function = {"name": "f", "description": "does", "parameters": parameters}
    assert body_of(request, "m")["tools"] == [{"type": "function", "function": function}]


def test_an_empty_user_message_is_sent_as_empty_text():
    assert wire(user("")) == [{"role": "user", "content": ""}]


def test_a_call_without_text_has_empty_content():
    sent = wire(Message("assistant", tool_calls=(ToolCall("c1", "f", '{"a": 1}'),)))
    assert sent == [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "f", "arguments": '{"a": 1}'},
                }
            ],
        }
    ]


@pytest.mark.parametrize("written", ['{"path":', "null", "[1]", '"x"', "{'a': 1}"])
def test_earlier_arguments_that_are_no_object_go_back_as_one(written):
    sent = wire(Message("assistant", tool_calls=(ToolCall("c1", "f", written),)))
    arguments = sent[0]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"malformed_arguments": written}


def test_earlier_arguments_that_are_empty_go_back_as_an_empty_object():
    sent = wire(Message("assistant", tool_calls=(ToolCall("c1", "f", ""),)))
    assert sent[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_a_tool_s_error_says_that_it_is_one_once():
    failed = Message("tool", "no such city", tool_call_id="c1", is_error=True)
    told = Message("tool", "Error: no such city", tool_call_id="c1", is_error=True)
    assert [m["content"] for m in wire(failed, told)] == ["Error: no such city"] * 2


def test_parts_without_media_are_one_text():
    message = Message("user", (TextPart("look"), DataPart({"a": 1})))
    assert wire(message) == [{"role": "user", "content": 'look\n{"a": 1}'}]


def test_an_attachment_is_sent_as_its_bytes_in_its_place():
    sent = wire(Message("user", (TextPart("look"), PNG, TextPart("here"))))[0]["content"]
    encoded = base64.b64encode(FILES["ab.png"]).decode()
    assert sent == [
        {"type": "text", "text": "look"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{encoded}"}},
        {"type": "text", "text": "here"},
    ]


def test_media_by_url_pass_through_unread():
    parts = (
        MediaPart("image", "image/png", url="https://x/a.png"),
        MediaPart("video", "video/mp4", url="https://x/a.mp4"),
        MediaPart("file", "application/pdf", url="https://x/a.pdf", name="a.pdf"),
    )
    message = Message("user", parts)
    assert wire_messages(ChatRequest((message,)))[0]["content"] == [
        {"type": "image_url", "image_url": {"url": "https://x/a.png"}},
        {"type": "video_url", "video_url": {"url": "https://x/a.mp4"}},
        {"type": "text", "text": "a.pdf: https://x/a.pdf"},
    ]


def test_audio_and_files_have_their_own_forms():
    parts = (
        MediaPart("audio", "audio/mpeg", attachment="s.mp3"),
        MediaPart("file", "image/png", attachment="ab.png", name="plan.png"),
    )
    audio, file = wire(Message("user", parts))[0]["content"]
    assert audio["input_audio"] == {"data": base64.b64encode(b"ID3").decode(), "format": "mp3"}
    assert file["file"]["filename"] == "plan.png"


def test_media_of_tool_results_follow_the_block_of_results():
    calls = (ToolCall("c1", "shot", "{}"), ToolCall("c2", "shot", "{}"))
    sent = wire(
        Message("assistant", tool_calls=calls),
        Message("tool", (TextPart("one"), PNG), tool_call_id="c1"),
        Message("tool", "two", tool_call_id="c2"),
        assistant("done"),
    )
    assert [m["role"] for m in sent] == ["assistant", "tool", "tool", "user", "assistant"]
    assert sent[1]["content"] == "one"
    assert sent[3]["content"][0] == {"type": "text", "text": "The media of tool result c1:"}
    assert sent[3]["content"][1]["type"] == "image_url"


def test_an_attachment_that_cannot_be_read_is_named():
    message = Message("user", (MediaPart("image", "image/png", attachment="gone.png"),))
    with pytest.raises(ModelRefused, match=r"gone\.png"):
        wire(message)
    with pytest.raises(ModelRefused, match="nothing reads it"):
        wire_messages(ChatRequest((message,)))


def test_unknown_fields_make_the_round_trip():
    signed = {"extra_content": {"google": {"thought_signature": "sig"}}}
    function = {"name": "f", "arguments": "{}"}
    call = {"index": 0, "id": "c1", "type": "function", "function": function, **signed}
    answer = fed(
        delta(reasoning_content="thin"), delta(reasoning_content="king", tool_calls=[call])
    )
    sent = wire(answer.reply().message)[0]
    assert sent["reasoning_content"] == "thinking"
    assert sent["tool_calls"][0]["extra_content"] == signed["extra_content"]


def test_lists_among_unknown_fields_grow():
    answer = fed(delta(reasoning_details=[{"i": 0}]), delta(reasoning_details=[{"i": 1}]))
    assert answer.reply().message.extra["reasoning_details"] == [{"i": 0}, {"i": 1}]


def test_unknown_fields_go_back_with_assistant_messages_alone():
    extra = {"reasoning_content": "x", "annotations": [1], RESPONSES_OUTPUT: [{}]}
    assert wire(Message("assistant", "hi", extra=extra)) == [
        {"role": "assistant", "content": "hi", "reasoning_content": "x"}
    ]
    assert wire(Message("user", "hi", extra=extra)) == [{"role": "user", "content": "hi"}]


def test_a_whole_answer_and_a_stream_read_alike():
    function = {"name": "f", "arguments": '{"a": 1}'}
    call = {"id": "c1", "type": "function", "function": function}
    message = {"role": "assistant", "content": "text", "tool_calls": [call]}
    whole = fed({"choices": [{"message": message, "finish_reason": "tool_calls"}], "model": "m-1"})
    begun = {"name": "f", "arguments": ""}
    streamed = fed(
        {"model": "m-1", **delta(content="te")},
        delta(content="xt"),
        delta(tool_calls=[{"index": 0, "id": "c1", "function": begun}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": '{"a"'}}]),
        delta(tool_calls=[{"index": 0, "function": {"arguments": ": 1}"}}]),
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
    )
    assert whole.reply() == streamed.reply()
    assert whole.reply().message.tool_calls == (ToolCall("c1", "f", '{"a": 1}'),)


def named(name: str, arguments: str, **fields) -> dict:
    return {"function": {"name": name, "arguments": arguments}, **fields}


@pytest.mark.parametrize(
    "chunks",
    [
        [[named("f", "{}", index=0, id="a")], [named("g", "{}", index=0, id="b")]],
        [[named("f", "{}", id="a")], [named("g", "{}", id="b")]],
        [[named("f", "{}"), named("g", "{}")]],
        [[named("f", "{}")], [named("g", "{}")]],
        [[named("f", "", index=0, id="a"), named("g", "{}", index=1, id="b")],
         [{"index": 0, "function": {"arguments": "{}"}}]],
        [[named("f", "{", id="a")], [{"id": "a", "function": {"arguments": "}"}}],
         [named("g", "{}", id="b")]],
    ],
    ids=["one index", "no index", "no id", "no id, apart", "interleaved", "id repeated"],
)  # fmt: skip
def test_calls_are_told_apart_however_an_endpoint_numbers_them(chunks):
    calls = fed(*(delta(tool_calls=chunk) for chunk in chunks)).reply().message.tool_calls
    assert [(c.name, c.arguments) for c in calls] == [("f", "{}"), ("g", "{}")]
    assert len({c.id for c in calls}) == 2
    assert all(c.id for c in calls)


def test_arguments_given_as_an_object_become_text():
    answer = fed(delta(tool_calls=[{"id": "a", "function": {"name": "f", "arguments": {"a": 1}}}]))
    assert answer.reply().message.tool_calls[0].arguments == '{"a": 1}'


def test_a_call_without_a_name_is_no_answer():
    answer = fed(delta(tool_calls=[{"index": 0, "id": "a", "function": {"arguments": "{}"}}]))
    with pytest.raises(BadModelResponse, match="without a name"):
        answer.reply()


def test_calls_with_finish_reason_stop_are_calls():
    answer = fed({"choices": [{"message": {"tool_calls": [named("f", "{}", id="a")]},
                               "finish_reason": "stop"}]})  # fmt: skip
    assert answer.reply().finish_reason == "tool_calls"


def test_finish_reason_length_stays_with_calls():
    answer = fed(delta(tool_calls=[named("f", '{"a', index=0, id="a")]),
                 {"choices": [{"delta": {}, "finish_reason": "length"}]})  # fmt: skip
    assert answer.reply().finish_reason == "length"


def test_a_refusal_is_the_text_and_marked():
    reply = fed(delta(refusal="I will "), delta(refusal="not.")).reply()
    assert (reply.message.text, reply.finish_reason) == ("I will not.", "content_filter")


def test_content_given_as_parts_is_read():
    parts = [{"type": "thinking", "text": "hm"}, {"type": "text", "text": "yes"}]
    assert fed(delta(content=parts)).reply().message.text == "yes"


@pytest.mark.parametrize(
    ("raw", "usage"),
    [
        ({}, None),
        ({"total_tokens": 3}, None),
        ({"prompt_tokens": 5, "completion_tokens": 2}, TokenUsage(5, 2)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 1},
            },
            TokenUsage(5, 2, 4, 1),
        ),
        ({"prompt_tokens": 5, "completion_tokens": 2, "prompt_cache_hit_tokens": 3}, TokenUsage(5, 2, 3)),
        (
            {
                "prompt_tokens": 5,
                "completion_tokens": 2,
                "total_tokens": 10,
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            TokenUsage(5, 5, 0, 3),
        ),
        ({"input_tokens": 5, "output_tokens": 2, "input_tokens_details": {"cached_tokens": 4}}, TokenUsage(5, 2, 4)),
        ({"prompt_tokens": 5, "completion_tokens": None, "prompt_tokens_details": None}, TokenUsage(5)),
    ],
)  # fmt: skip
def test_usage_is_read_in_every_provider_s_words(raw, usage):
    assert usage_of(raw) == usage


@pytest.mark.parametrize(
    "odd",
    [
        {"choices": None},
        {"choices": []},
        {"choices": ["x"]},
        {"choices": [None]},
        {},
        {"choices": [{"index": 1, "delta": {"content": "other"}}]},
    ],
)
def test_what_is_no_choice_is_no_choice(odd):
    assert not fed(odd).has_choice


@pytest.mark.parametrize(
    "odd",
    [
        {"content": 5},
        {"content": None, "tool_calls": None},
        {"tool_calls": [None, "x"]},
        {"tool_calls": {"a": 1}},
    ],
)
def test_odd_shapes_never_crash(odd):
    answer = ChatAnswer()
    answer.feed({"choices": [{"delta": odd}], "usage": "x", "model": 5})
    assert answer.text == ""
