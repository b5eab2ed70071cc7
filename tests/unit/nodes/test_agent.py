"""The agent node with real tools, memories and models."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from devall.config.nodes import AgentNode
from devall.core.errors import ModelRefused, SetupError
from devall.core.events import ToolCallFinished, ToolCallStarted
from devall.core.messages import assistant, user
from devall.core.ports import NodeResult
from devall.engine.context import NodeScope, Run
from devall.journal.memory import MemoryJournal
from devall.memory.blackboard import Blackboard
from devall.models.base import ModelChoice, ModelSource
from devall.models.providers import Models
from devall.nodes.agent import AgentExecutor, choice_of
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder
from devall.testing.scripted_model import ScriptedModels
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

WEATHER = {"type": "function", "config": {"tools": [{"name": "weather:All"}]}}


def unused(*_: object) -> Any:
    raise AssertionError("an agent starts no graph")


def scope_of(recorder: Recorder, path: str = "/A@1") -> NodeScope:
    run = Run(MemoryJournal(), unused, unused, (recorder,))
    return NodeScope(run, "A", path, ())


def node_of(**config: Any) -> AgentNode:
    given = {"provider": "openai", "name": "m"} | config
    return AgentNode.model_validate({"id": "A", "type": "agent", "config": given})


class Opened:
    """The toolset of a node that says when it is opened and closed."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.log: list[str] = []

    async def open(self) -> None:
        self.log.append("open")
        await asyncio.sleep(0)
        await self.inner.open()

    async def aclose(self) -> None:
        self.log.append("close")
        await self.inner.aclose()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Watched(ToolManager):
    """A node's tools that say when their sources are opened and closed."""

    def __init__(self, node: AgentNode, base: Path) -> None:
        functions = FunctionCatalog(None, shipped_functions())
        super().__init__(node.config.tooling, functions=functions, servers=McpServers(), base=base)
        self._tools = Opened(self._tools)

    @property
    def log(self) -> list[str]:
        return self._tools.log


def tools_of(node: AgentNode, base: Path) -> Watched:
    return Watched(node, base)


async def run_once(
    executor: AgentExecutor, recorder: Recorder | None = None, path: str = "/A@1"
) -> NodeResult:
    return await executor.run(scope_of(recorder or Recorder(), path), [user("go")])


async def test_functions_are_called_and_the_answer_comes_back(tmp_path: Path):
    node, recorder = node_of(tooling=[WEATHER]), Recorder()
    calls = [{"name": "get_city_num", "arguments": {"city": "Beijing"}}]
    models = ScriptedModels({"m": [{"tool_calls": calls}, "It is fine."]}, strict=True)
    executor = AgentExecutor(node, models=models, tools=tools_of(node, tmp_path))
    result = await run_once(executor, recorder)
    assert result.outputs == (assistant("It is fine.", "A"),)
    first, second = models.requests["m"]
    assert [t.name for t in first.tools] == ["get_city_num", "get_weather"]
    assert json.loads(second.messages[-1].text) == {"city_num": 3701}
    assert [e.tool for e in recorder.of(ToolCallStarted)] == ["get_city_num"]
    assert [e.is_error for e in recorder.of(ToolCallFinished)] == [False]
    models.check_all_used()


async def test_a_tool_that_is_hidden_from_the_node_is_told_to_be_so(tmp_path: Path):
    node = node_of(tooling=[{**WEATHER, "prefix": "wx", "exclude": "get_weather"}])
    calls = [{"name": "wx_get_weather", "arguments": {"city_num": 3701}}]
    models, recorder = ScriptedModels({"m": [{"tool_calls": calls}, "ok"]}, strict=True), Recorder()
    executor = AgentExecutor(node, models=models, tools=tools_of(node, tmp_path))
    await run_once(executor, recorder)
    first, second = models.requests["m"]
    assert [t.name for t in first.tools] == ["wx_get_city_num"]
    assert second.messages[-1].is_error
    assert "`wx_get_weather` is not available to this node" in second.messages[-1].text
    assert [e.is_error for e in recorder.of(ToolCallFinished)] == [True]


