"""Second thoughts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.agents.thinking import Ask, Thought, own_thinker
from devall.config.agents import Thinking
from devall.core.errors import ConfigError, FunctionError
from devall.core.messages import Message, assistant, user
from devall.testing.scripted_model import ScriptedModels

CHECK = "Check the answer and give a better one."
REFLECT = {"thinking": {"type": "reflection", "config": {"reflection_prompt": CHECK}}}


async def test_the_second_answer_stands(played, scope):
    agent = played(["first answer", "better answer"], config=REFLECT | {"role": "solver"})
    result = await agent.run(scope, "the task")
    assert agent.requests[1].messages == (
        Message("system", "solver"),
        user("the task"),
        assistant("first answer", "A"),
        user(CHECK),
    )
    assert result.outputs == (assistant("better answer", "A"),)
    assert result.remembered == (assistant("better answer", "A"),)


async def test_the_first_answer_stands_where_the_second_is_empty(played, scope):
    agent = played(["first answer", ""], config=REFLECT)
    assert (await agent.run(scope, "the task")).outputs[0].text == "first answer"


@pytest.mark.parametrize("choice", [None, "required"])
async def test_no_tools_are_offered_when_thinking_and_the_exchange_is_remembered(
    played, scope, choice
):
    replies = [{"tool_calls": [{"name": "now", "arguments": {}}]}, "first", "second"]
    params = {"params": {"tool_choice": choice}} if choice else {}
    agent = played(replies, tools={"now": lambda: "noon"}, config=REFLECT | params)
    result = await agent.run(scope, "when?")
    assert agent.requests[2].tools == ()
    assert "tool_choice" not in agent.requests[2].params
    assert all(not m.tool_calls and m.role != "tool" for m in agent.requests[2].messages)
    assert [m.role for m in result.remembered] == ["assistant", "tool", "assistant"]
    assert result.remembered[-1].text == "second"


async def test_a_call_made_when_thinking_is_not_run(played, scope):
    ran: list[str] = []
    second = {"text": "second", "extra": {"responses_output": [{"type": "function_call"}]}}
    replies = ["first", second | {"tool_calls": [{"name": "now", "arguments": {}}]}]
    agent = played(replies, tools={"now": lambda: ran.append("x")}, config=REFLECT)
    result = await agent.run(scope, "when?")
    assert ran == []
    assert result.outputs[0].text == "second"
    assert result.remembered == (assistant("second", "A"),)


async def test_the_second_request_is_the_next_turn(played, scope):
    await played(["first", "second"], config=REFLECT).run(scope, "go")
    assert list(scope.journal) == ["turn:1", "turn:2"]


OPINION = """
from devall.core.messages import user

async def second_opinion(thought, ask, settings):
    return await ask((*thought.prompt, thought.answer, user(settings["question"])))

def shouted(thought, ask, settings):
    return thought.answer.text.upper()
"""

FLOW = """
graph:
  start: A
  nodes:
    - id: A
      type: agent
      config:
        provider: openai
        name: m
        thinking: {type: KIND, config: {question: Are you sure?}}
"""


def flow(folder: Path, kind: str) -> Path:
    (folder / "functions" / "thinking").mkdir(parents=True)
    (folder / "functions" / "thinking" / "opinions.py").write_text(OPINION)
    (folder / "flow.yaml").write_text(FLOW.replace("KIND", kind))
    return folder / "flow.yaml"


async def test_a_project_brings_kinds_of_its_own(tmp_path: Path):
    source = ScriptedModels({"m": ["first", "second"]})
    result = await devall.run(flow(tmp_path, "second_opinion"), task="x", model_source=source)
    assert result.answer == "second"
    assert [m.text for m in source.requests["m"][1].messages] == ["x", "first", "Are you sure?"]


async def test_a_kind_that_asks_nothing_may_be_a_plain_function(tmp_path: Path):
    source = ScriptedModels({"m": ["first"]})
    file = flow(tmp_path, "opinions:shouted")
    assert (await devall.run(file, task="x", model_source=source)).answer == "FIRST"


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        ("reflexion", "did you mean `reflection`?"),
        ("second_opinon", "did you mean `second_opinion`?"),
        ("dreaming", "known: reflection, second_opinion, shouted"),
    ],
)
def test_a_kind_that_does_not_exist_is_found_when_the_file_is_loaded(
    tmp_path: Path, kind: str, hint: str
):
    with pytest.raises(ConfigError) as caught:
        devall.load_workflow(flow(tmp_path, kind))
    [found] = caught.value.diagnostics
    assert found.code == "unknown-thinking"
    assert f"unknown kind of thinking `{kind}`" in found.message
    assert hint in found.hint
    assert "flow.yaml:10" in str(found)


def test_settings_of_an_own_kind_are_any_and_those_of_reflection_are_not():
    written = {"type": "own", "config": {"a": [1], "b": None, "x-note": "z"}}
    thinking = Thinking.model_validate(written)
    assert thinking.settings == {"a": [1]}
    assert thinking.model_dump()["config"]["a"] == [1]
    assert Thinking.model_validate({"type": "own"}).settings == {}
    for config in ({"a": 1}, {"reflection_prompt": "x", "a": 1}, {}):
        with pytest.raises(ValueError, match=r"reflection_prompt|extra"):
            Thinking.model_validate({"config": config})


async def asked_for_nothing(_: object) -> Message:
    raise AssertionError


async def thought_over(function: Any) -> Message:
    thinking = Thinking.model_validate({"type": "own"})
    thought = Thought((user("x"),), assistant("first", "A"))
    return await own_thinker("own", function, "A")(thinking, thought, asked_for_nothing)


@pytest.mark.parametrize("value", [None, "", " \n"])
async def test_the_first_answer_stands_where_an_own_kind_gives_nothing(value: str | None):
    assert await thought_over(lambda *_: value) == assistant("first", "A")


async def test_an_own_kind_that_raises_or_gives_something_else_is_named():
    def broken(thought: Thought, ask: Ask, settings: Mapping[str, Any]) -> int:
        return settings["missing"]

    with pytest.raises(FunctionError, match="thinking function own of node A raised KeyError"):
        await thought_over(broken)
    with pytest.raises(FunctionError, match="it gave int"):
        await thought_over(lambda *_: 5)
