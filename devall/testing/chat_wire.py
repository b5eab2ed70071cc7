"""A scripted reply as bytes of Chat Completions or of the Responses API."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from devall.core.messages import JsonValue
from devall.models.shapes import as_object
from devall.testing.script import Reply, ScriptedCall

Protocol = Literal["chat", "responses", "messages"]
Json = dict[str, JsonValue]

_ERRORS: dict[str, tuple[int, str, str]] = {
    "insufficient_quota": (
        429,
        "insufficient_quota",
        "You exceeded your current quota, please check your plan and billing details.",
    ),
    "rate_limit_exceeded": (429, "requests", "Rate limit reached. Please try again later."),
    "context_length_exceeded": (
        400,
        "invalid_request_error",
        (
            "This model's maximum context length is 8192 tokens. However, your messages "
            "resulted in 9000 tokens. Please reduce the length of the messages."
        ),
    ),
    "unsupported_parameter": (
        400,
        "invalid_request_error",
        "Unsupported parameter: '{param}' is not supported with this model.",
    ),
    "invalid_api_key": (401, "invalid_request_error", "Incorrect API key provided."),
    "model_not_found": (404, "invalid_request_error", "The model does not exist."),
    "server_error": (500, "server_error", "The server had an error while processing."),
    "overloaded": (503, "server_error", "The engine is currently overloaded."),
}

HTML = "<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in</body></html>"


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides the form of an answer."""

    model: str
    number: int
    """Of this call to the model, from 1."""
    body: Mapping[str, JsonValue]
    protocol: Protocol

    @property
    def is_stream(self) -> bool:
        """Whether a stream was asked for."""
        return bool(self.body.get("stream"))

    @property
    def wants_usage(self) -> bool:
        """Whether usage goes with the answer."""
        if self.protocol == "responses" or not self.is_stream:
            return True
        return bool(as_object(self.body.get("stream_options")).get("include_usage"))


def error_status(reply: Reply) -> int:
    """The status of the reply, by its own word or by its error's."""
    if reply.status == 200 and reply.error and reply.fault != "stream_error":
        return _ERRORS.get(reply.error, (400, "", ""))[0]
    return reply.status


def error_body(reply: Reply) -> Json:
    """The error object that goes with a status of 400 and more."""
    _, kind, text = _ERRORS.get(reply.error, (0, "scripted_error", f"scripted {reply.status}"))
    message = reply.text or text.format(param=reply.param)
    code = reply.error or None
    return {"error": {"message": message, "type": kind, "param": reply.param, "code": code}}


def whole(reply: Reply, asked: Asked) -> Json:
    """The reply as one JSON object."""
    return _chat_whole(reply, asked) if asked.protocol == "chat" else _response(reply, asked)


def events(reply: Reply, asked: Asked) -> Iterator[str]:
    """The reply as server-sent events, the closing ones included."""
    yield from (_chat_events if asked.protocol == "chat" else _response_events)(reply, asked)


def call_id(call: ScriptedCall, asked: Asked, index: int) -> str:
    """The call's own id, or one made up from model, reply and position."""
    return call.id or f"call_{asked.model}_{asked.number}_{index}"


