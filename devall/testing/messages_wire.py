"""A scripted reply as bytes of Anthropic's Messages API.

`extra` of a reply may hold `thinking`, a list of blocks that come before the text. Usage is
written in Chat Completions' own words as ever, and told as this API tells it: cached tokens
beside the input, not within; keys in this API's words stand as they are.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from devall.core.messages import JsonValue
from devall.models.shapes import as_count, as_list, as_object
from devall.testing import chat_wire
from devall.testing.chat_wire import Asked, Json, event
from devall.testing.script import Reply

_REASONS = {"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens"}
_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}


def error_body(reply: Reply) -> Json:
    """The error object that goes with a status of 400 and more, or stands in a stream."""
    text = reply.text or as_object(chat_wire.error_body(reply)["error"])["message"]
    kind = reply.error if reply.error.endswith("_error") else _TYPES.get(reply.status, "api_error")
    error: Json = {"type": kind, "message": text}
    return {"type": "error", "error": error, "request_id": "req_scripted"}


def whole(reply: Reply, asked: Asked) -> Json:
    """The reply as one JSON object."""
    return {
        "id": f"msg_{asked.model}_{asked.number}",
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": None if reply.fault == "null_choices" else _blocks(reply, asked),
        "stop_reason": _REASONS.get(reply.finish, reply.finish),
        "stop_sequence": None,
        "usage": _usage(reply, asked),
    }


def events(reply: Reply, asked: Asked) -> Iterator[str]:
    """The reply as server-sent events, the closing one included."""
    done = whole(reply, asked)
    if reply.fault in {"empty_stream", "null_choices"}:
        yield event({"type": "ping"}, "ping")
        return
    usage = done["usage"] and done["usage"] | {"output_tokens": 1}
    start: Json = {**done, "content": [], "stop_reason": None, "usage": usage}
    yield event({"type": "message_start", "message": start}, "message_start")
    yield event({"type": "ping"}, "ping")
    for index, block in enumerate(_blocks(reply, asked)):
        yield from _block_events(block, index)
    delta = {"stop_reason": done["stop_reason"], "stop_sequence": None}
    end: Json = {"type": "message_delta", "delta": delta}
    if done["usage"]:
        end["usage"] = {"output_tokens": done["usage"]["output_tokens"]}
    yield event(end, "message_delta")
    yield event({"type": "message_stop"}, "message_stop")


def _block_events(block: Json, index: int) -> Iterator[str]:
    at: Json = {"index": index}
    begun: Json = dict(block)
    deltas: list[Json] = []
    match block["type"]:
        case "text":
            begun |= {"text": ""}
            pieces = chat_wire.pieces(block["text"])
            deltas = [{"type": "text_delta", "text": piece} for piece in pieces]
        case "tool_use":
            begun |= {"input": {}}
            written = block["input"]
            text = written if isinstance(written, str) else json.dumps(written)
            pieces = chat_wire.pieces(text, 2)
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
        case "thinking":
            begun |= {"thinking": "", "signature": ""}
            pieces = chat_wire.pieces(block["thinking"], 2)
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
        case _:
            pass
    start: Json = {"type": "content_block_start", "content_block": begun, **at}
    yield event(start, "content_block_start")
    for delta in deltas:
        yield event({"type": "content_block_delta", "delta": delta, **at}, "content_block_delta")
    yield event({"type": "content_block_stop", **at}, "content_block_stop")


def _blocks(reply: Reply, asked: Asked) -> list[Json]:
    found = [as_object(block) for block in as_list(reply.extra.get("thinking"))]
    if reply.text:
        found.append({"type": "text", "text": reply.text})
    for index, call in enumerate(reply.tool_calls):
        block: Json = {"type": "tool_use", "id": chat_wire.call_id(call, asked, index)}
        written: JsonValue = call.arguments
        given = written if isinstance(written, str) else dict(written)
        found.append(block | {"name": call.name, "input": given})
    return found


def _usage(reply: Reply, asked: Asked) -> Json | None:
    given = chat_wire.counted(reply, asked)
    if given is None:
        return None
    cached = as_count(as_object(given.get("prompt_tokens_details")).get("cached_tokens"))
    counts: Json = {
        "input_tokens": as_count(given.get("prompt_tokens")) - cached,
        "output_tokens": as_count(given.get("completion_tokens")),
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
    }
    return counts | {k: v for k, v in given.items() if "prompt" not in k and "completion" not in k}
