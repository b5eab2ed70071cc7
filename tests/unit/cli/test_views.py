"""What `devall run` says where nobody sits at a terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from devall.testing.chat_server import ChatServer

FLOW = """
    graph:
      start: [A, L]
      end: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: a
            tooling: [{type: function, config: {tools: [{name: "mine:add"}]}}]
        - {id: L, type: literal, config: {content: "one\\nbad"}}
        - {id: M, type: agent, config: {provider: openai, name: m}}
        - {id: N, type: passthrough}
      edges:
        - {from: A, to: A, condition: {type: keyword, config: {any: [again]}}}
        - {from: A, to: N, condition: {type: keyword, config: {any: [never]}}}
        - from: L
          to: M
          dynamic:
            type: map
            split: {type: regex, pattern: "[a-z]+"}
            config: {on_unit_error: skip, max_parallel: 1}
"""
MINE = 'def add(a: int) -> str:\n    return "\\x1b[31mred\\x1b[0m\\r\\nand more"\n'


def script() -> dict[str, Any]:
    add = {"tool_calls": [{"name": "add", "arguments": {"a": 1}}]}
    return {
        "a": [add, "again\x1b]0;title\x07\r\nand again", "done"],
        "m": ["fine", {"status": 400}],
    }


def run(devall, write, *options: str) -> list[str]:
    write("functions/function_calling/mine.py", MINE)
    file = write("w.yaml", FLOW)
    with ChatServer(script()) as server:
        done = devall("run", file, "--task", "x", "--run-id", "r", *options, env=server.env, code=0)
    assert done.stdout == "done\n"
    lines = done.stderr.splitlines()
    assert all(line.isprintable() for line in lines)
    return lines


def test_each_line_is_whole_and_moves_nothing(devall, write):
    lines = run(devall, write)
    assert "A: add(a=1) (" in "\n".join(lines)
    assert any(line.endswith("→ red and more") for line in lines)
    assert "A: done in" in "\n".join(lines)
    assert not [line for line in lines if "fires" in line]


def test_with_verbose_every_event_has_one_line(devall, write, workspace: Path):
    lines = run(devall, write, "--verbose")
    log = (workspace / "logs" / "r" / "events.jsonl").read_text().splitlines()
    assert json.loads(log[-1])["event"] == "run_finished"
    said = len(log) - 1
    assert sum(line.startswith("warning: M: 1 of 2 units") for line in lines) == 1
    assert lines[said].startswith("completed in ")
    assert " · 1 warning · " in lines[said]
    assert len(lines) == said + 1


def test_with_quiet_nothing_is_said(devall, write):
    assert run(devall, write, "--quiet") == []


@pytest.mark.parametrize("command", [["run", "w.yaml"], ["resume", "r"], ["replay", "r"]])
def test_nothing_and_everything_exclude_each_other(devall, write, command):
    run(devall, write)
    done = devall(*command, "-q", "-v", code=2)
    assert "--quiet and --verbose exclude each other" in done.stderr
