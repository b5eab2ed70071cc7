"""Messages as the Responses API has them on the wire, and its answers as messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from devall.core.errors import ModelRefused
from devall.core.messages import JsonValue, MediaPart, Message, ToolCall
from devall.core.usage import TokenUsage
from devall.models import convert
from devall.models.base import AttachmentReader, ChatReply, ChatRequest, ToolSchema
from devall.models.convert import RESPONSES_OUTPUT, JsonObject
from devall.models.shapes import as_list, as_object, as_text

_REBUILT: Final = frozenset({"message", "function_call"})
"""Items that a message holds by itself; others (reasoning) must go back as they came."""
_LAST_EVENTS: Final = frozenset({"response.completed", "response.incomplete", "response.failed"})
_REASONS: Final = {"max_output_tokens": "length", "content_filter": "content_filter"}


def body_of(request: ChatRequest, model: str) -> JsonObject:
    """The body of a Responses request.

    Params in the words of Chat Completions (`max_tokens`, `response_format`, `tool_choice`,
    `reasoning_effort`) are said in this API's words; others are taken as they are given.

    Raises:
        ModelRefused: an attachment cannot be read.
    """
    body: JsonObject = {"model": model, "input": _input(request)}
    if request.tools:
        body["tools"] = [_wire_tool(tool) for tool in request.tools]
    return body | _params(request.params)


def _params(given: Mapping[str, JsonValue]) -> JsonObject:
    sent: JsonObject = {}
    for name, value in given.items():
        match name:
            case _ if value is None:
                continue
            case "max_tokens" | "max_completion_tokens":
                sent["max_output_tokens"] = value
            case "reasoning_effort":
                sent["reasoning"] = as_object(sent.get("reasoning")) | {"effort": value}
            case "response_format":
                wanted = as_object(value)
                inner = as_object(wanted.pop("json_schema", None))
                sent["text"] = as_object(sent.get("text")) | {"format": wanted | inner}
            case "tool_choice" if "function" in as_object(value):
                name_of = as_object(as_object(value)["function"]).get("name")
                sent["tool_choice"] = {"type": "function", "name": name_of}
            case _:
                sent[name] = value
    return sent


def _wire_tool(tool: ToolSchema) -> JsonObject:
    # This API's default is strict, which would make every optional argument a required one.
    found: JsonObject = {"type": "function", "name": tool.name, "strict": False}
    return found | {"description": tool.description, "parameters": dict(tool.parameters)}


def _input(request: ChatRequest) -> list[JsonObject]:
    items: list[JsonObject] = []
    behind: list[JsonObject] = []
    for message in request.messages:
        if message.role != "tool" and behind:
            items.append({"role": "user", "content": behind})
            behind = []
        items += _wire_message(message, request.attachments)
        if message.role == "tool":
            media = convert.tool_media(message, request.attachments, _wire_media)
            behind += [p | {"type": "input_text"} if p["type"] == "text" else p for p in media]
    if behind:
        items.append({"role": "user", "content": behind})
    return items


def _wire_message(message: Message, attachments: AttachmentReader | None) -> list[JsonObject]:
    match message.role:
        case "tool":
            output = convert.tool_text(message)
            call_id = message.tool_call_id
            return [{"type": "function_call_output", "call_id": call_id, "output": output}]
        case "assistant":
            return _assistant_items(message)
        case role:
            has_media = any(isinstance(part, MediaPart) for part in message.parts)
            if not has_media:
                return [{"role": role, "content": message.text}]
            parts = convert.content_parts(message, attachments, _wire_media, "input_text")
            return [{"role": role, "content": parts}]


def _assistant_items(message: Message) -> list[JsonObject]:
    """The items that the API gave, where the message still says the same; else new ones."""
    given = [as_object(item) for item in as_list(message.extra.get(RESPONSES_OUTPUT))]
    if given and _text_and_calls(given) == (message.text, message.tool_calls):
        return given
    items: list[JsonObject] = []
    if message.text or not message.tool_calls:
        items.append({"role": "assistant", "content": message.text})
    for call in message.tool_calls:
        item: JsonObject = {"type": "function_call", "call_id": call.id, "name": call.name}
        items.append(item | {"arguments": convert.sent_arguments(call)})
    return items


def _wire_media(part: MediaPart, attachments: AttachmentReader | None) -> JsonObject:
    match part.type:
        case "image":
            return {"type": "input_image", "image_url": convert.data_url(part, attachments)}
        case "file" if part.url:
            return {"type": "input_file", "file_url": part.url}
        case "file":
            name = part.name or part.attachment
            data = convert.data_url(part, attachments)
            return {"type": "input_file", "filename": name, "file_data": data}
        case _ if part.url:
            return {"type": "input_text", "text": f"{part.name or part.type}: {part.url}"}
        case "audio":
            return convert.wire_audio(part, attachments)
        case "video":
            raise ModelRefused(
                f"the Responses API takes no video ({part.name or part.attachment})",
                hint="use `protocol: chat` with a model that takes videos",
            )


def _text_and_calls(items: list[JsonObject]) -> tuple[str, tuple[ToolCall, ...]]:
    """What output items say."""
    text = ""
    calls: list[ToolCall] = []
    for item in items:
        match item.get("type"):
            case "message":
                for part in map(as_object, as_list(item.get("content"))):
                    text += as_text(part.get("text")) or as_text(part.get("refusal"))
            case "function_call":
                call_id = as_text(item.get("call_id")) or convert.new_call_id()
                name, arguments = as_text(item.get("name")), as_text(item.get("arguments"))
                calls.append(ToolCall(call_id, name, arguments))
            case _:
                pass
    return text, tuple(calls)


@dataclass(slots=True)
class ResponsesAnswer:
    """An answer of the Responses API while it comes in, whole or as events."""

    response: JsonObject = field(default_factory=dict[str, JsonValue])
    """The last state of the whole answer; empty until it is known."""
    items: list[JsonObject] = field(default_factory=list[JsonObject])
    failure: JsonObject = field(default_factory=dict[str, JsonValue])
    """The error object that ended the answer; empty where none did."""

    def feed(self, data: JsonObject) -> str:
        """Take an event, or a whole answer; the text that it adds."""
        kind: JsonValue = data.get("type")
        if kind is None and "output" in data:
            return self._end(data, is_whole=True)
        match kind:
            case "response.output_text.delta" | "response.refusal.delta":
                return as_text(data.get("delta"))
            case "response.output_item.done":
                self.items.append(as_object(data.get("item")))
            case "error":
                self.failure = data
            case _ if kind in _LAST_EVENTS:
                self._end(as_object(data.get("response")), is_whole=False)
            case _:
                pass
        return ""

    def _end(self, response: JsonObject, *, is_whole: bool) -> str:
        self.response = response
        self.failure = self.failure or as_object(response.get("error"))
        # Some endpoints leave the output out of the last event.
        self.items = [as_object(i) for i in as_list(response.get("output"))] or self.items
        return _text_and_calls(self.items)[0] if is_whole else ""

    @property
    def has_output(self) -> bool:
        """Whether there is anything that can be an answer."""
        return bool(self.items)

    @property
    def usage(self) -> TokenUsage | None:
        """Token counts, where they have come in."""
        return convert.usage_of(as_object(self.response.get("usage")))

    def reply(self) -> ChatReply:
        """The whole answer."""
        text, calls = _text_and_calls(self.items)
        is_plain = all(item.get("type") in _REBUILT for item in self.items)
        extra: JsonObject = {} if is_plain else {RESPONSES_OUTPUT: self.items}
        details = as_object(self.response.get("incomplete_details"))
        reason = as_text(details.get("reason"))
        finish = _REASONS.get(reason, reason) or ("tool_calls" if calls else "stop")
        message = Message("assistant", text, tool_calls=calls, extra=extra)
        return ChatReply(message, finish, self.usage, as_text(self.response.get("model")))
