"""The cases of the suite, end to end: the command line against a scripted chat server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from devall.testing.chat_server import ChatServer

CASES = sorted(path for path in (Path(__file__).parent / "cases").iterdir())


def _read(place: Path) -> dict[str, Any]:
    return YAML(typ="safe").load(place.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Path, tmp_path: Path, compare_calls: Callable[..., None]) -> None:
    script, expected = _read(case / "script.yaml"), _read(case / "expected.yaml")
    command = [sys.executable, "-m", "devall", "run", str(case / "workflow.yaml"), "--json"]
    command += ["--task", script["task"], "--logs-dir", str(tmp_path / "logs")]
    for name, value in script.get("vars", {}).items():
        command += ["--var", f"{name}={value}"]
    if "human" in script:
        # One list for the run: the cases have one human node each, by the name H.
        answers = tmp_path / "answers.json"
        answers.write_text(json.dumps({"H": script["human"]}))
        command += ["--answers", str(answers)]
    with ChatServer(script) as server:
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=os.environ | server.env | script.get("env", {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=40,
        )
        sent = server.calls
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["status"] == "completed"
    assert result["answer"] == expected["final"]
    runs = {
        name.rpartition("/")[2]: node["runs"]
        for name, node in result["nodes"].items()
        if node["runs"]
    }
    assert runs == expected["runs"]
    compare_calls(sent, expected["calls"])
