"""Files that go with a task: how they reach models, and what is kept of them."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.testing.chat_server import ChatServer

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
PDF = b"%PDF-1.7 \xff"
WAV = b"RIFF\x04\x00\x00\x00WAVEdata"
FLOW = """\
graph:
  start: A
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: m
        params: {protocol: PROTOCOL}
        retry: {enabled: false}
        tooling: {type: function, config: {tools: [{name: load_file}, {name: save_file}]}}
"""


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    contents = {
        "cat.png": PNG,
        "paper.pdf": PDF,
        "said.wav": WAV,
        "notes.md": b"# Notes",
        "data.bin": b"\0\1",
    }
    found = [tmp_path / name for name in contents]
    for place, data in zip(found, contents.values(), strict=True):
        place.write_bytes(data)
    return found


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


def flow(folder: Path, protocol: str = "chat") -> Path:
    place = folder / "w.yaml"
    place.write_text(FLOW.replace("PROTOCOL", protocol))
    return place


def encoded(data: bytes, kind: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


async def test_chat_completions_get_each_kind_in_its_own_form(
    use, tmp_path: Path, files: list[Path]
) -> None:
    async with ChatServer({"m": ["seen"]}) as server:
        use(server)
        result = await devall.run(flow(tmp_path), task="look", attachments=files)
        [content] = [m["content"] for m in server.calls["m"][0]["messages"]]
    assert result.answer == "seen"
    assert content[0] == {"type": "text", "text": "look"}
    assert content[2] == {"type": "image_url", "image_url": {"url": encoded(PNG, "image/png")}}
    pdf = {"filename": "paper.pdf", "file_data": encoded(PDF, "application/pdf")}
    assert content[4] == {"type": "file", "file": pdf}
    audio = {"data": base64.b64encode(WAV).decode(), "format": "wav"}
    assert content[6] == {"type": "input_audio", "input_audio": audio}
    assert content[8] == {"type": "text", "text": "# Notes"}
    assert "data.bin" in content[9]["text"]
    assert len(content) == 10


async def test_the_responses_api_gets_each_kind_in_its_own_form(
    use, tmp_path: Path, files: list[Path]
) -> None:
    async with ChatServer({"m": ["seen"]}) as server:
        use(server)
        await devall.run(flow(tmp_path, "responses"), task="look", attachments=files)
        [content] = [m["content"] for m in server.calls["m"][0]["input"]]
    kinds = [part["type"] for part in content]
    assert [kind for kind in kinds if kind != "input_text"] == [
        "input_image",
        "input_file",
        "input_audio",
    ]
    assert content[2]["image_url"] == encoded(PNG, "image/png")
    assert content[4]["file_data"] == encoded(PDF, "application/pdf")


async def test_the_manifest_names_what_the_user_gave_and_what_tools_made(
    use, tmp_path: Path, files: list[Path]
) -> None:
    call = {"name": "load_file", "arguments": {"path_or_id": "cat.png"}}
    async with ChatServer({"m": [{"tool_calls": [call]}, "seen"]}) as server:
        use(server)
        result = await devall.run(
            flow(tmp_path), task="x", attachments=files[:2], logs_dir=tmp_path / "logs"
        )
    assert result.logs_dir is not None
    folder = result.logs_dir / "attachments"
    listed: list[dict[str, Any]] = json.loads((folder / "manifest.json").read_text())
    assert [(e["name"], e["made_by"], e["node"], e["tool"]) for e in listed] == [
        ("cat.png", "user", "", ""),
        ("paper.pdf", "user", "", ""),
        ("cat.png", "tool", "A", "load_file"),
    ]
    assert all((folder / e["attachment"]).stat().st_size == e["size"] for e in listed)


@pytest.mark.parametrize("protocol", ["chat", "responses"])
async def test_load_file_puts_a_file_of_the_workspace_before_the_model(
    use, tmp_path: Path, files: list[Path], protocol: str
) -> None:
    calls = [
        {"name": "load_file", "arguments": {"path_or_id": name}}
        for name in ("cat.png", "paper.pdf", "notes.md", "data.bin")
    ]
    async with ChatServer({"m": [{"tool_calls": calls}, "seen"]}) as server:
        use(server)
        result = await devall.run(flow(tmp_path, protocol), task="x", attachments=files)
        asked = server.calls["m"][1]
    assert result.answer == "seen"
    sent = asked["messages" if protocol == "chat" else "input"]
    last = sent[-1]
    assert last["role"] == "user"
    written = json.dumps(last["content"])
    assert encoded(PNG, "image/png") in written
    assert encoded(PDF, "application/pdf") in written
    assert "# Notes" in json.dumps(sent[:-1])


async def test_a_run_that_is_resumed_has_its_attachments(
    use, tmp_path: Path, files: list[Path]
) -> None:
    text = FLOW.replace("PROTOCOL", "chat").replace(
        "  nodes:\n", "  edges: [{from: H, to: A}]\n  nodes:\n    - {id: H, type: human}\n"
    )
    place = tmp_path / "w.yaml"
    place.write_text(text.replace("start: A", "start: [H, A]"))
    logs = tmp_path / "logs"
    async with ChatServer({"m": ["seen"]}) as server:
        use(server)
        waiting = await devall.run(place, task="x", attachments=files[:1], logs_dir=logs)
        assert waiting.status == "waiting"
        files[0].unlink()
        result = await devall.resume(waiting.run_id, logs_dir=logs, answers={"H": "go"})
        written = json.dumps(server.calls["m"][0])
    assert result.status == "completed"
    assert encoded(PNG, "image/png") in written
