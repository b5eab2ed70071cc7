"""`make examples` with a key: the real command for each workflow, a scripted model."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from devall.testing.chat_server import ChatServer

MODEL = "gpt-4o-mini"


@pytest.fixture
def script(project: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("examples", project / "scripts" / "examples.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "examples", module)  # its dataclasses look for it there
    spec.loader.exec_module(module)
    return module


def examples(project: Path, server: ChatServer, *names: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, project / "scripts" / "examples.py", *names],
        env=os.environ | server.env,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=50,
        check=False,
    )


def test_every_workflow_is_run_or_skipped_with_a_reason(script: ModuleType, project: Path) -> None:
    folder = project / "yaml_instance"
    there = {
        file.relative_to(folder).as_posix().removesuffix(".yaml") for file in folder.rglob("*.yaml")
    }
    assert {each.name for each in script.EXAMPLES} == there
    assert all(each.task for each in script.EXAMPLES)


def test_only_what_is_too_much_for_the_embedded_model_is_skipped_with_it(
    script: ModuleType,
) -> None:
    def reason(name: str, *, is_embedded: bool, is_over: bool = False) -> str:
        example = next(each for each in script.EXAMPLES if each.name == name)
        return script.why_not(example, is_embedded=is_embedded, is_over=is_over)

    assert not reason("demo_human", is_embedded=True)
    assert "too much" in reason("demo_code", is_embedded=True)
    assert not reason("demo_code", is_embedded=False)
    assert "Blender" in reason("blender_builder", is_embedded=False)
    assert "time" in reason("demo_human", is_embedded=True, is_over=True)


def test_one_that_fails_fails_all_and_the_others_are_run(project: Path) -> None:
    replies = ["A slogan.", {"error": "insufficient_quota"}, "I see.", "To nuts."]
    names = ("demo_human", "demo_reflection", "demo_simple_memory")
    with ChatServer({MODEL: replies}, strict=True) as server:
        done = examples(project, server, *names)
        assert not server.unused()
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert [line.split()[:2] for line in lines[:-1]] == [
        ["ok", "demo_human"],
        ["FAIL", "demo_reflection"],
        ["ok", "demo_simple_memory"],
        ["ok", "demo_simple_memory"],
    ]
    assert lines[0].endswith("A slogan.")
    assert "exceeded your current quota" in lines[1]
    assert lines[-1].startswith("3 ok, 1 failed, 0 skipped")


def test_a_name_that_there_is_not_is_wrong_usage(project: Path) -> None:
    with ChatServer(strict=True) as server:
        done = examples(project, server, "demo_nothing")
    assert done.returncode == 2
    assert "'demo_nothing'" in done.stderr
