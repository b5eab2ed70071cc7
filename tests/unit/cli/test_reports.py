from __future__ import annotations

import json
import xml.etree.ElementTree as ET

import pytest

from devall.testing.chat_server import ChatServer

KEY = "sk-sentinel-0123456789"
POEM = """
    graph:
      start: A
      end: B
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: poet}}
        - id: B
          type: agent
          config: {provider: openai, name: critic}
        - {id: C, type: passthrough}
      edges:
        - {from: A, to: B}
        - {from: B, to: C, condition: {type: keyword, config: {any: [never]}}}
"""
INNER = """
    graph:
      start: X
      nodes:
        - {id: X, type: agent, config: {provider: openai, name: critic}}
      edges: []
"""
OUTER = """
    graph:
      start: S
      nodes:
        - id: S
          type: subgraph
          config: {type: file, config: {path: inner.yaml}}
      edges: []
"""
HUMAN = """
    graph:
      start: H
      nodes: [{id: H, type: human, config: {description: Is it good?}}]
      edges: []
"""
LITERAL = """
    graph:
      start: A
      nodes: [{id: A, type: literal, config: {content: hello}}]
      edges: []
"""
SLOW = """
    graph:
      start: A
      nodes: [{id: A, type: python, timeout: 0.2}]
      edges: []
"""
SLOW_IN_ALL = """
    graph:
      start: A
      limits: {max_seconds: 0.3}
      nodes: [{id: A, type: python}, {id: B, type: passthrough}]
      edges: [{from: A, to: B}]
"""
ACTIONS = {"GITHUB_ACTIONS": "true"}
BOTH = ("--report", "junit=out/deep/j.xml", "--report", "markdown=out/r.md")


def cases(place):
    """Name of each case to what is in it, a tag or nothing."""
    found = ET.fromstring(place.read_text("utf-8")).findall("testsuite/testcase")
    return {case.attrib["name"]: case[0].tag if len(case) else "" for case in found}


def properties(place):
    found = ET.fromstring(place.read_text("utf-8")).findall("testsuite/properties/property")
    return {each.attrib["name"]: each.attrib["value"] for each in found}


def test_a_run_that_completed_is_reported(devall, write, workspace):
    file = write("poem.yaml", POEM)
    with ChatServer({"poet": ["a | poem"], "critic": ["a `fine` poem"]}) as server:
        done = devall("run", file, "--task", "go", "--json", *BOTH, env=server.env, code=0)
    told = json.loads(done.stdout)
    assert cases(workspace / "out/deep/j.xml") == {"A": "", "B": "", "C": "skipped"}
    known = properties(workspace / "out/deep/j.xml")
    assert known["run_id"] == told["run_id"]
    assert known["input_tokens"] == str(told["usage"]["input_tokens"])
    text = (workspace / "out/r.md").read_text("utf-8")
    assert "## poem.yaml: completed" in text
    assert "a `fine` poem" in text
    assert "| A | completed | 1 |" in text


def test_a_run_that_failed_is_reported_with_the_place_of_its_node(devall, write, workspace):
    file = write("poem.yaml", POEM)
    with ChatServer({"poet": ["ok"], "critic": [{"status": 401, "error": "no"}]}) as server:
        done = devall("run", file, "--task", "go", *BOTH, env=server.env | ACTIONS, code=1)
    xml = (workspace / "out/deep/j.xml").read_text("utf-8")
    assert cases(workspace / "out/deep/j.xml") == {"A": "", "B": "failure", "C": "skipped"}
    assert "place: poem.yaml:7:" in xml
    assert 'type="model_refused"' in xml
    assert "poem.yaml:7:" in (workspace / "out/r.md").read_text("utf-8")
    assert "::error file=poem.yaml,line=7,col=" in done.stderr
    assert "::" not in done.stdout


def test_a_node_of_another_file_is_shown_in_that_file(devall, write, workspace):
    write("inner.yaml", INNER)
    file = write("outer.yaml", OUTER)
    env = {"GITHUB_WORKSPACE": str(workspace.parent)} | ACTIONS
    with ChatServer({"critic": [{"status": 401, "error": "no"}]}) as server:
        done = devall("run", file, "--task", "go", *BOTH, env=server.env | env, code=1)
    [line] = [each for each in done.stderr.splitlines() if each.startswith("::")]
    assert line.startswith(f"::error file={workspace.name}/inner.yaml,line=5,col=")
    assert cases(workspace / "out/deep/j.xml") == {"S": "failure", "S/X": "failure"}


