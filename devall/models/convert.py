"""Messages as Chat Completions has them on the wire, and its answers as messages."""

from __future__ import annotations

import base64
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from devall.core.errors import BadModelResponse, ModelRefused
from devall.core.messages import JsonValue, MediaPart, Message, ToolCall
from devall.core.usage import TokenUsage
from devall.models.base import AttachmentReader, ChatReply, ChatRequest, ToolSchema
from devall.models.shapes import as_count, as_list, as_object, as_text

JsonObject = dict[str, JsonValue]
MediaWriter = Callable[[MediaPart, AttachmentReader | None], JsonObject]
"""Writes a media part in the words of one API."""

RESPONSES_OUTPUT = "responses_output"
"""Key of `Message.extra` under which the Responses API's own items stand; theirs alone."""

MESSAGES_CONTENT = "messages_content"
"""Key of `Message.extra` under which the blocks of Anthropic's Messages API stand; theirs alone."""

_OWN_FIELDS = frozenset({"role", "content", "tool_calls", "refusal"})
_NOT_SENT_BACK = frozenset(
    {"annotations", "audio", "function_call", RESPONSES_OUTPUT, MESSAGES_CONTENT}
)
"""Fields that endpoints give and do not take."""
_OWN_CALL_FIELDS = frozenset({"id", "index", "type", "function"})
_AUDIO_FORMATS = {"audio/mpeg": "mp3", "audio/x-wav": "wav", "audio/wave": "wav"}


def body_of(request: ChatRequest, model: str) -> JsonObject:
    """The body of a Chat Completions request; params are taken as they are given.

    Raises:
        ModelRefused: an attachment cannot be read.
    """
    body: JsonObject = {"model": model, "messages": wire_messages(request)}
    if request.tools:
        body["tools"] = [wire_tool(tool) for tool in request.tools]
    return body | {name: value for name, value in request.params.items() if value is not None}


def wire_tool(tool: ToolSchema) -> JsonObject:
    """A tool as Chat Completions is offered it."""
    function: JsonObject = {"name": tool.name, "description": tool.description}
    return {"type": "function", "function": function | {"parameters": dict(tool.parameters)}}


def wire_messages(request: ChatRequest) -> list[JsonObject]:
    """The messages of a request.

    A tool's result may hold text alone, so its media follow in a user message behind the
    block of results.

    Raises:
        ModelRefused: an attachment cannot be read.
    """
    found: list[JsonObject] = []
    behind: list[JsonObject] = []
    for message in request.messages:
        if message.role != "tool" and behind:
            found.append({"role": "user", "content": behind})
            behind = []
        found.append(_wire_message(message, request.attachments))
        if message.role == "tool":
            behind += tool_media(message, request.attachments, _wire_media)
    if behind:
        found.append({"role": "user", "content": behind})
    return found


def tool_text(message: Message) -> str:
    """A tool's result as text; an error says that it is one."""
    text = message.text
    if message.is_error and not text.lstrip().lower().startswith("error"):
        return f"Error: {text}"
    return text


def tool_media(
    message: Message,
    attachments: AttachmentReader | None,
    wire: MediaWriter,
) -> list[JsonObject]:
    """The media of a tool's result as parts of a user message, with a line that says whose."""
    media = [wire(p, attachments) for p in message.parts if isinstance(p, MediaPart)]
    if not media:
        return []
    return [{"type": "text", "text": f"The media of tool result {message.tool_call_id}:"}, *media]


def data_url(part: MediaPart, attachments: AttachmentReader | None) -> str:
    """The bytes of an attachment as a `data:` URL, or the part's own URL.

    Raises:
        ModelRefused: the attachment cannot be read.
    """
    if part.url:
        return part.url
    return f"data:{part.mime_type};base64,{_encoded(part, attachments)}"


def _encoded(part: MediaPart, attachments: AttachmentReader | None) -> str:
    return base64.b64encode(read_attachment(part, attachments)).decode()


def read_attachment(part: MediaPart, attachments: AttachmentReader | None) -> bytes:
    """The bytes of an attachment.

    Raises:
        ModelRefused: it cannot be read.
    """
    if attachments is None:
        raise ModelRefused(f"the message names attachment {part.attachment}, but nothing reads it")
    try:
        return attachments(part.attachment)
    except (OSError, KeyError) as error:
        raise ModelRefused(f"cannot read attachment {part.attachment}: {error}") from error


