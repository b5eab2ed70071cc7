"""Messages as Anthropic's Messages API has them on the wire, and its answers as messages."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from devall.core.errors import BadModelResponse, ModelRefused
from devall.core.messages import JsonValue, MediaPart, Message, Part, ToolCall
from devall.core.usage import TokenUsage
from devall.models import convert
from devall.models.base import AttachmentReader, ChatReply, ChatRequest, ToolSchema
from devall.models.convert import MESSAGES_CONTENT, JsonObject
from devall.models.histories import EMPTY, HISTORIES, normalised
from devall.models.shapes import as_list, as_object, as_text

MOST_TOKENS = 8192
"""The API wants to know how long an answer may be; this where the file does not say."""

_REASONS: Final = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_CHOICES: Final = {"auto": "auto", "required": "any", "none": "none"}
_GROWING: Final = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
"""Kinds of pieces, and the field of the block that grows by them."""
_NO_ID = re.compile(r"[^a-zA-Z0-9_-]")
_DATA_URL = re.compile(r"data:([^;,]*);base64,(.*)", re.DOTALL)


def body_of(request: ChatRequest, model: str, most_tokens: int = MOST_TOKENS) -> JsonObject:
    """The body of a Messages request.

    Params in the words of Chat Completions (`max_completion_tokens`, `stop`, `tool_choice`,
    `parallel_tool_calls`, `response_format`, `reasoning_effort`, `user`) are said in this API's
    words; others are taken as they are given.

    Args:
        request: What is asked.
        model: Whom.
        most_tokens: The longest answer, where the file does not say.

    Raises:
        ModelRefused: an attachment cannot be read, or is of a kind that the API does not take.
    """
    messages = normalised(request.messages, HISTORIES["anthropic"])
    system = messages[0].text if messages and messages[0].role == "system" else ""
    body: JsonObject = {"model": model, "max_tokens": most_tokens}
    if system.strip():
        body["system"] = system
    body["messages"] = _turns([m for m in messages if m.role != "system"], request.attachments)
    if request.tools:
        body["tools"] = [_wire_tool(tool) for tool in request.tools]
    return body | _params(request.params, has_tools=bool(request.tools))


def _wire_tool(tool: ToolSchema) -> JsonObject:
    schema = dict(tool.parameters)
    return {"name": tool.name, "description": tool.description, "input_schema": schema}


def _params(given: Mapping[str, JsonValue], *, has_tools: bool) -> JsonObject:
    sent: JsonObject = {}
    choice: JsonObject = {}
    for name, value in given.items():
        match name:
            case _ if value is None:
                continue
            case "max_completion_tokens" | "max_output_tokens":
                sent["max_tokens"] = value
            case "stop":
                sent["stop_sequences"] = [value] if isinstance(value, str) else value
            case "tool_choice":
                choice |= _choice(value)
            case "parallel_tool_calls":
                if not value:
                    choice = {"type": "auto"} | choice | {"disable_parallel_tool_use": True}
            case "response_format":
                schema = as_object(as_object(value).get("json_schema")).get("schema")
                if schema is not None:
                    form = {"type": "json_schema", "schema": schema}
                    sent["output_config"] = as_object(sent.get("output_config")) | {"format": form}
            case "reasoning_effort":
                sent["output_config"] = as_object(sent.get("output_config")) | {"effort": value}
            case "user":
                sent["metadata"] = {"user_id": value}
            case _:
                sent[name] = value
    if choice and has_tools:
        if choice.get("type") == "none":
            choice.pop("disable_parallel_tool_use", None)
        sent["tool_choice"] = choice
    return sent


def _choice(value: JsonValue) -> JsonObject:
    if isinstance(value, str):
        return {"type": _CHOICES.get(value, value)}
    wanted = as_object(value)
    name = as_object(wanted.get("function")).get("name")
    return {"type": "tool", "name": name} if name else wanted


def _turns(messages: Sequence[Message], attachments: AttachmentReader | None) -> list[JsonObject]:
    """The messages: results of tools are a user's, and one role speaks once."""
    found: list[JsonObject] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        content = _content(message, attachments)
        if found and found[-1]["role"] == role:
            found[-1]["content"] = _blocks(found[-1]["content"]) + _blocks(content)
        else:
            found.append({"role": role, "content": content})
    return found


