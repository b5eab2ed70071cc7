from __future__ import annotations

import base64
from typing import Any

import mcp_types

from devall.core.messages import MediaPart
from devall.tools.mcp.content import to_result
from devall.tools.results import NOTHING_RETURNED

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 50
DATA = base64.b64encode(PNG).decode()


def result(*content: Any, **more: Any) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=list(content), **more)


def text(words: str) -> mcp_types.TextContent:
    return mcp_types.TextContent(type="text", text=words)


def test_text_and_failure_pass_as_they_are():
    found = to_result(result(text("a"), text("b"), is_error=True), None)
    assert (found.text, found.is_error) == ("a\nb", True)


def test_structured_content_stands_in_where_there_is_no_text():
    assert to_result(result(structured_content={"a": 1}), None).text == '{"a":1}'
    assert to_result(result(text("x"), structured_content={"a": 1}), None).text == "x"


def test_nothing_is_said_in_words():
    assert to_result(result(), None).text == NOTHING_RETURNED
    assert to_result(result(is_error=True), None).text == "(no reason given)"


def test_data_becomes_attachments_and_base64_never_enters_text(workspace: Any):
    image = mcp_types.ImageContent(type="image", data=DATA, mime_type="image/png")
    sound = mcp_types.AudioContent(type="audio", data=DATA, mime_type="audio/wav")
    blob = mcp_types.BlobResourceContents(uri="file:///a/b.bin", blob=DATA)
    found = to_result(
        result(
            image,
            sound,
            mcp_types.EmbeddedResource(type="resource", resource=blob),
            structured_content={"copy": DATA},
        ),
        workspace,
    )
    media = [part for part in found.parts if isinstance(part, MediaPart)]
    assert [m.type for m in media] == ["image", "audio", "image"]
    assert media[2].name == "b.bin"
    assert all(workspace.read_attachment(m.attachment) == PNG for m in media)
    assert DATA not in found.text
    assert media[0].attachment in found.text


def test_broken_base64_is_said_and_nothing_is_lost(workspace: Any):
    image = mcp_types.ImageContent(type="image", data="%%%", mime_type="image/png")
    found = to_result(result(text("see"), image), workspace)
    assert found.text == "see\n[image/png whose base64 is broken]"


def test_resources_become_text_or_a_link():
    inner = mcp_types.TextResourceContents(uri="file:///n.txt", text="note")
    link = mcp_types.ResourceLink(
        type="resource_link", name="report", uri="https://x.test/r.pdf", mime_type="application/pdf"
    )
    found = to_result(
        result(mcp_types.EmbeddedResource(type="resource", resource=inner), link), None
    )
    assert found.text == "note\n[resource report: https://x.test/r.pdf (application/pdf)]"