def sent_arguments(call: ToolCall) -> str:
    """The arguments of an earlier call, as text that endpoints can parse.

    Many refuse a whole conversation for one earlier call whose arguments are no object; such
    arguments are sent wrapped, so that the model still sees what it wrote.
    """
    try:
        parsed: JsonValue = json.loads(call.arguments or "{}")
    except ValueError:
        parsed = None
    if isinstance(parsed, dict):
        return call.arguments or "{}"
    return json.dumps({"malformed_arguments": call.arguments}, ensure_ascii=False)


def _wire_message(message: Message, attachments: AttachmentReader | None) -> JsonObject:
    match message.role:
        case "tool":
            content: JsonValue = tool_text(message)
            return {"role": "tool", "tool_call_id": message.tool_call_id, "content": content}
        case "assistant":
            kept = {k: v for k, v in message.extra.items() if k not in _NOT_SENT_BACK}
            sent: JsonObject = {"role": "assistant", "content": message.text, **kept}
            if message.tool_calls:
                sent["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
            return sent
        case role:
            has_media = any(isinstance(part, MediaPart) for part in message.parts)
            if not has_media:
                return {"role": role, "content": message.text}
            return {"role": role, "content": content_parts(message, attachments, _wire_media)}


def content_parts(
    message: Message,
    attachments: AttachmentReader | None,
    wire: MediaWriter,
    text_type: str = "text",
) -> list[JsonObject]:
    """The parts of a message that holds media, in their order."""
    found: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, MediaPart):
            found.append(wire(part, attachments))
        elif text := Message("user", (part,)).text:
            found.append({"type": text_type, "text": text})
    return found


def _wire_call(call: ToolCall) -> JsonObject:
    function = {"name": call.name, "arguments": sent_arguments(call)}
    return {"id": call.id, "type": "function", "function": function, **call.extra}


def _wire_media(part: MediaPart, attachments: AttachmentReader | None) -> JsonObject:
    match part.type:
        case "image":
            return {"type": "image_url", "image_url": {"url": data_url(part, attachments)}}
        case "video":
            return {"type": "video_url", "video_url": {"url": data_url(part, attachments)}}
        case _ if part.url:
            return {"type": "text", "text": f"{part.name or part.type}: {part.url}"}
        case "audio":
            return wire_audio(part, attachments)
        case "file":
            name = part.name or part.attachment
            file = {"filename": name, "file_data": data_url(part, attachments)}
            return {"type": "file", "file": file}


def wire_audio(part: MediaPart, attachments: AttachmentReader | None) -> JsonObject:
    """An audio attachment, in the words that both APIs share.

    Raises:
        ModelRefused: the attachment cannot be read.
    """
    kind = _AUDIO_FORMATS.get(part.mime_type, part.mime_type.rpartition("/")[2])
    data = _encoded(part, attachments)
    return {"type": "input_audio", "input_audio": {"data": data, "format": kind}}


@dataclass(slots=True)
class _CallParts:
    """A tool call while its pieces come in."""

    index: int | None
    id: str = ""
    name: str = ""
    arguments: str = ""
    extra: JsonObject = field(default_factory=dict[str, JsonValue])


