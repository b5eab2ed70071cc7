"""What docs/tools.md shows is what happens."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import devall
from devall.testing.chat_server import ChatServer

BLOCK = re.compile(r"```(?:yaml|python)\n# (\S+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def shown(project: Path, workspace: Path) -> Path:
    """The files of the page, written down; the server that is started is not installed here."""
    text = (project / "docs/tools.md").read_text(encoding="utf-8")
    for name, content in BLOCK.findall(text):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(content.replace("uvx", "no-such-uvx"), encoding="utf-8")
    return workspace / "flow.yaml"


async def test_the_agent_of_the_page_calls_its_tools(
    shown: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = [
        {"name": "bells_ring", "arguments": {"times": times}, "id": f"c{times}"}
        for times in (2, 4, 1, 1, 1, 1)
    ]
    count = {"name": "bells_count", "arguments": {}}
    script = {"gpt-4o-mini": [{"tool_calls": [*calls, count]}, "done"]}
    async with ChatServer(script, strict=True) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await devall.run(shown, task="go")
    assert (result.status, result.answer) == ("completed", "done")
    assert any("left out" in warning for warning in result.warnings)
    first, second = server.calls["gpt-4o-mini"]
    assert [t["function"]["name"] for t in first["tools"]] == ["bells_ring", "bells_count"]
    told = [m["content"] for m in second["messages"] if m["role"] == "tool"]
    assert json.loads(told[0]) == {"ok": True, "rung": 2}
    assert told[1].startswith("Error: ")
    assert "may be called 5 times" in told[5]
    assert told[6] == "1"


def test_the_commands_of_the_page_work(shown: Path, workspace: Path) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, "-m", "devall", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    listed = json.loads(run("tools", "list", "flow.yaml", "--json"))
    assert "bells_ring" in json.dumps(listed)
    called = run(
        "tools", "call", "flow.yaml", "--node", "A", "bells_ring", "--args", '{"times": 2}'
    )
    assert '"rung":2' in called.replace(" ", "")


def test_every_variable_of_the_page_is_one(project: Path) -> None:
    page = (project / "docs/tools.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:DEVALL|LIB|SERPER|JINA|WEB|DDGS|EX)_[A-Z_]+)`", page))
    assert len(named) >= 12
    source = "".join(
        path.read_text(encoding="utf-8")
        for folder in ("devall", "functions")
        for path in (project / folder).rglob("*.py")
    )
    assert not [name for name in named if name not in source]