async def test_what_error_when_calls_an_error_is_one_for_the_model_and_for_events(tmp_path: Path):
    judged = {**WEATHER, "error_when": {"json_path": "city_num", "equals": 3701}}
    node = node_of(tooling=[judged])
    calls = [{"name": "get_city_num", "arguments": {"city": "Beijing"}}]
    models, recorder = ScriptedModels({"m": [{"tool_calls": calls}, "ok"]}, strict=True), Recorder()
    executor = AgentExecutor(node, models=models, tools=tools_of(node, tmp_path))
    await run_once(executor, recorder)
    result = models.requests["m"][1].messages[-1]
    assert result.is_error
    assert json.loads(result.text) == {"city_num": 3701}
    assert [e.is_error for e in recorder.of(ToolCallFinished)] == [True]


async def test_tools_are_opened_once_for_all_runs_and_closed_at_the_end(tmp_path: Path):
    node = node_of(tooling=[WEATHER])
    tools = tools_of(node, tmp_path)
    executor = AgentExecutor(node, models=ScriptedModels(), tools=tools)
    assert tools.log == []
    await asyncio.gather(*(run_once(executor, path=f"/A@1/unit:{n}") for n in range(3)))
    await run_once(executor, path="/A@2")
    assert tools.log == ["open"]
    await executor.aclose()
    await executor.aclose()
    assert tools.log == ["open", "close"]


async def test_an_agent_that_never_ran_has_nothing_to_close(tmp_path: Path):
    node = node_of(tooling=[WEATHER])
    tools = tools_of(node, tmp_path)
    await AgentExecutor(node, models=ScriptedModels(), tools=tools).aclose()
    assert tools.log == []


async def test_a_required_source_that_cannot_be_used_fails_before_the_first_call(tmp_path: Path):
    node = node_of(tooling=[{"type": "function", "config": {"tools": [{"name": "nowhere"}]}}])
    models = ScriptedModels({"m": ["never"]})
    executor = AgentExecutor(node, models=models, tools=tools_of(node, tmp_path))
    with pytest.raises(SetupError, match="nowhere"):
        await run_once(executor)
    assert models.requests == {}


async def test_a_source_that_is_not_required_is_done_without(tmp_path: Path):
    broken = {
        "type": "function",
        "required": False,
        "config": {"tools": [{"name": "nowhere"}]},
    }
    node = node_of(tooling=[broken, WEATHER], params={"tool_choice": "auto"})
    models = ScriptedModels({"m": ["ok"]})
    executor = AgentExecutor(node, models=models, tools=tools_of(node, tmp_path))
    assert (await run_once(executor)).outputs[0].text == "ok"
    assert [t.name for t in models.requests["m"][0].tools] == ["get_city_num", "get_weather"]


async def test_the_model_is_asked_for_with_what_the_file_says():
    asked: list[ModelChoice] = []

    class Noted(ScriptedModels):
        def model(self, choice: ModelChoice, /) -> Any:
            asked.append(choice)
            return super().model(choice)

    node = node_of(
        base_url="http://x/v1",
        api_key="k",
        params={"protocol": "responses", "timeout": 7, "tool_mode": "text"},
    )
    executor = AgentExecutor(node, models=Noted())
    assert asked == []
    await run_once(executor)
    await run_once(executor, path="/A@2")
    expected = ModelChoice("openai", "m", "http://x/v1", "k", "responses", 7, "text")
    assert asked == [expected]
    assert choice_of(node.config) == expected


async def test_another_choice_than_the_files_is_taken():
    models = ScriptedModels({"other": ["from the other"]})
    executor = AgentExecutor(node_of(), models=models, choice=ModelChoice("openai", "other"))
    assert (await run_once(executor)).outputs[0].text == "from the other"


async def test_attachments_can_be_read_by_the_model():
    models = ScriptedModels()
    await run_once(AgentExecutor(node_of(), models=models, attachments=str.encode))
    reader = models.requests["m"][0].attachments
    assert reader is not None
    assert reader("x.png") == b"x.png"