@pytest.mark.parametrize(
    ("text", "code", "status", "found"),
    [
        (HUMAN, 75, "waiting", {"H": "error"}),
        (SLOW, 6, "limit_reached", {"A": "failure"}),
        (SLOW_IN_ALL, 6, "limit_reached", {"A": "skipped", "B": "skipped", "(run)": "error"}),
        (
            "graph: {start: B, nodes: [{id: A, type: passthrough}], edges: []}",
            3,
            "failed",
            {"(run)": "error"},
        ),
    ],
    ids=["waits", "limited", "limited in all", "invalid"],
)
def test_other_ends_are_reported_too(devall, write, workspace, text, code, status, found):
    file = write("w.yaml", text)
    devall("run", file, "--task", "while True: pass", *BOTH, code=code)
    assert cases(workspace / "out/deep/j.xml") == found
    known = properties(workspace / "out/deep/j.xml")
    assert (known["status"], known["exit_code"]) == (status, str(code))
    assert "w.yaml" in (workspace / "out/r.md").read_text("utf-8")


def test_a_missing_key_is_reported_with_what_would_be_right(devall, write, workspace):
    devall("run", write("poem.yaml", POEM), "--task", "go", *BOTH, code=4)
    assert cases(workspace / "out/deep/j.xml") == {"(run)": "error"}
    assert "hint" in (workspace / "out/r.md").read_text("utf-8")


def test_a_wrong_file_is_annotated_line_by_line(devall, write):
    file = write(
        "w.yaml", "graph: {start: A, nodes: [{id: A, type: passthrough, colour: x}], edges: []}"
    )
    done = devall("run", file, env=ACTIONS, code=3)
    assert "::error file=w.yaml,line=1,col=" in done.stderr
    assert "title=unknown-key::" in done.stderr


def test_no_secret_is_in_a_report(devall, write, workspace):
    file = write("poem.yaml", POEM)
    env = ACTIONS | {"API_KEY": KEY, "GITHUB_STEP_SUMMARY": str(workspace / "sum.md")}
    script = {"poet": [f"echo {KEY}"], "critic": [{"status": 401, "text": f"bad key {KEY}"}]}
    with ChatServer(script) as server:
        done = devall("run", file, "--task", KEY, *BOTH, env=server.env | env, code=1)
    with ChatServer({"poet": ["ok"], "critic": [f"it is {KEY}"]}) as server:
        again = devall("run", file, "--task", KEY, "--report", "junit=2.xml", env=server.env | env)
    files = ("out/deep/j.xml", "out/r.md", "sum.md", "2.xml")
    written = "".join((workspace / name).read_text("utf-8") for name in files)
    assert KEY not in written + done.stderr + again.stderr
    assert "it is ***" in written


def test_what_log_output_keeps_out_of_logs_is_in_no_report(devall, write, workspace):
    file = write("w.yaml", LITERAL.replace("type: literal", "type: literal, log_output: false"))
    devall("run", file, *BOTH, code=0)
    for name in ("out/deep/j.xml", "out/r.md"):
        text = (workspace / name).read_text("utf-8")
        assert "hello" not in text
        assert "log_output" in text


def test_the_step_summary_is_added_to_without_being_asked_for(devall, write, workspace):
    file = write("w.yaml", LITERAL)
    (workspace / "sum.md").write_text("# Mine\n")
    env = {"GITHUB_STEP_SUMMARY": str(workspace / "sum.md")}
    assert devall("run", file, env=env, code=0).stdout == "hello\n"
    text = (workspace / "sum.md").read_text("utf-8")
    assert text.startswith("# Mine\n## w.yaml: completed")
    full = devall("run", file, env={"GITHUB_STEP_SUMMARY": "/dev/full"}, code=0)
    assert "GITHUB_STEP_SUMMARY" in full.stderr


@pytest.mark.parametrize("kind", ["html=x", "junit", "junit=", "=x", "sarif=x", "junit=-"])
def test_an_unknown_report_is_wrong_usage_before_anything_runs(devall, write, workspace, kind):
    done = devall("run", write("w.yaml", LITERAL), "--report", kind, code=2)
    assert "--report" in done.stderr
    assert not (workspace / "logs").exists()
    if not kind.startswith("junit"):
        assert "junit, markdown" in done.stderr


