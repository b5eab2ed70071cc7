"""docs/durability.md: what it shows does what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from devall.testing.chat_server import ChatServer

FLOW = """
    graph:
      start: Poet
      nodes:
        - {id: Poet, type: agent, config: {provider: openai, name: poet}}
        - {id: Editor, type: human, config: {description: Is it good?}}
        - {id: Critic, type: agent, config: {provider: openai, name: critic}}
      edges: [{from: Poet, to: Editor}, {from: Editor, to: Critic}]
"""


def page(project: Path) -> str:
    return (project / "docs" / "durability.md").read_text()


async def test_the_python_example_runs(project, write, workspace, monkeypatch):
    write("poem.yaml", FLOW)
    code = re.search(r"```python\n(.*?)```", page(project), re.DOTALL)
    assert code is not None
    body = "".join(f"    {line}\n" for line in code[1].splitlines())
    space: dict[str, object] = {}
    exec(f"async def example():\n{body}    return result, again", space)
    async with ChatServer({"poet": ["waves"], "critic": ["fine"]}) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result, again = await space["example"]()
        assert {name: len(calls) for name, calls in server.calls.items()} == {
            "poet": 1,
            "critic": 1,
        }
    assert result.answer == again.answer == "fine"


def commands(text: str) -> list[str]:
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("devall ")]


def test_the_commands_do_what_they_say(project, write, devall):
    found = commands(page(project))
    assert len(found) == 7
    write("poem.yaml", FLOW)
    script = {"poet": ["waves"], "critic": ["fine", "kind", "kinder", "kindest"]}
    with ChatServer(script) as server:
        devall("run", "poem.yaml", "--task", "the sea", env=server.env, code=75)
        answer = ["resume", "last", "--answer", "Editor=ACCEPT"]
        assert devall(*answer, env=server.env, code=0).stdout == "fine\n"
        assert devall("resume", "last", env=server.env, code=0).stdout == "fine\n"
        assert devall("replay", "last", code=0).stdout == "fine\n"
        change = "nodes.Critic.config.role=Be kind."
        live = ["replay", "last", "--set", change, "--live", "Critic+"]
        assert devall(*live, env=server.env, code=0).stdout == "kind\n"
        assert len(server.calls["poet"]) == 1


@pytest.mark.parametrize("option", ["--from", "--in-doubt", "--answer"])
def test_every_option_is_there(devall, option):
    assert option in devall("resume", "--help", code=0).stdout
