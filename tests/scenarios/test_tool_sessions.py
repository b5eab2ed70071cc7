"""How often an MCP server is asked to begin, in a run of many agents."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.loading.loader import load_mapping
from devall.testing.scripted_model import ScriptedModels


@pytest.fixture(params=["http", "stdio"])
def config(request: pytest.FixtureRequest, project: Path) -> Iterator[dict[str, Any]]:
    """How a server that counts its requests is reached, or started."""
    command = [sys.executable, str(project / "bench/tool_server.py")]
    if request.param == "stdio":
        yield {"command": command[0], "args": command[1:], "startup_timeout": 30}
        return
    with subprocess.Popen(
        [*command, "--http"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        yield {"server": server.stdout.readline().strip(), "timeout": 20}
        server.terminate()


@pytest.mark.parametrize(
    ("protocol", "beginning"), [("auto", "server/discover"), ("legacy", "initialize")]
)
async def test_a_run_begins_one_conversation_with_a_server_and_lists_its_tools_once(
    config: dict[str, Any], protocol: str, beginning: str
):
    kind = "mcp_remote" if "server" in config else "mcp_local"
    source = {"type": kind, "config": config | {"protocol": protocol}}

    def agent(name: str) -> dict[str, Any]:
        given = {"provider": "openai", "name": name, "tooling": source}
        return {"id": name, "type": "agent", "config": given}

    def edge(one: str, other: str, **more: Any) -> dict[str, Any]:
        return {"from": one, "to": other, **more}

    inner = {"start": "x", "nodes": [agent("x")], "edges": []}
    graph = {
        "start": "first",
        "end": "last",
        "nodes": [
            {"id": "first", "type": "passthrough"},
            agent("a"),
            agent("b"),
            {"id": "s", "type": "subgraph", "config": {"type": "config", "config": inner}},
            agent("last"),
        ],
        "edges": [
            *(edge("first", name) for name in "abs"),
            *(edge(name, "last") for name in "abs"),
        ],
    }
    echo = {"tool_calls": [{"name": "echo", "arguments": {"text": "hi"}}]}
    script: dict[str, list[Any]] = {name: [echo, echo, "done"] for name in "abx"}
    script["last"] = [{"tool_calls": [{"name": "requests"}]}, "done"]
    loaded = load_mapping({"graph": graph})
    for _ in range(2):
        models = ScriptedModels(script)
        result = await devall.run(loaded, task="go", model_source=models)
        assert result.answer == "done", result.outcome
        asked = json.loads(models.requests["last"][-1].messages[-1].content)
        asked.pop("subscriptions/listen", None)
        assert asked == {beginning: 1, "tools/list": 1, "tools/call": 7}
