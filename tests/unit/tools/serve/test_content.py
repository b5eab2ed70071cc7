from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest

from devall.core.messages import DataPart, MediaPart, TextPart
from devall.tools.base import ToolResult
from devall.tools.results import to_result
from devall.tools.serve.content import to_blocks
from devall.workspace import Workspace

PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


def blocks_of(value: Any, workspace: Workspace) -> list[Any]:
    return to_blocks(to_result(value, workspace), workspace.read_attachment)


def test_text_and_data_are_text(workspace: Workspace):
    assert [b.text for b in blocks_of("a", workspace)] == ["a"]
    assert [b.text for b in blocks_of([DataPart({"ä": 1})], workspace)] == ['{"ä": 1}']
    assert [b.text for b in to_blocks(ToolResult(()), workspace.read_attachment)] == [""]


def test_an_image_is_an_image_and_the_line_that_names_it_is_left_out(workspace: Workspace):
    (block,) = blocks_of(PNG, workspace)
    assert (block.type, block.mime_type) == ("image", "image/png")
    assert base64.b64decode(block.data) == PNG


def test_audio_is_audio_and_other_data_a_resource(workspace: Workspace):
    (audio,) = blocks_of(b"ID3abc", workspace)
    assert (audio.type, audio.mime_type) == ("audio", "audio/mpeg")
    (pdf,) = blocks_of(b"%PDF-1.4", workspace)
    assert pdf.type == "resource"
    assert base64.b64decode(pdf.resource.blob) == b"%PDF-1.4"


def test_text_that_says_something_before_an_image_stays(workspace: Workspace):
    first, second = blocks_of(["[1] the first", TextPart("x"), PNG][1:], workspace)
    assert (first.text, second.type) == ("x", "image")


def test_a_url_is_a_link(workspace: Workspace):
    part = MediaPart("image", "image/png", url="https://example.org/a.png")
    (link,) = to_blocks(ToolResult((part,)), workspace.read_attachment)
    assert (link.type, str(link.uri), link.name) == (
        "resource_link",
        "https://example.org/a.png",
        "a.png",
    )


def test_an_attachment_that_is_gone_is_said(workspace: Workspace):
    part = MediaPart("image", "image/png", attachment="0" * 64 + ".png")
    (block,) = to_blocks(ToolResult((part,)), workspace.read_attachment)
    assert "cannot be read" in block.text
