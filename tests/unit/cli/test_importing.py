from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from devall.cli.output_schemas import output_schema

GOOD = (
    "graph:\n  start: A\n  nodes:\n    - id: A\n      type: literal\n      config: {content: x}\n"
)
OLD = """\
# a poet
graph:
  start: A
  nodes:
    - id: A
      type: agent
      name: The poet
      config:
        provider: openai
        name: m
        skip_memory: true   # for Claude
        retry: {enabled: yes}
        tooling:
          - {type: mcp, config: {server: "http://user:word@127.0.0.1:9/mcp?key=abc"}}
          - {type: mcp_local, config: {command: no-such-command}}
        base_url: ${NO_SUCH_URL}
"""
SUB = """\
graph:
  start: A
  nodes:
    - id: A
      type: subgraph
      config: {type: file, config: {path: subs/inner.yaml}}
"""
INNER = "graph:\n  nodes:\n    - {id: X, type: literal, config: {content: '${WORD}'}}\n"


@pytest.fixture
def put(workspace):
    def write(name: str, text: str) -> Path:
        place = workspace / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        return place

    return write


def test_a_file_that_runs_is_said_to_and_nothing_is_written(devall, put):
    put("w.yaml", GOOD)
    done = devall("import", "chatdev", "w.yaml", "--write", code=0)
    assert done.stdout == "w.yaml: runs as it is\n"
    assert sorted(path.name for path in Path().glob("*.yaml")) == ["w.yaml"]


def test_changes_are_told_with_line_and_reason_and_written_beside(devall, put):
    put("w.yaml", OLD)
    done = devall("import", "chatdev", "w.yaml", code=0)
    assert "w.yaml: runs after 4 changes" in done.stdout
    assert "  12: `yes` is `true` now (ChatDev reads YAML 1.1" in done.stdout
    assert "  11: `skip_memory` is `x-skip_memory` now (" in done.stdout
    assert not Path("w.devall.yaml").exists()
    done = devall("import", "chatdev", "w.yaml", "--write", code=0)
    assert "  written to w.devall.yaml\n" in done.stdout
    text = Path("w.devall.yaml").read_text()
    assert "x-skip_memory: true   # for Claude" in text
    assert text.startswith("# a poet\n")
    assert Path("w.yaml").read_text() == OLD
    devall("validate", "w.devall.yaml", code=0)


def test_what_it_needs_is_told_without_secrets(devall, put):
    put("w.yaml", OLD)
    done = devall("import", "chatdev", "w.yaml", code=0)
    assert "the MCP server http://127.0.0.1:9/mcp;" in done.stdout
    assert "the command no-such-command, which is not here" in done.stdout
    assert "the variable NO_SUCH_URL" in done.stdout
    assert "word" not in done.stdout
    assert "abc" not in done.stdout


def test_an_interpreter_of_another_machine_is_needed(devall, put):
    put(
        "w.yaml",
        "graph:\n  start: A\n  nodes:\n    - id: A\n      type: python\n"
        "      config: {interpreter: .venv\\Scripts\\python.exe, timeout_seconds: 60}\n",
    )
    done = devall("import", "chatdev", "w.yaml", code=0)
    assert "the interpreter .venv\\Scripts\\python.exe, which is not here" in done.stdout


def test_what_is_left_to_decide_ends_with_1_and_quotes_the_file_as_it_is(devall, put):
    put(
        "w.yaml",
        OLD.replace("retry: {enabled: yes}", "retri: {enabled: yes}, ").replace("}, ", "}"),
    )
    done = devall("import", "chatdev", "w.yaml", code=1)
    assert "w.yaml: 1 thing to decide, after 3 changes" in done.stdout
    assert "w.yaml:12:9: error [unknown-key]" in done.stdout
    assert "did you mean `retry`?" in done.stdout
    assert "   12 |         retri: {enabled: yes}\n" in done.stdout


def test_unset_variables_unknown_functions_and_providers_are_left_to_decide(devall, put):
    put(
        "w.yaml",
        "graph:\n  start: A\n  nodes:\n    - id: A\n      type: agent\n      config:\n"
        "        provider: claude-code\n        name: ${NO_SUCH_MODEL}\n"
        "        tooling: {type: function, config: {tools: [{name: no_such_function}]}}\n",
    )
    told = json.loads(devall("import", "chatdev", "w.yaml", "--json", code=1).stdout)
    codes = [each["code"] for each in told["files"][0]["left"]]
    assert codes == ["unknown-provider", "unresolved-variable"]
    more = ("--var", "NO_SUCH_MODEL=m", "--json")
    told = json.loads(devall("import", "chatdev", "w.yaml", *more, code=1).stdout)
    codes = [each["code"] for each in told["files"][0]["left"]]
    assert codes == ["unknown-provider", "unknown-function"]


def test_secrets_of_a_file_are_not_quoted(devall, put):
    put(
        "w.yaml",
        "graph:\n  start: A\n  nodes:\n    - id: A\n      type: agent\n      config:\n"
        "        provider: openai\n        name: m\n        api_key: sk-918273645\n"
        "        rol: the key is sk-918273645\n        nam: {api_key: sk-918273645, skip_memory: 1}\n",
    )
    done = devall("import", "chatdev", "w.yaml", code=1)
    assert "rol: the key is ***" in done.stdout
    assert "918273645" not in done.stdout + done.stderr


