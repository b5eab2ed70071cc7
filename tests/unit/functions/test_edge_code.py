"""Code that is saved and run on its way along an edge."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.testing.scripted_model import ScriptedModels
from devall.workspace import Workspace

FENCE = "```"


def files_in(**files: str) -> str:
    """A message with those files (`_` stands for the dot)."""
    return "\n".join(
        f"{name.replace('_', '.')}\n{FENCE}python\n{code}\n{FENCE}" for name, code in files.items()
    )


@pytest.fixture
def processed(workspace: Workspace) -> Callable[[str], Any]:
    run = FunctionCatalog(None, shipped_functions()).edge_processor("code_save_and_run")
    return lambda text: run(text, _context={"workspace": workspace})


async def test_files_are_saved_and_the_main_one_is_run(processed: Any, files: Path):
    text = files_in(names_py="NAME = 'Ada'", main_py="from names import NAME\nprint('hello', NAME)")
    told = await processed(text)
    assert (files / "names.py").read_text() == "NAME = 'Ada'\n"
    assert told == f"{text}\n\nhello Ada\n\nThe software run successfully without errors."


async def test_a_program_that_fails_is_told_without_the_place_of_its_files(
    processed: Any, files: Path
):
    told = await processed(files_in(main_py="print(1)\nraise ValueError('no')"))
    assert "exit code 1" in told
    assert "ValueError: no" in told
    assert "successfully" not in told
    assert str(files) not in told


async def test_a_program_that_goes_on_has_started_well_and_is_stopped(processed: Any):
    told = await processed(files_in(main_py="import time\nprint('up', flush=True)\ntime.sleep(60)"))
    assert "up\n\n(it still ran after 3 s, and was stopped)\n\nThe software run successf" in told


async def test_what_the_message_before_saved_is_gone_and_what_the_program_wrote_stays(
    processed: Any, files: Path
):
    await processed(files_in(old_py="x = 1", main_py="open('made.txt', 'w').write('1')"))
    await processed(files_in(main_py="print(1)"))
    assert not (files / "old.py").exists()
    assert (files / "made.txt").exists()


async def test_names_that_lead_out_of_the_workspace_are_not_written_or_deleted(
    processed: Any, files: Path, tmp_path: Path
):
    outside = tmp_path / "outside.py"
    outside.write_text("mine")
    told = await processed(
        f"../../outside.py\n{FENCE}\nx\n{FENCE}\n**main.py**\n{FENCE}py\nprint(2)\n{FENCE}"
    )
    assert "../../outside.py was not saved" in told
    assert "successfully" in told
    (files / ".saved_from_messages").write_text("../../outside.py")
    await processed(files_in(main_py="print(1)"))
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("text", ["", "no code here", f"{FENCE}python\nprint(1)\n{FENCE}"])
async def test_a_text_without_files_stays_as_it_is(processed: Any, text: str):
    assert await processed(text) == text


async def test_without_a_main_file_nothing_is_run(processed: Any, files: Path):
    told = await processed(files_in(other_py="raise SystemExit(3)"))
    assert told.endswith("there is no main.py to run")
    assert (files / "other.py").exists()


def workflow(folder: Path, edge: Any) -> Path:
    nodes = [
        {"id": "A", "type": "agent", "config": {"provider": "openai", "name": "m"}},
        {"id": "B", "type": "passthrough"},
    ]
    graph = {"start": "A", "nodes": nodes, "edges": [{"from": "A", "to": "B"} | edge]}
    file = folder / "flow.yaml"
    file.write_text(json.dumps({"version": "0.4.0", "graph": graph}))
    return file


async def test_in_a_run_it_works_in_the_workspace_of_the_run(tmp_path: Path):
    process = {"type": "function", "config": {"name": "code_save_and_run"}}
    file = workflow(tmp_path, {"process": process})
    text = files_in(main_py="print(6 * 7)")
    result = await devall.run(
        file, task="x", model_source=ScriptedModels({"m": [text]}), logs_dir=tmp_path / "logs"
    )
    assert result.answer is not None
    assert "\n42\n" in result.answer
    assert result.logs_dir is not None
    assert (result.logs_dir / "workspace/main.py").exists()


@pytest.mark.parametrize("kind", ["edge", "edge_processor"])
async def test_functions_of_edges_written_for_chatdev_get_their_dictionary(
    tmp_path: Path, kind: str
):
    place = tmp_path / "functions" / kind
    place.mkdir(parents=True)
    (place / "own.py").write_text(
        "def seen(data, _context):\n"
        "    _context.setdefault('loop_counter', {})['x'] = 1\n"
        "    root = _context.get('python_workspace_root')\n"
        "    assert isinstance(_context, dict) and root.is_dir()\n"
        "    return data + ' in ' + root.name\n"
    )
    call = {"type": "function", "config": {"name": "seen"}}
    file = workflow(tmp_path, {"process" if kind == "edge_processor" else "condition": call})
    result = await devall.run(file, task="x", model_source=ScriptedModels({"m": ["hi"]}))
    assert result.answer == ("hi in workspace" if kind == "edge_processor" else "hi")
