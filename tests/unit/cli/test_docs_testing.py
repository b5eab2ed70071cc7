"""What docs/testing.md shows is what happens."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import cast

import pytest

from devall.loading.document import parse_document
from devall.testing.cases.case import CaseFile
from devall.testing.cases.expectations import Expectations
from devall.testing.chat_server import ChatServer

BLOCK = re.compile(r"```(yaml|python)\n# (\S+)\n(.*?)```", re.DOTALL)
COMMANDS = re.compile(r"```\n(devall .*?)```", re.DOTALL)
POEM = """\
version: 0.4.0
graph:
  start: Poet
  nodes:
    - id: Poet
      type: agent
      config:
        provider: openai
        name: gpt-4o-mini
        role: You are a poet.
        tooling: [{type: function, config: {tools: [{name: rand_num}]}}]
    - {id: Critic, type: agent, config: {provider: openai, name: gpt-4o, role: You are a critic.}}
  edges:
    - {from: Poet, to: Critic}
"""
RAND_NUM = '''\
def rand_num(a: int, b: int) -> int:
    """A number from a to b."""
    return a
'''
DRAW = {"tool_calls": [{"name": "rand_num", "arguments": {"a": 5, "b": 5}}]}
REPLIES = {"gpt-4o-mini": [DRAW, "Five lines."], "gpt-4o": ["Short and good."]}


@pytest.fixture
def page(project: Path) -> str:
    return (project / "docs" / "testing.md").read_text("utf-8")


def test_every_command_and_block_of_the_page_works(page, workspace, devall):
    (workspace / "poem.yaml").write_text(POEM, "utf-8")
    functions = workspace / "functions" / "function_calling"
    functions.mkdir(parents=True)
    (functions / "mine.py").write_text(RAND_NUM, "utf-8")
    blocks = {name: content for _, name, content in BLOCK.findall(page)}
    assert len(blocks) == 4
    calls = [
        line.partition("#")[0].strip()
        for block in COMMANDS.findall(page)
        for line in block.splitlines()
    ]
    assert len(calls) == 11
    for name, content in blocks.items():
        if "poem/" not in name:
            file = workspace / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content, "utf-8")
    with ChatServer(REPLIES, strict=True) as server:
        for call in calls:
            env = server.env if " run " in call or "--update" in call else {}
            done = devall(*shlex.split(call)[1:], env=env, code=0)
            if call.endswith("--quiet"):
                assert (done.stdout, done.stderr) == ("", "")
            if call == "devall test":
                assert "3 passed" in done.stdout
    made = (workspace / "tests/workflows/poem/case.yaml").read_text("utf-8")
    shown = parse_document(blocks["tests/workflows/poem/case.yaml"], "page").root
    assert parse_document(made, "made").root == shown
    [code] = [content for kind, _, content in BLOCK.findall(page) if kind == "python"]
    names: dict[str, object] = {}
    exec(compile(code, "page", "exec"), names)  # the page's own code
    test = cast("Callable[[], Coroutine[None, None, None]]", names["test_the_poem"])
    asyncio.run(test())
    (workspace / "poem.yaml").write_text(POEM.replace("a poet", "no poet"), "utf-8")
    done = devall("test", code=7)
    assert "+    content: You are no poet." in done.stdout
    devall("schema", "--output", "test-case", code=0)
    assert json.loads(devall("test", "-k", "refused", "--json", code=0).stdout)["passed"] == 1


def test_the_page_names_every_key(page):
    words = set(re.findall(r"\w+", page))
    assert set(CaseFile.model_fields) - words == set()
    assert set(Expectations.model_fields) - words == set()