async def test_memories_are_shared_by_name():
    board = Blackboard("board", None)
    writer = AgentExecutor(
        node_of(memories=[{"name": "board", "read": False}]),
        models=ScriptedModels({"m": ["a says"]}),
        memories={"board": board},
    )
    models = ScriptedModels({"m": ["b says"]})
    reader = AgentExecutor(
        node_of(role="rb", memories=[{"name": "board", "write": False, "top_k": 2}]),
        models=models,
        memories={"board": board},
    )
    await run_once(writer)
    await run_once(reader)
    messages = models.requests["m"][0].messages
    assert [m.role for m in messages] == ["system", "user", "user"]
    assert "a says" in messages[1].text


async def test_a_memory_that_does_not_exist_is_named():
    models = ScriptedModels()
    executor = AgentExecutor(node_of(memories=[{"name": "bord"}]), models=models)
    with pytest.raises(SetupError, match="bord"):
        await run_once(executor)
    assert models.requests == {}


SCHEMA = {"type": "object", "required": ["n"]}


@pytest.mark.parametrize("in_file", [False, True])
async def test_an_answer_fits_its_schema_which_may_stand_in_a_file(
    tmp_path: Path, *, in_file: bool
):
    (tmp_path / "answer.json").write_text(json.dumps(SCHEMA))
    node = node_of(output_schema="answer.json" if in_file else SCHEMA)
    models = ScriptedModels({"m": ["{}", '{"n": 1}']})
    executor = AgentExecutor(node, models=models, base=tmp_path)
    assert (await run_once(executor)).outputs[0].text == '{"n": 1}'


@pytest.mark.parametrize(
    ("content", "problem"), [(None, "cannot be read"), ("{", "no JSON"), ("[]", "no object")]
)
async def test_a_schema_file_that_is_none_fails_before_the_first_call(
    tmp_path: Path, content: str | None, problem: str
):
    if content is not None:
        (tmp_path / "answer.json").write_text(content)
    models = ScriptedModels()
    node = node_of(output_schema="answer.json")
    with pytest.raises(SetupError, match=problem):
        await run_once(AgentExecutor(node, models=models, base=tmp_path))
    assert models.requests == {}


# Over HTTP


async def over_http(script: Mapping[str, Any], **config: Any) -> tuple[list[Any], NodeResult]:
    async with ChatServer(script, strict=True) as server:
        models: ModelSource = Models(environ=server.env)
        node = node_of(**config)
        tools = tools_of(node, Path()) if node.config.tooling else None
        executor = AgentExecutor(node, models=models, tools=tools)
        try:
            result = await run_once(executor)
            return server.calls["m"], result
        finally:
            await executor.aclose()
            await models.aclose()


@pytest.mark.parametrize("protocol", ["chat", "responses"])
async def test_a_tool_loop_over_http(protocol: str):
    named = {"type": "function", "function": {"name": "get_city_num"}}
    if protocol == "responses":
        named = {"type": "function", "name": "get_city_num"}
    calls = [{"name": "get_city_num", "arguments": {"city": c}} for c in ("Beijing", "Bonn")]
    bodies, result = await over_http(
        {"m": [{"tool_calls": calls}, "fine"]},
        tooling=[WEATHER],
        params={"protocol": protocol, "tool_choice": named, "tool_choice_then": "none"},
    )
    assert result.outputs[0].text == "fine"
    assert [("tools" in b, "tool_choice" in b) for b in bodies] == [(True, True), (False, False)]


async def test_a_reused_connection_serves_the_attempts_of_one_step():
    bodies, result = await over_http({"m": [{"status": 503, "retry_after": 0}, "ok"]})
    assert result.outputs[0].text == "ok"
    assert len(bodies) == 2


async def test_a_refused_key_fails_the_node_after_one_request():
    with pytest.raises(ModelRefused, match="401"):
        await over_http({"m": [{"status": 401}]})


async def test_a_cancelled_node_lets_go_of_its_request_at_once():
    async with ChatServer({"m": [{"fault": "stall", "text": "half of it"}]}) as server:
        models = Models(environ=server.env)
        running = asyncio.create_task(run_once(AgentExecutor(node_of(), models=models)))
        await server.until(lambda: server.active == 1)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await server.until(lambda: server.abandoned == 1, seconds=1)
        await models.aclose()
