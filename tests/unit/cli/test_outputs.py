from __future__ import annotations

import json

import pytest
import typer
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from devall.cli.main import app
from devall.cli.output_schemas import OUTPUTS, output_schema
from devall.testing.chat_server import ChatServer

POEM = """
    graph:
      start: A
      end: S
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: poet}}
        - id: S
          type: subgraph
          config:
            type: config
            config:
              start: X
              nodes: [{id: X, type: agent, config: {provider: openai, name: critic}}]
              edges: []
      edges: [{from: A, to: S, condition: {type: keyword, config: {none: [never]}}}]
"""
HUMAN = """
    graph:
      start: H
      nodes: [{id: H, type: human, config: {description: Is it good?}}]
      edges: []
"""
TOOLS = """
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: m
            tooling:
              - {type: function, config: {tools: [{name: "mine:add"}]}}
              - {type: mcp_local, required: false, config: {command: no-such-command}}
      edges: []
"""
MINE = 'def add(a: int, b: int) -> int:\n    """The sum."""\n    return a + b\n'
LITERAL = "graph: {start: A, nodes: [{id: A, type: literal, config: {content: x}}], edges: []}"
WRONG = "graph: {start: B, nodes: [{id: A, type: passthrough, colour: red}], edges: []}"
WITHOUT_RESULT = {"schema", "tools serve", "mcp serve"}
"""Commands that serve, or whose result is JSON anyway."""


def commands(group: typer.Typer = app, prefix: str = ""):
    """Every command by its full name, and its options."""
    found = typer.main.get_command(group)
    stack = [("", found)]
    while stack:
        name, each = stack.pop()
        inner = getattr(each, "commands", None)
        if inner is None:
            yield name, {option for p in each.params for option in p.opts}
        else:
            stack += [(f"{name} {key}".strip(), value) for key, value in inner.items()]


COMMANDS = dict(commands())


def check(command: str, text: str):
    """The object, if it is on one line and exactly what the schema and its model say."""
    assert text.count("\n") == 1
    told = json.loads(text)
    Draft202012Validator(output_schema(command)).validate(told)
    TypeAdapter(OUTPUTS[command]).validate_json(text, strict=True)
    return told


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_with_a_result_has_json_and_a_schema_of_it(command):
    if command in WITHOUT_RESULT:
        return
    assert "--json" in COMMANDS[command]
    assert command in OUTPUTS


def test_every_schema_is_of_a_command():
    assert set(OUTPUTS) <= set(COMMANDS)


@pytest.mark.parametrize("command", sorted(OUTPUTS))
def test_a_schema_is_printed(devall, command):
    schema = json.loads(devall("schema", "--output", command, code=0).stdout)
    Draft202012Validator.check_schema(schema)
    assert schema == output_schema(command)
    assert schema["title"] == f"devall {command} --json"


def test_a_schema_lets_keys_be_added_and_none_be_left_out(devall, write):
    file = write("w.yaml", HUMAN)
    told = json.loads(devall("run", file, "--json", code=75).stdout)
    checker = Draft202012Validator(output_schema("run"))
    checker.validate(told | {"later": 1})
    del told["status"]
    assert not checker.is_valid(told)


def test_an_unknown_command_is_wrong_usage(devall):
    done = devall("schema", "--output", "runn", code=2)
    assert "there is run, resume, replay, validate" in done.stderr
    assert "graph" in json.loads(devall("schema", code=0).stdout)["properties"]


@pytest.mark.parametrize("status", [200, 401])
def test_a_run_is_as_its_schema_says(devall, write, status):
    file = write("poem.yaml", POEM)
    critic = "fine" if status == 200 else {"status": status, "error": "no"}
    with ChatServer({"poet": ["ok"], "critic": [critic]}) as server:
        done = devall("run", file, "--task", "go", "--json", env=server.env)
    told = check("run", done.stdout)
    assert set(told["nodes"]) == {"A", "S", "S/X"}
    assert told["exit_code"] == done.returncode == (0 if status == 200 else 1)


def test_a_run_that_waits_or_never_began_is_as_its_schema_says(devall, write):
    told = check("run", devall("run", write("h.yaml", HUMAN), "--json", code=75).stdout)
    assert told["waiting"] == [{"path": "/H@1", "question": "Is it good?"}]
    told = check("run", devall("run", write("w.yaml", WRONG), "--json", code=3).stdout)
    assert told["error"]["diagnostics"][0]["code"]
    check("run", devall("run", "none.yaml", "--json", code=2).stdout)
    check("run", devall("run", "--json", "--nonsense", code=2).stdout)