@dataclass(slots=True)
class ChatAnswer:
    """An answer of Chat Completions while it comes in, whole or in chunks."""

    text: str = ""
    refusal: str = ""
    finish_reason: str = ""
    usage: TokenUsage | None = None
    model: str = ""
    has_choice: bool = False
    calls: list[_CallParts] = field(default_factory=list["_CallParts"])
    extra: JsonObject = field(default_factory=dict[str, JsonValue])

    def feed(self, data: JsonObject) -> str:
        """Take a chunk, or a whole answer; the text that it adds."""
        self.model = as_text(data.get("model")) or self.model
        self.usage = usage_of(as_object(data.get("usage"))) or self.usage
        choices = as_list(data.get("choices"))
        first = as_object(choices[0]) if choices else {}
        if not first or first.get("index"):
            return ""
        self.has_choice = True
        self.finish_reason = as_text(first.get("finish_reason")) or self.finish_reason
        return self._take(as_object(first.get("delta") or first.get("message")))

    def _take(self, delta: JsonObject) -> str:
        added = _text_of(delta.get("content"))
        self.text += added
        self.refusal += as_text(delta.get("refusal"))
        for position, call in enumerate(as_list(delta.get("tool_calls"))):
            self._take_call(as_object(call), position)
        for name, value in delta.items():
            if name not in _OWN_FIELDS and name not in _NOT_SENT_BACK and value is not None:
                self.extra[name] = _joined(self.extra.get(name), value)
        return added

    def _take_call(self, data: JsonObject, position: int) -> None:
        """Add a piece to its call.

        Pieces belong together by `index`; some endpoints leave it out, and some give every
        call of a turn the index 0 with an id of its own.
        """
        index: JsonValue = data.get("index")
        name = as_text(as_object(data.get("function")).get("name"))
        call_id = as_text(data.get("id"))
        if index is None:
            same = [c for c in self.calls if c.id == call_id] if call_id else self.calls[-1:]
            if name and not call_id and same and (position or same[-1].arguments):
                same = []
        else:
            same = [c for c in self.calls if c.index == index]
            if call_id and same and same[-1].id not in {"", call_id}:
                same = [c for c in same if c.id == call_id]
        if not same:
            same = [_CallParts(index)]
            self.calls += same
        call = same[-1]
        call.id = call.id or call_id
        call.name = call.name or name
        arguments: JsonValue = as_object(data.get("function")).get("arguments")
        if arguments is not None:
            is_text = isinstance(arguments, str)
            call.arguments += arguments if is_text else json.dumps(arguments, ensure_ascii=False)
        call.extra |= {
            key: value
            for key, value in data.items()
            if key not in _OWN_CALL_FIELDS and value is not None
        }

    def reply(self) -> ChatReply:
        """The whole answer.

        Raises:
            BadModelResponse: a call has no name.
        """
        if any(not call.name for call in self.calls):
            raise BadModelResponse("the model's answer holds a tool call without a name")
        calls = tuple(
            ToolCall(call.id or new_call_id(), call.name, call.arguments, call.extra)
            for call in self.calls
        )
        reason = self.finish_reason or ("tool_calls" if calls else "stop")
        if self.refusal and not self.text:
            reason = "content_filter"
        if calls and reason in {"stop", "function_call"}:
            reason = "tool_calls"
        text = self.text or self.refusal
        message = Message("assistant", text, tool_calls=calls, extra=self.extra)
        return ChatReply(message, reason, self.usage, self.model)


def new_call_id() -> str:
    """An id for a call to which the endpoint gave none."""
    return f"call_{uuid.uuid4().hex[:16]}"


def usage_of(data: Mapping[str, JsonValue]) -> TokenUsage | None:
    """Token counts in the words of either API; None where nothing was said."""
    read: JsonValue = data.get("prompt_tokens", data.get("input_tokens"))
    written: JsonValue = data.get("completion_tokens", data.get("output_tokens"))
    if read is None and written is None:
        return None
    details = as_object(data.get("prompt_tokens_details") or data.get("input_tokens_details"))
    more = as_object(data.get("completion_tokens_details") or data.get("output_tokens_details"))
    cached = details.get("cached_tokens", data.get("prompt_cache_hit_tokens"))
    if cached is None and "prompt_tokens" not in data and "cache_read_input_tokens" in data:
        # Words of an API that counts what its cache held beside the input, not within.
        cached = data["cache_read_input_tokens"]
        made = as_count(data.get("cache_creation_input_tokens"))
        read = as_count(read) + as_count(cached) + made
    reasoning = as_count(more.get("reasoning_tokens"))
    output = as_count(written)
    if reasoning and as_count(data.get("total_tokens")) == as_count(read) + output + reasoning:
        output += reasoning
    return TokenUsage(as_count(read), output, as_count(cached), reasoning)


def _text_of(content: JsonValue) -> str:
    """The text of a content that is text, or a list of parts as some endpoints give it."""
    if isinstance(content, str):
        return content
    parts: Sequence[JsonObject] = [as_object(part) for part in as_list(content)]
    return "".join(as_text(p.get("text")) for p in parts if p.get("type") == "text")


def _joined(old: JsonValue, new: JsonValue) -> JsonValue:
    """An unknown field over several chunks: texts and lists grow, all else is replaced."""
    if isinstance(old, str) and isinstance(new, str):
        return old + new
    if isinstance(old, list) and isinstance(new, list):
        return [*as_list(old), *as_list(new)]
    return new
