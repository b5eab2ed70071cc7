"""What the pages of docs/ and the READMEs show is what happens.

Every block of YAML and of Python is run. A first line such as `# flow.yaml` names the file that a
block is; the files of a page lie in one folder, beside `poem.yaml` of the README. An HTML comment
in front of a block is YAML that says what cannot be seen in it:

- `in`: what a fragment is part of: `nodes` (a list of nodes, one after the other), `edges` (a list
  of edges between agents of those names), `agent` (keys of one agent's config), `memory` (stores of
  one agent).
- `task`, `vars`, `answers`, `env`: with what it is run. `replies`: what models say, by node in a
  workflow, by the model's name in Python.
- `answer`, `status`, `error` (a code), `runs` (node to number), `sees` (node to the texts of its
  last request, without its role), `warns` (parts of warnings): what has to come of it. A workflow
  that says nothing has to complete.
- `only_loaded`: why it cannot be run here. `invalid`: the codes that validation finds. `no_workflow`: whose format it is instead.
- `picture`: the file of the page that a block of mermaid shows.
"""

from __future__ import annotations

import ast
import asyncio
import inspect
import os
import re
import shlex
import shutil
import sys
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest
import typer
from ruamel.yaml import YAML

import devall
from devall.cli.main import app, call
from devall.config.schema import json_schema
from devall.pictures.mermaid import mermaid
from devall.testing.chat_server import ChatServer
from devall.testing.scripted_model import ScriptedModels

