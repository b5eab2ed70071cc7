"""What a tool returns, as message parts."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from pydantic_core import PydanticSerializationError, to_json

from devall.core.errors import ToolFailed
from devall.core.messages import DataPart, MediaPart, Part, TextPart
from devall.tools.base import ToolResult
from devall.workspace import Workspace

NOTHING_RETURNED = "(the tool returned nothing)"

_MAGIC: Mapping[bytes, str] = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF8": "image/gif",
    b"BM": "image/bmp",
    b"%PDF-": "application/pdf",
    b"PK\x03\x04": "application/zip",
    b"ID3": "audio/mpeg",
    b"\xff\xfb": "audio/mpeg",
    b"OggS": "audio/ogg",
    b"fLaC": "audio/flac",
}


def to_result(value: object, workspace: Workspace | None) -> ToolResult:
    """Any value that a function may return, as a result.

    Text stays as it is; bytes and images are kept as attachments; everything else becomes
    JSON: plain values, dataclasses, pydantic models, dates, enums.

    Raises:
        ToolFailed: the value has no JSON form (it holds itself).
    """
    if isinstance(value, ToolResult):
        return value
    return ToolResult(tuple(_parts(value, workspace)))


def to_json_text(value: object) -> str:
    """The value as JSON text, other alphabets as they are.

    Raises:
        ToolFailed: the value has no JSON form (it holds itself).
    """
    try:
        return to_json(
            value, fallback=str, inf_nan_mode="strings", bytes_mode="base64", by_alias=True
        ).decode()
    except (ValueError, RecursionError, PydanticSerializationError) as error:
        raise ToolFailed(f"the result has no JSON form: {error}") from error


def media_parts(
    data: bytes, mime_type: str, workspace: Workspace | None, name: str = ""
) -> list[Part]:
    """Binary data as an attachment, led by a line that names it for those who see text only."""
    kind = mime_type or sniff(data)
    if workspace is None:
        return [TextPart(f"[{kind}, {len(data)} bytes, not kept: there is no workspace]")]
    part = workspace.save_attachment(data, kind, name)
    return [_label(part, len(data)), part]


def sniff(data: bytes) -> str:
    """The MIME type that the first bytes speak of."""
    if data[:4] == b"RIFF" and data[8:12] in {b"WEBP", b"WAVE"}:
        return "image/webp" if data[8:12] == b"WEBP" else "audio/wav"
    if data[4:8] == b"ftyp":
        return "video/mp4"
    for head, kind in _MAGIC.items():
        if data.startswith(head):
            return kind
    return "application/octet-stream"


def _label(part: MediaPart, size: int | None = None) -> TextPart:
    length = "" if size is None else f", {size} bytes"
    where = part.url or f"attachment {part.attachment}"
    named = f" {part.name}" if part.name else ""
    return TextPart(f"[{part.type}{named}: {part.mime_type}{length}, {where}]")


def _parts(value: object, workspace: Workspace | None) -> Iterator[Part]:
    match value:
        case None:
            yield TextPart(NOTHING_RETURNED)
        case str():
            yield TextPart(value)
        case TextPart() | DataPart():
            yield value
        case MediaPart():
            yield _label(value)
            yield value
        case bytes() | bytearray() | memoryview():
            yield from media_parts(bytes(cast("bytes", value)), "", workspace)
        case list() | tuple() if any(_is_part(each) for each in cast("Sequence[object]", value)):
            for each in cast("Sequence[object]", value):
                yield from _parts(each, workspace)
        case _ if _is_picture(value):
            yield from media_parts(_as_png(value), "image/png", workspace)
        case _:
            yield TextPart(to_json_text(value))


def _is_part(value: object) -> bool:
    known = TextPart | DataPart | MediaPart | bytes | bytearray | memoryview
    return isinstance(value, known) or _is_picture(value)


def _is_picture(value: object) -> bool:
    """Whether it is an image of Pillow, which devall does not need and so does not import."""
    return any(c.__module__ == "PIL.Image" and c.__name__ == "Image" for c in type(value).__mro__)


def _as_png(picture: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, format="PNG")
    return buffer.getvalue()