def test_two_reports_in_one_file_are_wrong_usage(devall, write):
    twice = ("--report", "junit=out/x", "--report", "markdown=./out/x")
    assert "one file" in devall("run", write("w.yaml", LITERAL), *twice, code=2).stderr


def test_what_a_server_says_is_no_command_to_github(devall, write):
    file = write("poem.yaml", POEM)
    evil = "no\n \x1b[1m::set-output name=x::y\n##[add-mask]a :: b"
    script = {"poet": ["fine :: text"], "critic": [{"status": 401, "text": evil}]}
    with ChatServer(script) as server:
        done = devall("run", file, "--task", "go", "--debug", env=server.env | ACTIONS, code=1)
        plain = devall("run", file, "--task", "go", env=server.env)
    commands = [line for line in done.stderr.splitlines() if line.lstrip().startswith("::")]
    assert [line.partition(" ")[0] for line in commands] == ["::error"]
    assert "##[" not in done.stderr.replace(commands[0], "")
    assert "fine :: text" in done.stderr
    assert "\\" not in plain.stderr


def test_a_report_that_cannot_be_written_is_said_and_makes_a_good_run_no_success(
    devall, write, workspace
):
    write("file", "")
    lost = ("--report", "junit=file/j.xml", "--report", "markdown=r.md")
    done = devall("run", write("w.yaml", LITERAL), "--json", *lost, code=4)
    told = json.loads(done.stdout)
    assert (told["status"], told["exit_code"], told["answer"]) == ("completed", 4, "hello")
    assert "junit=file/j.xml not written" in told["warnings"][-1]
    assert "error [report]: report junit=file/j.xml not written" in done.stderr
    assert (workspace / "r.md").exists()
    waiting = devall("run", write("h.yaml", HUMAN), *lost, code=75)
    assert "not written" in waiting.stderr
    devall("run", "none.yaml", *lost, code=2)


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


def test_findings_of_validate_as_sarif(devall, write, workspace):
    files = [write("sub/a.yaml", WRONG), write("b.yaml", DOUBTFUL), "none.yaml"]
    report = ("--report", "sarif=out/f.sarif")
    plain = devall("validate", *files, code=3)
    done = devall("validate", *files, *report, code=3)
    assert (done.stdout, done.stderr) == (plain.stdout, plain.stderr)
    [run] = json.loads((workspace / "out/f.sarif").read_text("utf-8"))["runs"]
    found = {
        (
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
            result["ruleId"],
            result["level"],
        )
        for result in run["results"]
    }
    assert ("sub/a.yaml", "unknown-key", "error") in found
    assert ("b.yaml", "misplaced-dynamic", "warning") in found
    assert ("none.yaml", "usage", "error") in found
    assert run["invocations"] == [{"executionSuccessful": True, "exitCode": 3}]


def test_a_report_of_validate_that_cannot_be_written_is_no_success(devall, write):
    good = write("w.yaml", LITERAL)
    done = devall("validate", good, "--report", "sarif=/dev/full/x", code=4)
    assert "not written" in done.stderr
    devall("validate", write("a.yaml", WRONG), "--report", "sarif=/dev/full/x", code=3)
    assert "there is sarif" in devall("validate", good, "--report", "junit=x", code=2).stderr


@pytest.mark.parametrize("form", ["text", "json"])
def test_validate_annotates_on_github_beside_its_result(devall, write, form):
    files = [write("a.yaml", WRONG), write("b.yaml", DOUBTFUL)]
    plain = devall("validate", *files, "--format", form, code=3)
    done = devall("validate", *files, "--format", form, env=ACTIONS, code=3)
    assert done.stdout == plain.stdout
    assert "::error file=a.yaml,line=" in done.stderr
    assert "::warning file=b.yaml,line=" in done.stderr
    once = devall("validate", *files, "--format", "github", env=ACTIONS, code=3)
    assert "::" not in once.stderr


def test_validate_has_json_as_the_other_commands(devall, write):
    file = write("a.yaml", WRONG)
    assert (
        devall("validate", file, "--json").stdout
        == devall("validate", file, "--format", "json").stdout
    )
