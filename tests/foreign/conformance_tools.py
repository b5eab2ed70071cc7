"""The tools that the conformance suite calls, as functions of a user's."""

from __future__ import annotations

import asyncio
import base64

from devall.core.messages import MediaPart
from devall.tools.context import ToolContext

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\0\0\0"


def test_simple_text() -> str:
    """Says a text."""
    return "This is a simple text response for testing."


def test_image_content(ctx: ToolContext) -> MediaPart:
    """Shows a picture."""
    return ctx.attach(PNG, "image/png")


def test_audio_content(ctx: ToolContext) -> MediaPart:
    """Plays a sound."""
    return ctx.attach(WAV, "audio/wav")


def test_embedded_resource(ctx: ToolContext) -> MediaPart:
    """Gives a file."""
    return ctx.attach(b"This is an embedded resource content.", "text/plain", "embedded.txt")


def test_multiple_content_types(ctx: ToolContext) -> list[str | MediaPart]:
    """Gives a text, a picture and a file."""
    return [
        "Multiple content types test:",
        ctx.attach(PNG, "image/png"),
        ctx.attach(b'{"test": "data", "value": 123}', "application/json", "mixed.json"),
    ]


def test_error_handling() -> None:
    """Fails."""
    raise ValueError("This tool intentionally returns an error for testing")


async def test_tool_with_progress(ctx: ToolContext) -> str:
    """Says how far it is."""
    for done in (0, 50, 100):
        ctx.report(done, 100)
        await asyncio.sleep(0.05)
    return "done"


def json_schema_2020_12_tool(**arguments: object) -> str:
    """Has a schema that is written in the workflow."""
    return str(sorted(arguments))