def event(data: JsonValue, name: str = "") -> str:
    """One server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "") + f"data: {text}\n\n"


def pieces(text: str, count: int = 6) -> list[str]:
    """The text in at most so many pieces."""
    size = max(1, -(-len(text) // count))
    return [text[i : i + size] for i in range(0, len(text), size)]


def counted(reply: Reply, asked: Asked) -> Json | None:
    """Words counted, unless the script says otherwise; None: no usage at all."""
    if reply.usage is not None:
        return dict(reply.usage) or None
    sent: JsonValue = asked.body.get("messages", asked.body.get("input", ""))
    read = len(json.dumps(sent, ensure_ascii=False).split())
    written = len(reply.text.split()) + sum(len(c.arguments_text.split()) for c in reply.tool_calls)
    return {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


def _chat_whole(reply: Reply, asked: Asked) -> Json:
    message: Json = {"role": "assistant", "content": reply.text or None, **reply.extra}
    if reply.tool_calls:
        message["tool_calls"] = [_chat_call(c, asked, i) for i, c in enumerate(reply.tool_calls)]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    found: Json = {
        "id": f"chatcmpl-{asked.model}-{asked.number}",
        "object": "chat.completion",
        "created": 0,
        "model": asked.model,
        "choices": None if reply.fault == "null_choices" else [choice],
    }
    if (usage := counted(reply, asked)) is not None:
        found["usage"] = usage
    return found


def _chat_call(call: ScriptedCall, asked: Asked, index: int) -> Json:
    function = {"name": call.name, "arguments": call.arguments_text}
    return {
        "id": call_id(call, asked, index),
        "type": "function",
        "function": function,
        **call.extra,
    }


def _chat_events(reply: Reply, asked: Asked) -> Iterator[str]:
    def chunk(delta: Json, finish: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return event(head | {"choices": None if reply.fault == "null_choices" else [choice]})

    head: Json = {
        "id": f"chatcmpl-{asked.model}-{asked.number}",
        "object": "chat.completion.chunk",
        "created": 0,
        "model": asked.model,
    }
    if reply.fault != "empty_stream":
        yield chunk({"role": "assistant", "content": "", **reply.extra})
        for piece in pieces(reply.text):
            yield chunk({"content": piece})
        for index, call in enumerate(reply.tool_calls):
            first = _chat_call(call, asked, index)
            arguments = first["function"].pop("arguments")
            first["function"]["arguments"] = ""
            yield chunk({"tool_calls": [{"index": index, **first}]})
            for piece in pieces(arguments, 2):
                part = {"index": index, "function": {"arguments": piece}}
                yield chunk({"tool_calls": [part]})
        yield chunk({}, reply.finish)
        if asked.wants_usage and (usage := counted(reply, asked)) is not None:
            yield event(head | {"choices": [], "usage": usage})
    yield event("[DONE]")


def _response(reply: Reply, asked: Asked) -> Json:
    is_cut = reply.finish == "length"
    found: Json = {
        "id": f"resp_{asked.model}_{asked.number}",
        "object": "response",
        "created_at": 0,
        "model": asked.model,
        "status": "incomplete" if is_cut else "completed",
        "incomplete_details": {"reason": "max_output_tokens"} if is_cut else None,
        "error": None,
        "output": None if reply.fault == "null_choices" else _items(reply, asked),
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": True,
    }
    if (usage := counted(reply, asked)) is not None:
        found["usage"] = _response_usage(usage)
    return found


def _response_usage(usage: Mapping[str, JsonValue]) -> Json:
    read, written = usage.get("prompt_tokens", 0), usage.get("completion_tokens", 0)
    return {
        "input_tokens": read,
        "output_tokens": written,
        "total_tokens": read + written,
        "input_tokens_details": usage.get("prompt_tokens_details") or {"cached_tokens": 0},
        "output_tokens_details": usage.get("completion_tokens_details") or {"reasoning_tokens": 0},
    }


def _items(reply: Reply, asked: Asked) -> list[Json]:
    """The output items: reasoning of `extra`, then the message, then the calls."""
    name = f"{asked.model}_{asked.number}"
    items: list[Json] = []
    reasoning: JsonValue = reply.extra.get("reasoning")
    if reasoning is not None:
        items.append({"type": "reasoning", "id": f"rs_{name}", "summary": [], **reasoning})
    if reply.text or not reply.tool_calls:
        text: Json = {"type": "output_text", "text": reply.text, "annotations": []}
        message: Json = {"type": "message", "id": f"msg_{name}", "role": "assistant"}
        items.append(message | {"status": "completed", "content": [text]})
    for index, call in enumerate(reply.tool_calls):
        item: Json = {"type": "function_call", "id": f"fc_{name}_{index}", "status": "completed"}
        item |= {"call_id": call_id(call, asked, index), "name": call.name}
        items.append(item | {"arguments": call.arguments_text, **call.extra})
    return items


def _response_events(reply: Reply, asked: Asked) -> Iterator[str]:
    number = -1

    def named(kind: str, **data: JsonValue) -> str:
        nonlocal number
        number += 1
        return event({"type": kind, "sequence_number": number, **data}, kind)

    done = _response(reply, asked)
    begun = {key: value for key, value in done.items() if key != "usage"}
    if reply.fault == "empty_stream":
        yield event("[DONE]")
        return
    yield named("response.created", response=begun | {"status": "in_progress", "output": []})
    for index, item in enumerate(_items(reply, asked)):
        at: Json = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "message":
                empty: Json = {**item, "status": "in_progress", "content": []}
                yield named("response.output_item.added", output_index=index, item=empty)
                for piece in pieces(reply.text):
                    yield named("response.output_text.delta", content_index=0, delta=piece, **at)
                yield named("response.output_text.done", content_index=0, text=reply.text, **at)
            case "function_call":
                empty = {**item, "status": "in_progress", "arguments": ""}
                yield named("response.output_item.added", output_index=index, item=empty)
                for piece in pieces(item["arguments"], 2):
                    yield named("response.function_call_arguments.delta", delta=piece, **at)
            case _:
                yield named("response.output_item.added", output_index=index, item=item)
        yield named("response.output_item.done", output_index=index, item=item)
    kind = "response.incomplete" if reply.finish == "length" else "response.completed"
    yield named(kind, response=done)
