"""`devall plan` as a child process: it opens no connection and loads nothing that could."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

GUARD = """
import atexit, sys

def hook(event, args):
    if event in {"socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen"}:
        print("FORBIDDEN", event, args, file=sys.stderr)
        raise RuntimeError(f"{event} {args}")

def look():
    heavy = {"openai", "fastmcp", "mcp"}
    print("LOADED", sorted(heavy & sys.modules.keys()), file=sys.stderr)

sys.addaudithook(hook)
atexit.register(look)
"""
EXAMPLES = ["demo_mcp_local", "software_team", "demo_skills"]


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_plan_opens_no_connection_and_starts_no_process(
    devall: Callable[..., object], workspace: Path, project: Path, name: str
) -> None:
    guard = workspace / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    done = devall(
        "plan",
        project / f"yaml_instance/{name}.yaml",
        "--task",
        "a task",
        "--json",
        env={"PYTHONPATH": str(guard)},
        code=0,
    )
    assert "FORBIDDEN" not in done.stderr
    assert done.stderr.splitlines()[-1] == "LOADED []", "and the guard was there"
    assert json.loads(done.stdout)["nodes"]


def test_the_guard_would_see_a_connection(
    devall: Callable[..., object], workspace: Path, project: Path
) -> None:
    guard = workspace / "guard"
    guard.mkdir()
    (guard / "sitecustomize.py").write_text(GUARD, encoding="utf-8")
    done = devall(
        "tools",
        "list",
        project / "yaml_instance/demo_mcp.yaml",
        "--connect",
        env={"PYTHONPATH": str(guard)},
    )
    assert "FORBIDDEN socket" in done.stderr