def test_functions_are_looked_for_where_it_is_said(devall, put):
    put(
        "w.yaml",
        GOOD + "    - {id: B, type: passthrough}\n  edges: [{from: A, to: B, condition: mine}]\n",
    )
    devall("import", "chatdev", "w.yaml", code=1)
    put("own/edge/mine.py", "def mine(data: str) -> bool:\n    return True\n")
    devall("import", "chatdev", "w.yaml", "--functions-dir", "own", code=0)


def test_a_folder_is_looked_at_with_all_it_includes(devall, put):
    put("all/sub.yaml", "vars: {WORD: x}\n" + SUB)
    put("all/subs/inner.yaml", INNER)
    put("all/good.yml", GOOD)
    put("all/compose.yaml", "services: {}\n")
    put("all/.hidden/x.yaml", "graph: {}\n")
    put("all/bad.yaml", "graph: [\n")
    done = devall("import", "chatdev", "all", code=3)
    assert "all/bad.yaml: no YAML\n" in done.stdout
    assert "all/subs/inner.yaml: runs after 1 change\n" in done.stdout
    assert "4 files: 2 run as they are, 1 after changes, 1 to decide about\n" in done.stdout
    assert done.stderr == "all/compose.yaml: no workflow, left out\n"


def test_copies_include_copies(devall, put):
    put("all/sub.yaml", "vars: {WORD: x}\n" + SUB)
    put("all/subs/inner.yaml", INNER)
    done = devall("import", "chatdev", "all/sub.yaml", "--write", code=0)
    assert 'path: "subs/inner.devall.yaml"' in Path("all/sub.devall.yaml").read_text()
    assert "  7: it includes `subs/inner.devall.yaml` now" in done.stdout
    devall("validate", "all/sub.devall.yaml", code=0)
    devall("import", "chatdev", "all/sub.yaml", "--write", code=0)


def test_all_files_go_to_a_folder_as_they_stood(devall, put):
    put("all/sub.yaml", "vars: {WORD: x}\n" + SUB)
    put("all/subs/inner.yaml", INNER)
    put("all/functions/edge/mine.py", "")
    done = devall("import", "chatdev", "all", "--write", "--output", "new", code=0)
    assert Path("new/sub.yaml").read_text() == "vars: {WORD: x}\n" + SUB
    assert "its functions: --functions-dir all/functions" in done.stdout
    devall("validate", "new/sub.yaml", code=0)


def test_an_original_is_written_over_only_when_that_is_said(devall, put):
    file = put("all/w.yaml", OLD)
    done = devall("import", "chatdev", "all", "--write", "--output", "all", code=2)
    assert "is an original" in done.stderr
    assert file.read_text() == OLD
    devall("import", "chatdev", "all", "--write", "--in-place", code=0)
    assert "x-skip_memory" in file.read_text()
    assert "runs as it is" in devall("import", "chatdev", "all", code=0).stdout


def test_a_copy_that_was_edited_is_not_lost(devall, put):
    put("w.yaml", OLD)
    copy = put("w.devall.yaml", "mine: 1\n")
    done = devall("import", "chatdev", "w.yaml", "--write", code=2)
    assert "w.devall.yaml is there already" in done.stderr
    assert copy.read_text() == "mine: 1\n"
    devall("import", "chatdev", "w.yaml", "--write", "--force", code=0)
    devall("import", "chatdev", "w.yaml", "--write", code=0)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["none.yaml"], "there is no file none.yaml"),
        (["."], "holds no YAML file"),
        (["x", "--output", "new"], "add --write"),
        (["x", "--write", "--output", "new", "--in-place"], "exclude each other"),
    ],
)
def test_wrong_usage_ends_with_2(devall, arguments, words):
    assert words in devall("import", "chatdev", *arguments, code=2).stderr


def test_as_json_it_is_as_its_schema_says(devall, put):
    put("w.yaml", OLD)
    put("bad.yaml", "a: [")
    done = devall("import", "chatdev", ".", "--write", "--json", code=3)
    told = json.loads(done.stdout)
    Draft202012Validator(output_schema("import chatdev")).validate(told)
    assert [each["verdict"] for each in told["files"]] == ["unreadable", "changed"]
    assert told["files"][1]["written"] == "w.devall.yaml"


@pytest.mark.parametrize("arguments", [["import", "-h"], ["import", "chatdev", "-h"]])
def test_help_fits_into_80_columns_and_has_examples(devall, arguments):
    done = devall(*arguments, env={"COLUMNS": "80"}, code=0)
    assert "  devall import" in done.stdout.partition("Example")[2]
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_example_of_the_page_is_what_comes_out(devall, put):
    page = Path(__file__).parents[3] / "docs" / "chatdev.md"
    before, after = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
    put("w.yaml", before)
    devall("import", "chatdev", "w.yaml", "--write", code=0)
    assert Path("w.devall.yaml").read_text() == after
