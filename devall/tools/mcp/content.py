"""What a server returns, as a result for the model."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from urllib.parse import urlsplit

import mcp_types

from devall.core.messages import MediaPart, Part, TextPart
from devall.tools.base import ToolResult
from devall.tools.results import NOTHING_RETURNED, media_parts, to_json_text
from devall.workspace import Workspace


def to_result(
    raw: mcp_types.CallToolResult, workspace: Workspace | None, misfits: Sequence[str] = ()
) -> ToolResult:
    """The result as parts: text as it is, data as attachments, a failure marked as one.

    Structured content stands in where there is no text; base64 never enters text.

    Args:
        raw: What the server gave.
        workspace: Where data is kept.
        misfits: How the structured content differs from what the tool promised; said in a note.
    """
    parts = [part for block in raw.content for part in _parts(block, workspace)]
    has_text = any(
        isinstance(block, mcp_types.TextContent | mcp_types.ResourceLink)
        or (
            isinstance(block, mcp_types.EmbeddedResource)
            and isinstance(block.resource, mcp_types.TextResourceContents)
        )
        for block in raw.content
    )
    if not has_text and raw.structured_content is not None:
        text = to_json_text(raw.structured_content)
        # Some servers put a copy of an image into it.
        if not any(data in text for data in _encoded(raw)):
            parts.insert(0, TextPart(text))
    if not parts:
        parts.append(TextPart("(no reason given)" if raw.is_error else NOTHING_RETURNED))
    if misfits:
        note = "; ".join(misfits)
        parts.append(TextPart(f"[note: this is not as the tool's own outputSchema has it: {note}]"))
    return ToolResult(tuple(parts), is_error=bool(raw.is_error))


def _parts(block: mcp_types.ContentBlock, workspace: Workspace | None) -> Iterator[Part]:
    match block:
        case mcp_types.TextContent():
            yield TextPart(block.text)
        case mcp_types.ImageContent() | mcp_types.AudioContent():
            yield from _media(block.data, block.mime_type, workspace)
        case mcp_types.ResourceLink():
            yield from _link(block)
        case mcp_types.EmbeddedResource(resource=mcp_types.TextResourceContents() as resource):
            yield TextPart(resource.text)
        case mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents() as resource):
            name = PurePosixPath(urlsplit(str(resource.uri)).path).name
            yield from _media(resource.blob, resource.mime_type or "", workspace, name)
        case _:
            yield TextPart(to_json_text(block))


def _media(data: str, mime_type: str, workspace: Workspace | None, name: str = "") -> list[Part]:
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return [TextPart(f"[{mime_type or 'data'} whose base64 is broken]")]
    return media_parts(decoded, mime_type, workspace, name)


def _link(block: mcp_types.ResourceLink) -> Iterator[Part]:
    about = ", ".join(each for each in (block.mime_type, block.description) if each)
    yield TextPart(f"[resource {block.name}: {block.uri}{f' ({about})' if about else ''}]")
    kind = (block.mime_type or "").partition("/")[0]
    if kind == "image" and str(block.uri).startswith("https://"):
        yield MediaPart("image", block.mime_type or "", url=str(block.uri), name=block.name)


def _encoded(raw: mcp_types.CallToolResult) -> Iterator[str]:
    """The base64 of every block that holds data."""
    for block in raw.content:
        match block:
            case mcp_types.ImageContent() | mcp_types.AudioContent():
                yield block.data
            case mcp_types.EmbeddedResource(resource=mcp_types.BlobResourceContents() as resource):
                yield resource.blob
            case _:
                pass