PROJECT = Path(__file__).resolve().parents[2]
PAGES = {
    str(path.relative_to(PROJECT)): path.read_text("utf-8")
    for path in (*sorted(PROJECT.glob("README*.md")), *sorted((PROJECT / "docs").glob("*.md")))
}
FENCE = re.compile(
    r"(?:^<!--(?P<note>(?:(?!-->).)*)-->\n)?"
    r"^(?P<indent> *)```(?P<kind>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
NAME = re.compile(r"# ([\w./-]+\.\w+)\n")
GENERATED = "docs/reference.md"


@dataclass(frozen=True)
class Block:
    """A fenced block of a page."""

    page: str
    line: int
    kind: str
    text: str
    note: Mapping[str, Any] = field(default_factory=dict)

    @property
    def file(self) -> str:
        """The name of the file that it is; empty = none."""
        found = NAME.match(self.text)
        return found[1] if found else ""

    @property
    def where(self) -> str:
        return f"{self.page}:{self.line}"


def yaml_of(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def blocks_of(page: str) -> list[Block]:
    text = PAGES[page]
    found = []
    for match in FENCE.finditer(text):
        note = yaml_of(match["note"]) if match["note"] else {}
        assert isinstance(note, dict), f"{page}: the comment is no mapping: {match['note']}"
        line = text.count("\n", 0, match.start("kind")) + 1
        found.append(Block(page, line, match["kind"], textwrap.dedent(match["text"]), note))
    return found


BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(b, id=b.where) for b in BLOCKS if b.kind == kind]


def lay_out(page: str, folder: Path) -> None:
    """Write the files of a page down, and those that every page may name."""
    files = {b.file: b for p in ("README.md", page) for b in blocks_of(p) if b.file}
    for name, block in files.items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        # In Markdown the line with the name would be a heading.
        text = NAME.sub("", block.text, 1) if block.kind == "markdown" else block.text
        # Nothing is fetched for a test.
        place.write_text(text.replace("command: uvx", "command: no-such-uvx"), "utf-8")
    shutil.copy(Path(__file__).with_name("number_server.py"), folder / "mcp_server.py")


def whole(block: Block) -> str:
    """The workflow that a block is, or that a fragment is put into."""
    inner = yaml_of(block.text)
    text = block.text.strip("\n")
    match block.note.get("in"):
        case None:
            assert "graph" in inner, f"{block.where}: no graph; say `in` or `no_workflow`"
            return block.text
        case "nodes":
            names = [node["id"] for node in inner]
            edges = [f"{{from: {a}, to: {b}}}" for a, b in pairwise(names)]
            head, tail = (
                f"graph:\n  start: {names[0]}\n  nodes:\n",
                f"\n  edges: [{', '.join(edges)}]\n",
            )
            return head + textwrap.indent(text, "    ") + tail
        case "edges":
            names = list(dict.fromkeys(edge[side] for edge in inner for side in ("from", "to")))
            nodes = ", ".join(
                f"{{id: {n}, type: agent, config: {{provider: openai, name: {n}}}}}" for n in names
            )
            head = f"graph:\n  start: {names[0]}\n  nodes: [{nodes}]\n  edges:\n"
            return head + textwrap.indent(text, "    ") + "\n"
        case "agent":
            head = "graph:\n  start: A\n  nodes:\n    - id: A\n      type: agent\n      config:\n"
            own = {"provider": "openai", "name": "A"}
            missing = [f"{key}: {value}" for key, value in own.items() if key not in inner]
            return head + textwrap.indent("\n".join([*missing, text]), "        ") + "\n"
        case "memory":
            used = ", ".join(f"{{name: {store['name']}}}" for store in inner)
            head = f"graph:\n  start: A\n  nodes:\n    - id: A\n      type: agent\n      config: {{provider: openai, name: A, memories: [{used}]}}\n  memory:\n"
            return head + textwrap.indent(text, "    ") + "\n"
        case other:
            raise AssertionError(f"{block.where}: nothing is known of `in: {other}`")


def is_workflow(block: Block) -> bool:
    # Cases are run by the tests of the page on them.
    return "no_workflow" not in block.note and not block.file.endswith("case.yaml")


@pytest.mark.parametrize("block", of_kind("yaml"))
async def test_every_block_of_yaml_does_what_it_says(block, workspace, monkeypatch):
    note = block.note
    if not is_workflow(block):
        assert yaml_of(block.text)
        return
    lay_out(block.page, workspace)
    file = workspace / (block.file or "workflow.yaml")
    file.write_text(whole(block).replace("command: uvx", "command: no-such-uvx"), "utf-8")
    for name, value in note.get("env", {}).items():
        monkeypatch.setenv(name, value)
    given = {"variables": note.get("vars"), "env_file": None}
    if "invalid" in note:
        with pytest.raises(devall.ConfigError) as caught:
            devall.load_workflow(file, **given)
        assert [found.code for found in caught.value.diagnostics] == note["invalid"]
        return
    if "only_loaded" in note:
        devall.load_workflow(file, **given)
        return
    replies = {n: r if isinstance(r, list) else [r] for n, r in note.get("replies", {}).items()}
    models = ScriptedModels(replies)
    result = await devall.run(
        file,
        task=str(note.get("task", "the task")),
        answers=note.get("answers"),
        models={name: name for name in replies},
        logs_dir="logs",
        model_source=models,
        **given,
    )
    assert result.status == note.get("status", "completed"), result.error
    assert not models.playback.unused()
    if "answer" in note:
        assert (result.answer or "").strip() == str(note["answer"])
    if "error" in note:
        assert result.error is not None
        assert result.error.code == note["error"]
    ran = {name: summary.runs for name, summary in result.nodes.items()}
    assert {name: ran[name] for name in note.get("runs", {})} == note.get("runs", {})
    for node, texts in note.get("sees", {}).items():
        asked = models.requests[node][-1].messages
        assert [m.text for m in asked if m.role != "system"] == texts
    told = "\n".join(result.warnings)
    assert [part for part in note.get("warns", ()) if part not in told] == []


@pytest.mark.parametrize("page", sorted({b.page for b in BLOCKS if b.kind == "python"}))
def test_every_block_of_python_runs(page, workspace, monkeypatch):
    """The blocks of a page in their order, each seeing the names of those before it."""
    lay_out(page, workspace)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    names: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(page):
        if block.kind != "python" or block.file:
            continue
        with ChatServer(block.note.get("replies")) as server:
            for name, value in {**server.env, **block.note.get("env", {})}.items():
                monkeypatch.setenv(name, value)
            # Behind as many lines as there are on the page: a traceback leads to it.
            lines = "\n" * block.line + block.text
            code = compile(lines, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
            made = FunctionType(code, names)()
            if asyncio.iscoroutine(made):
                asyncio.run(made)


@pytest.mark.parametrize("block", of_kind("mermaid"))
def test_every_picture_is_that_of_its_workflow(block, workspace):
    lay_out(block.page, workspace)
    assert block.text == mermaid(devall.load_workflow(block.note["picture"]).root)


def test_blocks_are_of_known_kinds():
    odd = [b.where for b in BLOCKS if b.kind not in {"", "yaml", "python", "mermaid", "markdown"}]
    assert odd == []


def commands() -> dict[str, set[str]]:
    """Every command by its full name, and its options."""
    found: dict[str, set[str]] = {}
    stack = [("", typer.main.get_command(app))]
    while stack:
        name, each = stack.pop()
        inner = getattr(each, "commands", None)
        if inner is None:
            found[name] = {option for parameter in each.params for option in parameter.opts}
        else:
            stack += [(f"{name} {key}".strip(), value) for key, value in inner.items()]
    return found


COMMANDS = commands()


@pytest.mark.parametrize("page", PAGES)
def test_every_command_that_a_page_names_is_there_with_its_options(page):
    text = PAGES[page]
    prose = FENCE.sub("", text)
    lines = "\n".join(b.text for b in blocks_of(page)).splitlines()
    calls: list[str] = re.findall(r"`(devall [^`]+)`", prose)
    calls += [m[1] for line in lines if (m := re.match(r"[\s$-]*(devall [a-z].*)", line))]
    # As the examples of action.yml have them.
    inputs = (re.match(r"\s*command: ((?:run|test|validate) .*)", line) for line in lines)
    calls += [f"devall {found[1]}" for found in inputs if found]
    unknown = []
    for line in calls:
        words = shlex.split(line.partition(" #")[0].partition(" > ")[0])[1:]
        name = next((n for n in (" ".join(words[:2]), *words[:1]) if n in COMMANDS), "")
        options = {w.partition("=")[0].strip("[]") for w in words if w.lstrip("[").startswith("--")}
        known = COMMANDS.get(name, set()) | {"--help"}
        if not (name or words == ["--help"]) or not options <= known:
            unknown.append(line)
    assert unknown == []


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page):
    here = PROJECT / page
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", PAGES[page])):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        place = (here.parent / path).resolve() if path else here
        is_there = place.exists() and (not anchor or anchor in anchors(place.read_text("utf-8")))
        if not is_there:
            dead.append(target)
    assert dead == []


def anchors(text: str) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", FENCE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_variable_that_the_pages_name_is_one():
    pattern = r"`((?:DEVALL|LIB|SERPER|JINA|WEB|DDGS|EX)_[A-Z_]+)`"
    named = {name for text in PAGES.values() for name in re.findall(pattern, text)}
    assert len(named) >= 12
    source = "".join(
        path.read_text("utf-8")
        for folder in ("devall", "functions")
        for path in (PROJECT / folder).rglob("*.py")
    )
    assert [name for name in sorted(named) if name not in source] == []


def calls_of(page: str) -> list[str]:
    """The commands in the blocks of a page."""
    lines = [line for b in blocks_of(page) if not b.kind for line in b.text.splitlines()]
    return [line.partition(" #")[0].strip() for line in lines if line.startswith("devall ")]


@pytest.fixture
def said(capsys, workspace):
    """Runs `devall` in this process: its standard output, where the exit code is the wanted one."""

    def run(*arguments: str, code: int = 0) -> str:
        capsys.readouterr()
        ended = call(list(arguments))
        out, err = capsys.readouterr()
        assert ended == code, out + err
        return out

    return run


def test_the_commands_on_durability_do_what_they_say(workspace, said, monkeypatch):
    assert len(calls_of("docs/durability.md")) == 7
    lay_out("docs/durability.md", workspace)
    with ChatServer({"gpt-4o-mini": ["waves", "fine", "kind"]}, strict=True) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        said("run", "poem.yaml", "--task", "the sea", code=75)
        assert said("resume", "last", "--answer", "Editor=ACCEPT") == "fine\n"
        assert said("resume", "last") == said("replay", "last") == "fine\n"
        change = "nodes.Critic.config.role=Be kind."
        assert said("replay", "last", "--set", change, "--live", "Critic+") == "kind\n"


def test_the_commands_on_tools_do_what_they_say(workspace, said):
    lay_out("docs/tools.md", workspace)
    assert "bells_ring" in said("tools", "list", "flow.yaml", "--json")
    [line] = re.findall(r"`(devall tools call [^`]+)`", PAGES["docs/tools.md"])
    assert '"rung":2' in said(*shlex.split(line)[1:]).replace(" ", "")


async def test_the_agent_on_tools_is_told_what_the_page_says(workspace, monkeypatch):
    lay_out("docs/tools.md", workspace)
    ring = [
        {"name": "bells_ring", "arguments": {"times": times}, "id": f"c{place}"}
        for place, times in enumerate((2, 4, 1, 1, 1, 1))
    ]
    count = {"name": "bells_count", "arguments": {}}
    script = {"gpt-4o-mini": [{"tool_calls": [*ring, count]}, "done"]}
    async with ChatServer(script, strict=True) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await devall.run("flow.yaml", task="go")
    assert (result.status, result.answer) == ("completed", "done")
    assert any("left out" in warning for warning in result.warnings)
    first, second = server.calls["gpt-4o-mini"]
    assert [t["function"]["name"] for t in first["tools"]] == ["bells_ring", "bells_count"]
    told = [m["content"] for m in second["messages"] if m["role"] == "tool"]
    assert told[0].replace(" ", "") == '{"ok":true,"rung":2}'
    assert told[1].startswith("Error: ")
    assert "may be called 5 times" in told[5]
    assert told[6] == "1"


def test_the_index_has_every_page(project):
    links = set(re.findall(r"\]\((\w+\.md)\)", PAGES["docs/README.md"]))
    assert {p.name for p in (project / "docs").glob("*.md")} - {"README.md"} == links


def test_the_page_on_python_names_every_option_and_every_field_of_a_result():
    words = set(re.findall(r"`(\w+)`", PAGES["docs/python.md"]))
    assert {*inspect.signature(devall.run).parameters} - {"workflow"} - words == set()
    shown = {name for name in dir(devall.RunResult) if not name.startswith("_")}
    assert shown - {"outcome", "workflow", "to_json"} - words == set()


def test_the_page_on_nodes_has_every_kind_and_the_keys_of_all():
    heads = re.findall(r"^## (.+)$", PAGES["docs/nodes.md"], re.MULTILINE)
    definitions = json_schema()["$defs"]
    kinds = {d["properties"]["type"]["const"] for n, d in definitions.items() if n.endswith("Node")}
    assert {kind for head in heads for kind in head.split(", ")} == kinds
    words = set(re.findall(r"`(\w+)`", PAGES["docs/nodes.md"]))
    ignored = {"config", "dynamic", "description"}
    assert {*definitions["PassthroughNode"]["properties"]} - ignored - words == set()


def test_the_page_on_edges_has_every_key_and_condition():
    words = set(re.findall(r"`(\w+)`", PAGES["docs/edges.md"]))
    edge = json_schema()["$defs"]["Edge"]["properties"]
    assert {*edge} - {"description"} - words == set()
    kinds = {
        d["properties"]["type"].get("const")
        for n, d in json_schema()["$defs"].items()
        if n.endswith("Condition")
    }
    assert [kind for kind in kinds if f"type: {kind}" not in PAGES["docs/edges.md"]] == []


def test_the_page_on_memory_has_every_store_and_key():
    words = set(re.findall(r"\w+", PAGES["docs/memory.md"]))
    definitions = json_schema()["$defs"]
    names = [n for n in definitions if n.endswith(("Store", "StoreConfig"))]
    keys = {key for n in [*names, "MemoryAttachment"] for key in definitions[n]["properties"]}
    kinds = {
        d["properties"]["type"]["const"] for n, d in definitions.items() if n.endswith("Store")
    }
    assert keys - {"org_id", "project_id", "config"} - words == set()
    assert kinds - words == set()
