"""What docs/edges.md and docs/agents.md show is what happens."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.events import NodeFinished
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

BLOCK = re.compile(r"```(?:yaml|markdown)\n# (\S+)\n(.*?)```", re.DOTALL)


def written(project: Path, page: str, folder: Path) -> Path:
    """The folder with the files of a page."""
    found = BLOCK.findall((project / "docs" / page).read_text(encoding="utf-8"))
    assert found
    for name, content in found:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content, encoding="utf-8")
    return folder


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


async def test_the_expression_of_the_page_decides(project: Path, workspace: Path) -> None:
    result = await devall.run(written(project, "edges.md", workspace) / "review.yaml")
    assert result.answer == "printed"
    assert not result.nodes["Again"].runs


async def test_the_units_of_the_page_are_the_cities(project: Path, workspace: Path) -> None:
    recorder = Recorder()
    file = written(project, "edges.md", workspace) / "cities.yaml"
    await devall.run(file, on_event=recorder)
    said = {event.node: [m.text for m in event.outputs] for event in recorder.of(NodeFinished)}
    assert said["All"] == ["Rome", "Oslo", "Lima"]


async def test_the_skill_of_the_page_is_used(use, project: Path, workspace: Path) -> None:
    def call(tool: str, **arguments: Any) -> dict[str, Any]:
        return {"tool_calls": [{"name": tool, "arguments": arguments}]}

    script = [
        call("activate_skill", name="release-notes"),
        call("save_file", path="a", content="b"),
        call("list_directory"),
        "done",
    ]
    async with ChatServer({"gpt-4o-mini": script}, strict=True) as server:
        use(server)
        file = written(project, "agents.md", workspace) / "notes.yaml"
        assert devall.load_workflow(file).warnings == ()
        result = await devall.run(file, task="x")
        told = [
            m["content"] for m in server.calls["gpt-4o-mini"][3]["messages"] if m["role"] == "tool"
        ]
    assert result.answer == "done"
    assert "in the past tense" in told[0]
    assert "not allowed while skill `release-notes` is active" in told[1]
    assert not told[2].startswith("Error")


async def test_the_answer_of_the_page_fits_after_a_repair(
    use, project: Path, workspace: Path
) -> None:
    script = ['{"score": 11, "remarks": ""}', '```json\n{"score": 9, "remarks": "good"}\n```']
    async with ChatServer({"gpt-4o-mini": script}, strict=True) as server:
        use(server)
        file = written(project, "agents.md", workspace) / "review.yaml"
        result = await devall.run(file, task="x")
    assert result.answer == '{"score": 9, "remarks": "good"}'
