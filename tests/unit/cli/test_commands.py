from __future__ import annotations

import json
import subprocess
import sys

import pytest

GOOD = """
    graph:
      start: A
      nodes: [{id: A, type: passthrough}]
      edges: []
"""
WRONG = """
    graph:
      start: B
      nodes: [{id: A, type: passthrough, colour: red}]
      edges: []
"""
DOUBTFUL = """
    graph:
      start: A
      nodes: [{id: A, type: passthrough, dynamic: {type: map}}]
      edges: []
"""


def test_a_valid_file_is_said_to_be_so(devall, write):
    done = devall("validate", write("w.yaml", GOOD), code=0)
    assert (done.stdout, done.stderr) == ("w.yaml: ok\n", "")


def test_all_mistakes_of_all_files_are_found(devall, write):
    files = [write("a.yaml", WRONG), write("b.yaml", GOOD), write("c.yaml", WRONG)]
    done = devall("validate", *files, code=3)
    for name in ("a.yaml:4:", "c.yaml:4:"):
        assert name in done.stdout
    assert "^" in done.stdout
    assert "b.yaml: ok" in done.stdout
    assert "3 files, 2 of them wrong" in done.stderr


def test_warnings_are_errors_only_when_strict(devall, write):
    file = write("w.yaml", DOUBTFUL)
    done = devall("validate", file, code=0)
    assert "warning [" in done.stdout
    devall("validate", file, "--strict", code=3)


def test_a_missing_file_ends_with_2_and_the_others_are_looked_at(devall, write):
    done = devall("validate", "none.yaml", write("w.yaml", GOOD), code=2)
    assert "there is no file none.yaml" in done.stderr
    assert "w.yaml: ok" in done.stdout
    devall("validate", "none.yaml", write("w.yaml", WRONG), code=3)


def test_findings_as_json(devall, write):
    files = [write("a.yaml", WRONG), "none.yaml", write("b.yaml", GOOD)]
    found = json.loads(devall("validate", *files, "--format", "json", code=3).stdout)
    wrong, missing, good = found["files"]
    assert found["exit_code"] == 3
    assert (wrong["file"], wrong["valid"], wrong["error"]) == ("a.yaml", False, None)
    assert {"file", "line", "column", "severity", "code", "message", "hint"} == set(
        wrong["diagnostics"][0]
    )
    assert missing["error"]["message"] == "there is no file none.yaml"
    assert (good["valid"], good["diagnostics"]) == (True, [])


def test_findings_as_annotations(devall, write):
    files = [write("a.yaml", WRONG), "none.yaml", write("b.yaml", GOOD)]
    done = devall("validate", *files, "--format", "github", code=3)
    lines = done.stdout.splitlines()
    assert lines[0].startswith("::error file=a.yaml,line=")
    assert any(line.startswith("::error file=none.yaml,") for line in lines)
    assert all(line.startswith("::") for line in lines)


def test_variables_are_known_to_validation_and_drawing(devall, write):
    text = GOOD.replace("passthrough", "literal, config: {content: '${WORD}'}")
    file = write("w.yaml", text)
    write("v.yaml", "WORD: x\n")
    write("e.env", "WORD=x\n")
    for command in ("validate", "graph"):
        devall(command, file, code=3)
        devall(command, file, "--var", "WORD=x", code=0)
        devall(command, file, "--vars-file", "v.yaml", code=0)
        devall(command, file, "--env-file", "e.env", code=0)


def test_a_graph_is_drawn_in_either_language(devall, write):
    file = write("w.yaml", GOOD)
    assert devall("graph", file, code=0).stdout.startswith("flowchart TD\n")
    assert devall("graph", file, "--format", "dot", code=0).stdout.startswith("digraph ")


def test_a_graph_of_a_wrong_file_is_not_drawn(devall, write):
    done = devall("graph", write("w.yaml", WRONG), code=3)
    assert done.stdout == ""
    assert "w.yaml:4:" in done.stderr
    assert "there is no file" in devall("graph", "none.yaml", code=2).stderr


@pytest.mark.parametrize("command", ["validate", "graph"])
def test_an_unknown_format_names_the_known_ones(devall, write, command):
    done = devall(command, write("w.yaml", GOOD), "--format", "sgv", code=2)
    assert "--format 'sgv' is not known" in done.stderr
    assert "known: " in done.stderr


def test_the_schema_is_json(devall):
    found = json.loads(devall("schema", code=0).stdout)
    assert found["$schema"].startswith("https://json-schema.org/")


def test_models_that_can_be_pulled_are_shown(devall, tmp_path):
    done = devall("models", "list", env={"DEVALL_CACHE_DIR": str(tmp_path)}, code=0)
    assert "smollm2" in done.stdout
    assert "devall models pull smollm2" in done.stdout


def test_an_unknown_model_names_the_known_ones(devall, tmp_path):
    done = devall("models", "pull", "gpt", env={"DEVALL_CACHE_DIR": str(tmp_path)}, code=4)
    assert "unknown model gpt" in done.stderr
    assert "smollm2" in done.stderr


def test_the_version_alone_is_on_standard_output(devall):
    assert devall("--version", code=0).stdout.startswith("devall 0.")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        *([name, "-h"] for name in ("run", "validate", "graph", "schema", "models")),
        *([name, "-h"] for name in ("show", "why", "diff", "runs")),
        *(["runs", name, "-h"] for name in ("list", "show", "tail", "cancel", "prune")),
    ],
)
def test_help_has_an_example_and_fits_into_80_columns(devall, arguments):
    done = devall(*arguments, env={"COLUMNS": "80"}, code=0)
    assert "  devall " in done.stdout.partition("Example")[2]
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "missing command"),
        (["bogus"], "no such command 'bogus'"),
        (["run"], "missing argument 'FILE'"),
        (["validate", "--bogus", "x"], "no such option: --bogus"),
        (["models", "bogus"], "no such command 'bogus'"),
        (["run", "x.yaml", "--task"], "option '--task' requires an argument"),
    ],
)
def test_a_wrong_command_line_is_one_error_and_a_hint(devall, arguments, words):
    done = devall(*arguments, code=2)
    assert done.stdout == ""
    assert done.stderr.startswith(f"error [usage]: {words}")
    assert "--help` shows what there is" in done.stderr


def test_a_wrong_option_with_json_is_an_object_too(devall):
    done = devall("run", "w.yaml", "--bogus", "--json", code=2)
    assert json.loads(done.stdout)["workflow"] == "w.yaml"


def test_what_only_looks_at_a_file_imports_nothing_that_runs_it(write, workspace):
    file = write("w.yaml", GOOD)
    code = (
        "import sys; from devall.cli.main import call\n"
        f"codes = [call(['validate', {str(file)!r}]), call(['graph', {str(file)!r}]),"
        " call(['--help'])]\n"
        "heavy = {'openai', 'fastmcp', 'mcp', 'rich', 'structlog', 'asyncio', 'devall.app'}\n"
        "print(codes, sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=workspace, capture_output=True, text=True, check=True
    )
    assert done.stderr == "[0, 0, 0] []\n"
