"""Messages on the wire of the Responses API, and answers read from it."""

from __future__ import annotations

import pytest

from devall.core.errors import ModelRefused
from devall.core.messages import MediaPart, Message, TextPart, ToolCall, assistant, user
from devall.models.base import ChatRequest, ToolSchema
from devall.models.convert import RESPONSES_OUTPUT
from devall.models.convert_responses import ResponsesAnswer, body_of

REASONING = {"type": "reasoning", "id": "rs_1", "encrypted_content": "xyz", "summary": []}
CALL = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}"}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "hi", "annotations": []}],
}


def whole(*items: dict, **fields) -> ResponsesAnswer:
    answer = ResponsesAnswer()
    answer.feed({"object": "response", "output": list(items), **fields})
    return answer


def sent(*messages: Message, **params) -> dict:
    return body_of(ChatRequest(messages, params=params, attachments=lambda _: b"x"), "m")


def test_a_conversation_becomes_items():
    body = sent(
        Message("system", "be brief"),
        user("hi"),
        Message("assistant", "looking", tool_calls=(ToolCall("c1", "f", '{"a": 1}'),)),
        Message("tool", "42", tool_call_id="c1"),
        assistant("it is 42"),
    )
    assert body == {
        "model": "m",
        "input": [
            {"role": "system", "content": "be brief"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "looking"},
            {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1}'},
            {"type": "function_call_output", "call_id": "c1", "output": "42"},
            {"role": "assistant", "content": "it is 42"},
        ],
    }


def test_tools_are_not_strict_so_that_optional_arguments_stay_so():
    tool = ToolSchema("f", "does", {"type": "object"})
    body = body_of(ChatRequest((user("hi"),), (tool,)), "m")
    assert body["tools"] == [
        {
            "type": "function",
            "name": "f",
            "strict": False,
            "description": "does",
            "parameters": {"type": "object"},
        }
    ]


def test_params_in_the_words_of_chat_completions_are_said_in_this_api_s():
    schema = {"name": "r", "schema": {"type": "object"}}
    body = sent(
        user("hi"),
        max_tokens=5,
        reasoning_effort="low",
        response_format={"type": "json_schema", "json_schema": schema},
        tool_choice={"type": "function", "function": {"name": "f"}},
        temperature=0,
        seed=None,
    )
    del body["model"], body["input"]
    assert body == {
        "max_output_tokens": 5,
        "reasoning": {"effort": "low"},
        "text": {"format": {"type": "json_schema", **schema}},
        "tool_choice": {"type": "function", "name": "f"},
        "temperature": 0,
    }


def test_media_have_this_api_s_forms():
    parts = (
        TextPart("look"),
        MediaPart("image", "image/png", url="https://x/a.png"),
        MediaPart("file", "application/pdf", url="https://x/a.pdf"),
        MediaPart("file", "application/pdf", attachment="a.pdf"),
        MediaPart("audio", "audio/wav", attachment="a.wav"),
    )
    content = sent(Message("user", parts))["input"][0]["content"]
    assert [part["type"] for part in content] == [
        "input_text",
        "input_image",
        "input_file",
        "input_file",
        "input_audio",
    ]
    with pytest.raises(ModelRefused, match="takes no video"):
        sent(Message("user", (MediaPart("video", "video/mp4", attachment="a.mp4"),)))


def test_media_of_tool_results_follow_in_a_user_item():
    image = MediaPart("image", "image/png", url="https://x/a.png")
    items = sent(Message("tool", (TextPart("one"), image), tool_call_id="c1"), user("go"))["input"]
    assert items[0]["output"] == "one"
    assert [part["type"] for part in items[1]["content"]] == ["input_text", "input_image"]
    assert items[2] == {"role": "user", "content": "go"}


def test_reasoning_goes_back_as_it_came():
    message = whole(REASONING, CALL).reply().message
    assert message.tool_calls == (ToolCall("c1", "f", "{}"),)
    assert sent(message)["input"] == [REASONING, CALL]


def test_items_are_made_anew_where_the_message_says_something_else():
    message = whole(REASONING, SAID).reply().message.with_text("changed")
    assert sent(message)["input"] == [{"role": "assistant", "content": "changed"}]


def test_without_reasoning_nothing_extra_is_kept():
    message = whole(SAID, CALL).reply().message
    assert RESPONSES_OUTPUT not in message.extra
    assert message.text == "hi"


def test_a_cut_answer_has_the_finish_reason_length():
    cut = {"incomplete_details": {"reason": "max_output_tokens"}}
    assert whole(SAID, CALL, **cut).reply().finish_reason == "length"
    assert whole(SAID, CALL).reply().finish_reason == "tool_calls"
    assert whole(SAID).reply().finish_reason == "stop"


def test_items_of_the_stream_stand_in_where_the_last_event_has_none():
    answer = ResponsesAnswer()
    assert answer.feed({"type": "response.output_text.delta", "delta": "hi"}) == "hi"
    answer.feed({"type": "response.output_item.done", "item": SAID})
    answer.feed({"type": "response.completed", "response": {"output": [], "model": "m-1"}})
    assert answer.reply().message.text == "hi"
    assert answer.reply().model == "m-1"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "code": "server_error", "message": "broken"},
        {"type": "response.failed", "response": {"error": {"message": "broken"}}},
    ],
)
def test_an_error_event_is_a_failure(event):
    answer = ResponsesAnswer()
    answer.feed(event)
    assert answer.failure["message"] == "broken"
