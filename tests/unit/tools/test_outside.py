from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.config.tools import FunctionSource, FunctionSourceConfig, FunctionTool
from devall.core.errors import SetupError, UsageError
from devall.core.events import Event, ToolProgress
from devall.core.messages import TextPart


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that is the working directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def example(project: Path, **more: Any) -> dict[str, Any]:
    server = str(project / "mcp_example" / "mcp_server.py")
    config = {"command": sys.executable, "args": [server], "startup_timeout": 30}
    return {"type": "mcp_local", "config": config, **more}


def functions(folder: Path, text: str) -> None:
    place = folder / "functions" / "function_calling"
    place.mkdir(parents=True)
    (place / "mine.py").write_text(text, encoding="utf-8")


async def test_tools_without_a_workflow(project: Path, here: Path):
    functions(here, "def double(x: int):\n    '''Twice.'''\n    return 2 * x")
    sources = [
        {"type": "function", "config": {"tools": [{"name": "double"}]}},
        example(project, prefix="dice"),
    ]
    async with devall.ToolManager(sources) as tools:
        double, dice = await tools.list()
        assert (double.name, double.description) == ("double", "Twice.")
        assert double.parameters["properties"] == {"x": {"type": "integer"}}
        assert double.metadata["source"] == "function"
        assert dice.name == "dice_rand_num"
        assert {k: dice.metadata[k] for k in ("source", "mode", "original_name")} == {
            "source": "mcp",
            "mode": "local",
            "original_name": "rand_num",
        }
        assert "mcp_server.py" in str(dice.metadata["server"])
        assert (await tools.call("double", {"x": 4})).parts == (TextPart("8"),)
        assert (await tools.call("dice_rand_num", arguments={"a": 5, "b": 5})).text == "5"
        for name, arguments in (("double", {"x": "a"}), ("double", {}), ("nothing", {})):
            assert (await tools.call(name, arguments)).is_error


async def test_one_source_and_configurations_do_as_well(here: Path):
    functions(here, "def f(): return 'f'")
    source = FunctionSource(config=FunctionSourceConfig(tools=(FunctionTool(name="f"),)))
    async with devall.ToolManager(source) as tools:
        assert (await tools.call("f")).text == "f"
    async with devall.ToolManager({"type": "function", "tools": {"name": "mine:All"}}) as tools:
        assert [spec.name for spec in await tools.list()] == ["f"]


async def test_a_folder_is_where_tools_work(here: Path):
    source = {"type": "function", "config": {"tools": [{"name": "file:All"}]}}
    async with devall.ToolManager([source], workspace=here / "files") as tools:
        saved = await tools.call("save_file", {"path": "a.txt", "content": "hi"})
        assert not saved.is_error, saved.text
        assert (here / "files" / "a.txt").read_text() == "hi"
        assert (await tools.call("save_file", {"path": "../b.txt", "content": "hi"})).is_error
    async with devall.ToolManager([source]) as tools:
        assert (await tools.call("save_file", {"path": "a.txt", "content": "hi"})).is_error
    assert os.listdir(here) == ["files"]  # noqa: PTH208


async def test_what_a_tool_reports_is_told(here: Path):
    functions(here, "def f(_context):\n    _context.report(1, 2, 'half')")
    heard: list[Event] = []
    source = {"type": "function", "config": {"tools": [{"name": "f"}]}}
    async with devall.ToolManager([source], emit=heard.append) as tools:
        await tools.call("f")
    (event,) = heard
    assert isinstance(event, ToolProgress)
    assert event.message == "half"


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ([{"type": "mcp"}], "source 1 is no source of tools"),
        ([{"type": "mcp_local", "config": {"command": 3}}], "command"),
        ({"type": "function", "config": {"tools": [{"nam": "x"}]}}, "the source is no source"),
    ],
)
def test_a_mapping_that_is_no_source_is_refused(sources: Any, said: str):
    with pytest.raises(UsageError, match=said):
        devall.ToolManager(sources)


async def test_a_source_that_fails_leaves_no_server_behind(project: Path, here: Path):
    broken = {"type": "mcp_local", "config": {"command": "no-such-program"}}
    with pytest.raises(SetupError, match="no-such-program"):
        async with devall.ToolManager([example(project), broken]):
            pass
