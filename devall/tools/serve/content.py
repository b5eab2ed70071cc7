"""Results as the protocol has them."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Sequence

import mcp_types

from devall.core.messages import DataPart, MediaPart, Part, TextPart
from devall.tools.base import ToolResult


def to_blocks(result: ToolResult, read: Callable[[str], bytes]) -> list[mcp_types.ContentBlock]:
    """The parts of a result as blocks of content, at least one.

    Args:
        result: What a tool gave.
        read: Reads the attachments that it names.
    """
    return list(_blocks(result.parts, read)) or [_text("")]


def _blocks(
    parts: Sequence[Part], read: Callable[[str], bytes]
) -> Iterator[mcp_types.ContentBlock]:
    for part, after in zip(parts, (*parts[1:], None), strict=False):
        match part:
            case TextPart():
                if not _is_label(part.text, after):
                    yield _text(part.text)
            case DataPart():
                yield _text(json.dumps(part.data, ensure_ascii=False))
            case MediaPart():
                yield _media(part, read)


def _is_label(text: str, after: Part | None) -> bool:
    """Whether the text only names the attachment behind it, for those who see text alone."""
    if not isinstance(after, MediaPart) or not after.attachment:
        return False
    return text.startswith("[") and after.attachment in text and "\n" not in text


def _media(part: MediaPart, read: Callable[[str], bytes]) -> mcp_types.ContentBlock:
    if not part.attachment:
        return mcp_types.ResourceLink(
            type="resource_link",
            name=part.name or part.url.rpartition("/")[2] or part.type,
            uri=part.url,
            mime_type=part.mime_type,
        )
    try:
        data = read(part.attachment)
    except OSError as error:
        return _text(f"[attachment {part.attachment} cannot be read: {error.strerror or error}]")
    encoded = base64.b64encode(data).decode()
    match part.type:
        case "image":
            return mcp_types.ImageContent(type="image", data=encoded, mime_type=part.mime_type)
        case "audio":
            return mcp_types.AudioContent(type="audio", data=encoded, mime_type=part.mime_type)
        case _:
            return mcp_types.EmbeddedResource(
                type="resource",
                resource=mcp_types.BlobResourceContents(
                    uri=f"attachment://{part.attachment}", mime_type=part.mime_type, blob=encoded
                ),
            )


def _text(text: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=text)