def _blocks(content: JsonValue) -> list[JsonValue]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else as_list(content)


def _content(message: Message, attachments: AttachmentReader | None) -> JsonValue:
    match message.role:
        case "tool":
            return [_result(message, attachments)]
        case "assistant":
            return _assistant_content(message)
        case _:
            if not any(isinstance(part, MediaPart) for part in message.parts):
                return message.text
            return _parts(message.parts, attachments)


def _result(message: Message, attachments: AttachmentReader | None) -> JsonObject:
    found: JsonObject = {"type": "tool_result", "tool_use_id": _call_id(message.tool_call_id)}
    if any(isinstance(part, MediaPart) for part in message.parts):
        found["content"] = _parts(message.parts, attachments)
    elif message.text.strip():
        found["content"] = message.text
    return found | ({"is_error": True} if message.is_error else {})


def _assistant_content(message: Message) -> JsonValue:
    """The blocks that the API gave, where the message still says the same; else new ones."""
    given = [as_object(block) for block in as_list(message.extra.get(MESSAGES_CONTENT))]
    if given and _text_and_calls(given) == (message.text, message.tool_calls):
        return given
    if not message.tool_calls:
        return message.text
    blocks: list[JsonValue] = []
    if message.text.strip():
        blocks.append({"type": "text", "text": message.text})
    for call in message.tool_calls:
        arguments = as_object(json.loads(convert.sent_arguments(call)))
        block = {"type": "tool_use", "id": _call_id(call.id), "name": call.name}
        blocks.append(block | {"input": arguments})
    return blocks


def _call_id(call_id: str) -> str:
    """The id in the few letters that the API takes; the API's own ids are as they were."""
    return _NO_ID.sub("_", call_id)


def _parts(parts: Sequence[Part], attachments: AttachmentReader | None) -> list[JsonValue]:
    found: list[JsonValue] = []
    for part in parts:
        if isinstance(part, MediaPart):
            found.append(_wire_media(part, attachments))
        elif (text := Message("user", (part,)).text).strip():
            found.append({"type": "text", "text": text})
    return found or [{"type": "text", "text": EMPTY}]


def _wire_media(part: MediaPart, attachments: AttachmentReader | None) -> JsonObject:
    name = part.name or part.attachment or part.url
    match part.type:
        case "image":
            return {"type": "image", "source": _source(part, attachments)}
        case "file" if part.mime_type == "application/pdf":
            return {"type": "document", "source": _source(part, attachments), "title": name[:200]}
        case _ if part.url and not part.url.startswith("data:"):
            return {"type": "text", "text": f"{name}: {part.url}"}
        case "file" if part.mime_type.startswith("text/") or part.mime_type == "application/json":
            text = convert.read_attachment(part, attachments).decode("utf-8", "replace")
            source = {"type": "text", "media_type": "text/plain", "data": text or EMPTY}
            return {"type": "document", "source": source, "title": name[:200]}
        case kind:
            raise ModelRefused(
                f"the Messages API takes no {kind} of type {part.mime_type} ({name})",
                hint="it takes images, PDF and text files",
            )


def _source(part: MediaPart, attachments: AttachmentReader | None) -> JsonObject:
    url = convert.data_url(part, attachments)
    if found := _DATA_URL.fullmatch(url):
        return {"type": "base64", "media_type": found[1] or part.mime_type, "data": found[2]}
    return {"type": "url", "url": url}


def _text_and_calls(blocks: Sequence[JsonObject]) -> tuple[str, tuple[ToolCall, ...]]:
    """What blocks say."""
    text = ""
    calls: list[ToolCall] = []
    for block in blocks:
        match block.get("type"):
            case "text":
                text += as_text(block.get("text"))
            case "tool_use":
                written: JsonValue = block.get("input")
                is_text = isinstance(written, str)
                arguments = written if is_text else json.dumps(written or {}, ensure_ascii=False)
                call_id = as_text(block.get("id")) or convert.new_call_id()
                calls.append(ToolCall(call_id, as_text(block.get("name")), arguments))
            case _:
                pass
    return text, tuple(calls)


