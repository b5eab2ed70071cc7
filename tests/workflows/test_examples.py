"""The example workflows, each run as its user would, against a scripted model."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.events import ToolCallFinished
from devall.engine.result import RunResult
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder

PROJECT = Path(__file__).resolve().parents[2]
FOLDER = PROJECT / "yaml_instance"


async def example(
    name: str,
    script: Mapping[str, Sequence[Any]],
    task: str,
    monkeypatch: pytest.MonkeyPatch,
    **options: Any,
) -> tuple[RunResult, ChatServer]:
    """A run of an example whose agents' models are called as the nodes are."""
    async with ChatServer(script, strict=True) as server:
        for key, value in server.env.items():
            monkeypatch.setenv(key, value)
        models = {node: node for node in script}
        result = await devall.run(FOLDER / f"{name}.yaml", task=task, models=models, **options)
        assert result.status == "completed", result.error
        assert not server.unused()
    return result, server


def said(server: ChatServer, model: str, call: int = 0) -> list[tuple[str, str]]:
    return [(m["role"], m["content"]) for m in server.calls[model][call]["messages"]]


DRAW = {"tool_calls": [{"name": "rand_num", "arguments": {"a": 5, "b": 5}}]}
POEM = [DRAW, "Five lines for the number 5."]


@pytest.fixture
def mcp_url() -> Iterator[str]:
    """The URL of the example server, over HTTP."""
    command = [sys.executable, str(PROJECT / "mcp_example" / "mcp_server.py"), "--http"]
    with subprocess.Popen([*command, "--port", "0"], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
        server.terminate()


async def test_demo_mcp(mcp_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    result, server = await example(
        "demo_mcp",
        {"A": POEM, "B": ["Short."]},
        "5 5",
        monkeypatch,
        variables={"MCP_URL": mcp_url},
        on_event=recorder,
    )
    assert result.answer == "Short."
    assert [event.result for event in recorder.of(ToolCallFinished)] == ["5"]
    assert server.calls["A"][0]["tool_choice"] == "required"
    assert said(server, "B")[-1] == ("user", "Five lines for the number 5.")


@pytest.mark.parametrize("python", [sys.executable, None], ids=["named", "not named"])
async def test_demo_mcp_local(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, python: str | None
) -> None:
    monkeypatch.delenv("PYTHON", raising=False)
    if python is None:
        monkeypatch.setenv("PATH", str(tmp_path))  # there is no other `python` than devall's
    result, server = await example(
        "demo_mcp_local",
        {"A": POEM, "B": ["Short."]},
        "5 5",
        monkeypatch,
        variables={} if python is None else {"PYTHON": python},
    )
    assert result.answer == "Short."
    assert said(server, "A", 1)[-1] == ("tool", "5")


async def test_demo_function_call(monkeypatch: pytest.MonkeyPatch) -> None:
    number = {"tool_calls": [{"name": "get_city_num", "arguments": {"city": "Beijing"}}]}
    weather = {"tool_calls": [{"name": "get_weather", "arguments": {"city_num": 3701}}]}
    result, server = await example(
        "demo_function_call",
        {"Forecaster": [number, weather, "It is fine."]},
        "What is the weather in Beijing?",
        monkeypatch,
    )
    assert result.answer == "It is fine."
    assert json.loads(said(server, "Forecaster", 1)[-1][1]) == {"city_num": 3701}


async def test_demo_code_is_mended_until_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server = await example(
        "demo_code",
        {
            "Coder": ["```python\nprint(1 / 0)\n```", "```python\nprint(2 + 3)\n```"],
            "Reporter": ["It shows 5."],
        },
        "Add two and three.",
        monkeypatch,
    )
    assert result.answer == "It shows 5."
    assert "ZeroDivisionError" in said(server, "Coder", 1)[-1][1]
    assert said(server, "Reporter")[-1] == ("user", "5\n")


async def test_demo_human_goes_round_until_the_editor_accepts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result, _ = await example(
        "demo_human",
        {"Writer": ["Bread.", "Fresh bread."]},
        "A slogan for a bakery",
        monkeypatch,
        answers={"Editor": ["longer", "accept"]},
    )
    assert result.answer == "Fresh bread."


async def test_demo_loop_counter_ends_after_three_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = await example(
        "demo_loop_counter",
        {"Writer": ["one", "two", "three"], "Critic": ["better", "better", "better"]},
        "A haiku about rain",
        monkeypatch,
    )
    assert result.answer == "three"


async def test_demo_majority_voting(monkeypatch: pytest.MonkeyPatch) -> None:
    result, _ = await example(
        "demo_majority_voting",
        {"Careful": ["51"], "Quick": ["52"], "Sceptic": ["51"]},
        "What is 17 times 3?",
        monkeypatch,
    )
    assert result.answer == "51"


async def test_demo_sub_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    result, server = await example(
        "demo_sub_graph",
        {
            "Planner": ["Tell of storms."],
            "Write/Writer": ["one", "two", "three"],
            "Write/Critic": ["more", "more", "more"],
            "Title/Titler": ["The Lamp"],
        },
        "A story about a lighthouse",
        monkeypatch,
    )
    assert result.answer == "The Lamp"
    assert said(server, "Write/Writer")[-1] == ("user", "Tell of storms.")
    assert said(server, "Title/Titler")[-1] == ("user", "three")


def test_every_example_has_a_test() -> None:
    tests = Path(__file__).read_text(encoding="utf-8")
    missing = [f.stem for f in FOLDER.glob("*.yaml") if f'"{f.stem}"' not in tests]
    assert not missing


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.yaml")), ids=lambda file: file.stem)
def test_every_example_passes_validation_and_says_what_it_is_for(file: Path) -> None:
    loaded = devall.load_workflow(file)
    assert not loaded.warnings
    assert file.read_text(encoding="utf-8").startswith("# ")
    assert loaded.config.graph.description
