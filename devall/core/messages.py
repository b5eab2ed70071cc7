"""What nodes say to each other and to models: immutable messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

Role = Literal["system", "user", "assistant", "tool"]

JsonValue = Any
"""Whatever `json` can write: None, bool, int, float, str, lists and dicts with text keys."""


class Nothing(Mapping[str, JsonValue]):
    """A mapping that holds nothing, for ever: hashable, so that it can be a field's default."""

    def __getitem__(self, key: str) -> JsonValue:
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        return iter(())

    def __len__(self) -> int:
        return 0

    def __hash__(self) -> int:
        return 0


NOTHING = Nothing()


@dataclass(frozen=True, slots=True)
class TextPart:
    """Text among other parts."""

    text: str
    type: Literal["text"] = "text"


@dataclass(frozen=True, slots=True)
class MediaPart:
    """An image, audio, video or other file; by URL, or by the run's attachment.

    Bytes never stand in a message: `attachment` is the name of the file in the run's
    `attachments` folder (its SHA-256 and suffix).
    """

    type: Literal["image", "audio", "video", "file"]
    mime_type: str
    url: str = ""
    attachment: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class DataPart:
    """Structured data, as JSON."""

    data: JsonValue
    type: Literal["data"] = "data"


Part = TextPart | MediaPart | DataPart


@dataclass(frozen=True, slots=True)
class ToolCall:
    """What a model asks for; `arguments` is the raw text it wrote, not yet parsed."""

    id: str
    name: str
    arguments: str
    extra: Mapping[str, JsonValue] = NOTHING
    """Fields of the provider that are unknown here and must be sent back as they came."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message: who speaks, what is said, which node it comes from, and its marks."""

    role: Role
    content: str | tuple[Part, ...] = ""
    source: str = ""
    """Id of the node it comes from; empty for the task."""
    keep: bool = False
    """Never dropped by a context window (set by an edge with `keep_message`)."""
    preserve_role: bool = False
    """Keeps its role along an edge (a literal's)."""
    tool_calls: tuple[ToolCall, ...] = ()
    """What an assistant message asks for."""
    tool_call_id: str = ""
    """The call that a tool message answers."""
    is_error: bool = False
    """A tool message that reports a failure."""
    extra: Mapping[str, JsonValue] = NOTHING
    """Fields of the provider that are unknown here and must be sent back as they came."""

    @property
    def text(self) -> str:
        """The text parts, joined by newline; data parts as JSON."""
        content = self.content
        if isinstance(content, str):
            return content
        return "\n".join(
            part.text if isinstance(part, TextPart) else json.dumps(part.data, ensure_ascii=False)
            for part in content
            if not isinstance(part, MediaPart)
        )

    @property
    def parts(self) -> tuple[Part, ...]:
        """The content as parts, whatever its form."""
        content = self.content
        if isinstance(content, str):
            return (TextPart(content),) if content else ()
        return content

    def with_text(self, text: str) -> Message:
        """The same message with other text; media parts stay, behind the text."""
        media = tuple(p for p in self.parts if isinstance(p, MediaPart))
        return replace(self, content=(TextPart(text), *media) if media else text)


def user(text: str, source: str = "") -> Message:
    """A user message of plain text."""
    return Message("user", text, source)


def assistant(text: str, source: str = "") -> Message:
    """An assistant message of plain text."""
    return Message("assistant", text, source)


def as_input(message: Message) -> Message:
    """The message as it arrives at another node: from a user, unless it keeps its role."""
    if message.role == "user" or message.preserve_role:
        return message
    return replace(message, role="user")


def to_json(message: Message) -> dict[str, JsonValue]:
    """The message as a JSON object; fields at their default are left out."""
    found: dict[str, JsonValue] = {"role": message.role}
    if isinstance(message.content, str):
        found["content"] = message.content
    else:
        found["content"] = [_part_to_json(part) for part in message.content]
    for name in ("source", "keep", "preserve_role", "tool_call_id", "is_error"):
        value = getattr(message, name)
        if value:
            found[name] = value
    if message.tool_calls:
        found["tool_calls"] = [
            {"id": c.id, "name": c.name, "arguments": c.arguments}
            | ({"extra": dict(c.extra)} if c.extra else {})
            for c in message.tool_calls
        ]
    if message.extra:
        found["extra"] = dict(message.extra)
    return found


def from_json(data: Mapping[str, JsonValue]) -> Message:
    """The message that `to_json` wrote.

    Raises:
        KeyError: a field that must be there is missing.
    """
    content = data["content"]
    calls = tuple(
        ToolCall(c["id"], c["name"], c["arguments"], c.get("extra", NOTHING))
        for c in data.get("tool_calls", ())
    )
    return Message(
        role=cast(Role, data["role"]),
        content=content if isinstance(content, str) else tuple(map(_part_from_json, content)),
        source=data.get("source", ""),
        keep=data.get("keep", False),
        preserve_role=data.get("preserve_role", False),
        tool_calls=calls,
        tool_call_id=data.get("tool_call_id", ""),
        is_error=data.get("is_error", False),
        extra=data.get("extra", NOTHING),
    )


def _part_to_json(part: Part) -> dict[str, JsonValue]:
    match part:
        case TextPart():
            return {"type": "text", "text": part.text}
        case DataPart():
            return {"type": "data", "data": part.data}
        case MediaPart():
            return {
                "type": part.type,
                "mime_type": part.mime_type,
                "url": part.url,
                "attachment": part.attachment,
                "name": part.name,
            }


def _part_from_json(data: Mapping[str, JsonValue]) -> Part:
    match data["type"]:
        case "text":
            return TextPart(data["text"])
        case "data":
            return DataPart(data["data"])
        case kind:
            return MediaPart(kind, data["mime_type"], data["url"], data["attachment"], data["name"])
