"""Agents with skills in whole runs: told of, made active, enforced, resumed, replayed."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.events import ToolCallFinished
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

FLOW = """\
graph:
  start: A
  nodes:
    - id: A
      type: agent
      context_window: -1
      config:
        provider: openai
        name: m
        role: You work.
        retry: {enabled: false}
        tooling: {type: function, config: {tools: [{name: get_city_num}, {name: get_weather}]}}
        skills: {enabled: true SKILLS}
    - {id: H, type: human, config: {description: go on?}}
  edges:
    - {from: A, to: H}
    - {from: H, to: A, condition: {type: keyword, config: {any: [again]}}}
"""


def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "arguments": arguments}


def calls(*found: dict[str, Any]) -> dict[str, Any]:
    return {"tool_calls": list(found)}


NUMBER = call("get_city_num", city="Beijing")
WEATHER = call("get_weather", city_num=3701)


@pytest.fixture
def flow(tmp_path: Path) -> Path:
    for name, allowed in (("cities", "get_city_*"), ("free", None)):
        folder = tmp_path / ".agents" / "skills" / name
        (folder / "refs").mkdir(parents=True)
        (folder / "refs" / "more.md").write_text(f"more of {name}")
        line = f"allowed-tools: {allowed}\n" if allowed else ""
        text = f"---\nname: {name}\ndescription: About {name}.\n{line}---\nBody of {name}.\n"
        (folder / "SKILL.md").write_text(text)
    file = tmp_path / "w.yaml"
    file.write_text(FLOW.replace(" SKILLS", ""))
    return file


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch):
    def use(server: ChatServer) -> None:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)

    return use


def results(recorder: Recorder) -> list[tuple[str, bool]]:
    return [(event.tool, event.is_error) for event in recorder.of(ToolCallFinished)]


async def test_allowed_tools_hold_while_a_skill_is_active_and_only_then(use, flow: Path) -> None:
    script = [
        calls(WEATHER),
        calls(call("activate_skill", name="cities")),
        calls(WEATHER, NUMBER),
        calls(call("read_skill_file", name="cities", path="refs/more.md")),
        calls(call("activate_skill", name="free"), call("get_weather", city_num=1)),
        calls(call("get_weather", city_num=2)),
        "done",
    ]
    async with ChatServer({"m": script}) as server:
        use(server)
        recorder = Recorder()
        result = await devall.run(flow, task="x", answers={"H": "end"}, on_event=recorder)
    assert result.status == "completed", result.error
    assert results(recorder) == [
        ("get_weather", False),
        ("activate_skill", False),
        ("get_weather", True),
        ("get_city_num", False),
        ("read_skill_file", False),
        ("activate_skill", False),
        ("get_weather", True),
        ("get_weather", False),
    ]
    asked = server.calls["m"]
    system = asked[0]["messages"][0]["content"]
    assert system.startswith("You work.\n\nYou have skills")
    assert "- cities: About cities.\n- free: About free." in system
    names = [tool["function"]["name"] for tool in asked[0]["tools"]]
    assert names == ["get_city_num", "get_weather", "activate_skill", "read_skill_file"]
    told = [m["content"] for m in asked[3]["messages"] if m["role"] == "tool"]
    assert "Body of cities." in told[1]
    assert told[1].endswith("these of your tools may be called: get_city_num")
    assert "not allowed while skill `cities` is active" in told[2]
    assert asked[4]["messages"][-1]["content"] == "more of cities"


async def test_a_skill_ends_with_the_nodes_run_also_where_it_remembers(use, flow: Path) -> None:
    script = [
        calls(call("activate_skill", name="cities")),
        "first",
        calls(WEATHER),
        "second",
    ]
    async with ChatServer({"m": script}) as server:
        use(server)
        recorder = Recorder()
        answers = {"H": ["again", "end"]}
        result = await devall.run(flow, task="x", answers=answers, on_event=recorder)
    assert result.status == "completed", result.error
    assert results(recorder) == [("activate_skill", False), ("get_weather", False)]


async def test_only_allowed_skills_are_there(use, flow: Path) -> None:
    flow.write_text(FLOW.replace(" SKILLS", ", allow: [{name: free}]"))
    script = [calls(call("activate_skill", name="cities")), "done"]
    async with ChatServer({"m": script}) as server:
        use(server)
        await devall.run(flow, task="x", answers={"H": "end"})
    system, result = (
        server.calls["m"][0]["messages"][0]["content"],
        server.calls["m"][1]["messages"][-1]["content"],
    )
    assert "cities" not in system
    assert "there is no skill 'cities'" in result


async def test_a_run_that_goes_on_and_a_replay_agree_without_the_skills(
    use, flow: Path, tmp_path: Path
) -> None:
    script = [
        calls(call("activate_skill", name="cities")),
        calls(WEATHER),
        "first",
        calls(WEATHER),
        "second",
    ]
    logs = tmp_path / "logs"
    async with ChatServer({"m": script}) as server:
        use(server)
        waiting = await devall.run(flow, task="x", logs_dir=logs)
        assert waiting.status == "waiting"
        # Another text of the skill does not change what the run was told of it.
        place = flow.parent / ".agents" / "skills" / "cities" / "SKILL.md"
        place.write_text(place.read_text().replace("get_city_*", "get_*").replace("About", "On"))
        recorder = Recorder()
        result = await devall.resume(
            waiting.run_id, logs_dir=logs, answers={"H": ["again", "end"]}, on_event=recorder
        )
        asked = len(server.calls["m"])
    assert result.status == "completed", result.error
    assert asked == 5
    assert results(recorder) == [
        ("activate_skill", False),
        ("get_weather", True),
        ("get_weather", False),
    ]
    shutil.rmtree(flow.parent / ".agents")
    again = Recorder()
    replayed = await devall.replay(result.run_id, logs_dir=logs, on_event=again)
    assert replayed.status == "completed", replayed.error
    assert replayed.answer == result.answer
    assert results(again) == results(recorder)


async def test_an_agent_without_sources_has_the_two_tools(use, flow: Path) -> None:
    text = FLOW.replace(" SKILLS", "")
    flow.write_text("\n".join(line for line in text.splitlines() if "tooling" not in line))
    async with ChatServer({"m": [calls(call("activate_skill", name="free")), "done"]}) as server:
        use(server)
        result = await devall.run(flow, task="x", answers={"H": "end"})
    assert result.status == "completed", result.error
    assert "Body of free." in server.calls["m"][1]["messages"][-1]["content"]
