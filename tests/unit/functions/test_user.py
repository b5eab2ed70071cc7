from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.config.tools import FunctionTool
from devall.core.errors import AnswerNeeded, ToolArguments
from devall.core.events import HumanAnswered, HumanAsked
from devall.core.ports import Question
from devall.engine.result import RunResult
from devall.loading.loader import load_mapping
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder
from devall.tools.functions import FunctionToolset


class Human:
    """Thinks for a while, then says the next of its answers."""

    def __init__(self, *answers: str, seconds: float = 0) -> None:
        self.answers = list(answers)
        self.seconds = seconds
        self.asked: list[Question] = []

    async def ask(self, question: Question) -> str:
        self.asked.append(question)
        await asyncio.sleep(self.seconds)
        return self.answers.pop(0)


async def tools_with(human: Human | None, timeout: float | None = None) -> FunctionToolset:
    catalog = FunctionCatalog(None, shipped_functions())
    tools = FunctionToolset((FunctionTool(name="call_user"),), catalog, None, timeout, human)
    await tools.open()
    return tools


class Scope:
    node = "A"
    path = "/A@1"

    def __init__(self) -> None:
        self.recorder = Recorder()
        self.emit = self.recorder

    def allow(self, kind: str, tokens: int = 0) -> None: ...

    async def step(self, kind: str, name: str, request: Any, call: Any, **_: Any) -> Any:
        return await call()


async def test_the_user_is_asked_and_the_answer_given_back():
    human = Human("blue")
    tools = await tools_with(human)
    scope = Scope()
    result = await tools.call("call_user", {"instruction": "Which colour?"}, scope, "c1")
    assert result.text == "blue"
    assert human.asked == [Question("A", "/A@1/ask:c1.1", "Which colour?")]
    assert [type(event) for event in scope.recorder.events] == [HumanAsked, HumanAnswered]


async def test_the_time_limit_of_the_source_stands_still_while_the_user_thinks():
    tools = await tools_with(Human("late", seconds=0.8), timeout=0.3)
    result = await tools.call("call_user", {"instruction": "?"}, Scope(), "c1")
    assert result.text == "late"


async def test_an_empty_answer_is_said_to_be_one():
    tools = await tools_with(Human(""))
    result = await tools.call("call_user", {"instruction": "?"}, Scope(), "c1")
    assert result.text == "(the user's answer is empty)"


async def test_where_nobody_can_be_asked_the_run_has_to_wait():
    tools = await tools_with(None)
    with pytest.raises(AnswerNeeded, match="/A@1"):
        await tools.call("call_user", {"instruction": "?"}, Scope(), "c1")
    with pytest.raises(ToolArguments, match="instruction"):
        await tools.call("call_user", {"instruction": ""}, Scope(), "c1")


async def run(
    replies: Sequence[Any], monkeypatch: pytest.MonkeyPatch, **options: Any
) -> tuple[RunResult, ChatServer]:
    """A run of one agent that may ask the user."""
    tooling = {"type": "function", "config": {"tools": [{"name": "call_user"}], "timeout": 5}}
    config: Mapping[str, Any] = {"provider": "openai", "name": "a", "tooling": [tooling]}
    node = {"id": "A", "type": "agent", "config": config}
    graph = {"start": "A", "nodes": [node], "edges": []}
    async with ChatServer({"a": replies}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        flow = load_mapping({"graph": graph}, folder=Path.cwd())
        return await devall.run(flow, task="go", journal="memory", **options), server


ASKS = {"tool_calls": [{"name": "call_user", "arguments": {"instruction": "Which colour?"}}]}


async def test_in_a_run_the_answer_for_the_agents_node_is_taken(
    workspace_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    result, server = await run(
        [ASKS, "It is blue."], monkeypatch, answers={"A": "blue"}, logs_dir=workspace_folder
    )
    assert (result.status, result.answer) == ("completed", "It is blue.")
    assert [m["content"] for m in server.requests[1].body["messages"] if m["role"] == "tool"] == [
        "blue"
    ]


async def test_a_run_without_an_answer_waits(
    workspace_folder: Path, monkeypatch: pytest.MonkeyPatch
):
    result, _ = await run([ASKS], monkeypatch, logs_dir=workspace_folder)
    assert (result.status, result.exit_code) == ("waiting", 75)
    assert "Which colour?" in str(result.waiting)


@pytest.fixture
def workspace_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path / "logs"