@dataclass(slots=True)
class MessagesAnswer:
    """An answer of the Messages API while it comes in, whole or as events."""

    blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    reason: str = ""
    model: str = ""
    failure: JsonObject = field(default_factory=dict[str, JsonValue])
    """The error object that ended the answer; empty where none did."""
    has_begun: bool = False
    is_whole: bool = False
    _usage: JsonObject = field(default_factory=dict[str, JsonValue])
    _arguments: dict[int, str] = field(default_factory=dict[int, str])
    """What has come in of each call's arguments, by the index of its block."""

    def feed(self, data: JsonObject) -> str:
        """Take an event, or a whole answer; the text that it adds."""
        match data.get("type"):
            case "message":
                return self._take_whole(data)
            case "message_start":
                self._begin(as_object(data.get("message")))
            case "content_block_start":
                block = as_object(data.get("content_block"))
                self.blocks.append(block)
                return as_text(block.get("text"))
            case "content_block_delta":
                return self._take_piece(as_object(data.get("delta")))
            case "message_delta":
                self._end(as_object(data.get("delta")), as_object(data.get("usage")))
            case "message_stop":
                self.is_whole = True
            case "error":
                self.failure = data
            case _:
                pass
        return ""

    def _begin(self, message: JsonObject) -> None:
        self.has_begun = True
        self.model = as_text(message.get("model"))
        self._end({}, as_object(message.get("usage")))

    def _end(self, delta: JsonObject, usage: JsonObject) -> None:
        self.reason = as_text(delta.get("stop_reason")) or self.reason
        self._usage |= {name: count for name, count in usage.items() if count is not None}

    def _take_whole(self, data: JsonObject) -> str:
        self._begin(data)
        self._end(data, {})
        self.blocks = [as_object(block) for block in as_list(data.get("content"))]
        self.is_whole = isinstance(data.get("content"), list)
        return _text_and_calls(self.blocks)[0]

    def _take_piece(self, delta: JsonObject) -> str:
        if not self.blocks:
            return ""
        block = self.blocks[-1]
        kind = as_text(delta.get("type"))
        if kind == "input_json_delta":
            index = len(self.blocks) - 1
            piece = as_text(delta.get("partial_json"))
            self._arguments[index] = self._arguments.get(index, "") + piece
        elif (name := _GROWING.get(kind)) is not None:
            block[name] = as_text(block.get(name)) + as_text(delta.get(name))
            return as_text(delta.get("text"))
        elif kind == "citations_delta":
            block["citations"] = [*as_list(block.get("citations")), delta.get("citation")]
        return ""

    @property
    def usage(self) -> TokenUsage | None:
        """Token counts, where they have come in; what the cache held is within the input."""
        details = as_object(self._usage.get("output_tokens_details"))
        thought = {"reasoning_tokens": details.get("thinking_tokens")}
        counts = self._usage | {"output_tokens_details": thought}
        return convert.usage_of({"cache_read_input_tokens": 0} | counts)

    def reply(self) -> ChatReply:
        """The whole answer.

        Raises:
            BadModelResponse: a call has no name.
        """
        blocks = [self._with_arguments(index, block) for index, block in enumerate(self.blocks)]
        text, calls = _text_and_calls(blocks)
        if any(not call.name for call in calls):
            raise BadModelResponse("the model's answer holds a tool call without a name")
        is_plain = all(block.get("type") in {"text", "tool_use"} for block in blocks)
        kept = [block for block in blocks if block.get("type") != "text" or block.get("text")]
        extra: JsonObject = {} if is_plain else {MESSAGES_CONTENT: kept}
        reason = _REASONS.get(self.reason, self.reason) or ("tool_calls" if calls else "stop")
        message = Message("assistant", text, tool_calls=calls, extra=extra)
        return ChatReply(message, reason, self.usage, self.model)

    def _with_arguments(self, index: int, block: JsonObject) -> JsonObject:
        """The block with its arguments as JSON; as text where they were cut off."""
        written = self._arguments.get(index)
        if not written:
            return block
        try:
            return block | {"input": json.loads(written)}
        except ValueError:
            return block | {"input": written}