def test_findings_are_as_their_schema_says(devall, write):
    files = [write("a.yaml", WRONG), write("h.yaml", HUMAN), "none.yaml"]
    told = check("validate", devall("validate", *files, "--json", code=3).stdout)
    assert [each["valid"] for each in told["files"]] == [False, True, False]
    bad = devall("validate", *files, "--json", "--var", "nonsense", code=2)
    assert check("validate", bad.stdout)["error"]["code"] == "usage"


def test_a_graph_is_as_its_schema_says(devall, write):
    file = write("poem.yaml", POEM)
    told = check("graph", devall("graph", file, "--json", code=0).stdout)
    assert told["drawing"] == devall("graph", file).stdout
    assert [(each["node"], each["type"], each["line"]) for each in told["nodes"]] == [
        ("A", "agent", 6),
        ("S", "subgraph", 7),
        ("S/X", "agent", 13),
    ]
    assert [(each["start"], each["end"]) for each in told["nodes"][:2]] == [
        (True, False),
        (False, True),
    ]
    [edge] = told["edges"]
    assert (edge["from"], edge["to"], edge["conditional"]) == ("A", "S", True)
    assert check("graph", devall("graph", "none.yaml", "--json", code=2).stdout)["exit_code"] == 2


def test_tools_are_as_their_schemas_say(devall, write):
    write("functions/function_calling/mine.py", MINE)
    file = write("w.yaml", TOOLS)
    for more in ((), ("--connect",)):
        told = check("tools list", devall("tools", "list", file, "--json", *more, code=0).stdout)
        assert told["nodes"][0]["sources"][0]["tools"][0]["name"] == "add"
    call = ("tools", "call", file, "add", "--json", "--args")
    told = check("tools call", devall(*call, '{"a": 1, "b": 2}', code=0).stdout)
    assert told["content"] == [{"type": "text", "text": "3"}]
    check("tools call", devall(*call, "{}").stdout)
    check("tools call", devall(*call, "[]", code=2).stdout)


def test_runs_that_were_kept_are_as_their_schemas_say(devall, write):
    devall("run", write("w.yaml", LITERAL), "--run-id", "r", code=0)
    devall("run", write("h.yaml", HUMAN), "--run-id", "h", code=75)
    told = check("runs list", devall("runs", "list", "--json", code=0).stdout)
    assert {each["run_id"]: each["state"] for each in told["runs"]} == {
        "r": "completed",
        "h": "waiting",
    }
    for run in ("r", "h"):
        check("runs show", devall("runs", "show", run, "--json", code=0).stdout)
    check("resume", devall("resume", "h", "--answer", "H=yes", "--json", code=0).stdout)
    lines = devall("runs", "tail", "h", "--json", code=0).stdout.splitlines(keepends=True)
    assert [check("runs tail", line)["event"]["event"] for line in lines][-1] == "run_finished"
    check("runs cancel", devall("runs", "cancel", "r", "--json", code=0).stdout)
    told = check("runs prune", devall("runs", "prune", "--keep", "1", "--yes", "--json").stdout)
    assert [(each["run_id"], each["deleted"]) for each in told["runs"]] == [("r", True)]


def test_what_looks_into_a_run_is_as_its_schemas_say(devall, write):
    write("functions/function_calling/mine.py", MINE)
    file = write("t.yaml", TOOLS)
    call = {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}
    with ChatServer({"m": [call, "3", "no"]}) as server:
        for run in ("a", "b"):
            devall("run", file, "--task", "go", "--run-id", run, env=server.env, code=0)
        check("replay", devall("replay", "a", "--json", env=server.env, code=0).stdout)
    check("show", devall("show", "a", "--json", code=0).stdout)
    told = check("show", devall("show", "a", "A", "--json", code=0).stdout)
    assert told["visits"][0]["tool_calls"][0]["result"] == "3"
    check("why", devall("why", "a", "A", "--json", code=0).stdout)
    told = check("diff", devall("diff", "a", "b", "--json", "--all", code=1).stdout)
    assert told["differences"]
    check("show", devall("show", "none", "--json", code=2).stdout)


def test_models_are_as_their_schemas_say(devall, workspace):
    env = {"DEVALL_CACHE_DIR": str(workspace)}
    told = check("models list", devall("models", "list", "--json", env=env, code=0).stdout)
    assert [(each["name"], each["path"]) for each in told["models"]] == [("smollm2", None)]
    check("models pull", devall("models", "pull", "none", "--json", env=env).stdout)


def test_an_output_of_every_kind_forbids_what_it_does_not_name():
    for command in OUTPUTS:
        for definition in TypeAdapter(OUTPUTS[command]).json_schema().get("$defs", {}).values():
            if "properties" in definition:
                assert definition["additionalProperties"] is False
