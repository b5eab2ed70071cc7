"""`devall test` and `devall test add`, on recordings of real runs."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator
from pydantic import TypeAdapter

from devall.app import Attachment, run
from devall.cli.output_schemas import OUTPUTS, output_schema
from devall.testing.cases.making import make_case
from devall.testing.cases.reading import find_cases, read_cases
from devall.testing.cases.updating import update_case
from devall.testing.chat_server import ChatServer

POEM = """\
    graph:
      start: A
      nodes:
        - id: A
          type: agent
          config:
            provider: openai
            name: ${MODEL:-poet}
            role: You are a poet.
            tooling: [{type: function, config: {tools: [{name: add}]}}]
        - id: S
          type: subgraph
          config:
            type: config
            config:
              start: X
              nodes: [{id: X, type: agent, config: {provider: openai, name: critic, role: Judge.}}]
              edges: []
      edges: [{from: A, to: S}]
"""
FUNCTIONS = '''
    def add(a: int, b: int) -> int:
        """The sum."""
        return a + b
'''
CALL = {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]}
HUMAN = """\
    graph:
      start: W
      end: D
      nodes:
        - {id: W, type: agent, config: {provider: openai, name: poet, role: Write.}}
        - {id: H, type: human, config: {description: Is it good?}}
        - {id: D, type: agent, config: {provider: openai, name: critic}}
      edges: [{from: W, to: H}, {from: H, to: D}]
"""
CASE = Path("tests/workflows/poem/case.yaml")
TAPE = CASE.with_name("recording.jsonl")


def replies(answer: str = "Good.\nVery good."):
    return {"poet": [CALL, "Three\nlines."], "critic": [answer]}


def check(command: str, text: str):
    told = json.loads(text)
    Draft202012Validator(output_schema(command)).validate(told)
    TypeAdapter(OUTPUTS[command]).validate_json(text, strict=True)
    return told


@pytest.fixture
def poem(devall, write) -> Path:
    """A case that was made of a run."""
    write("functions/function_calling/mine.py", FUNCTIONS)
    write("poem.yaml", POEM)
    with ChatServer(replies(), strict=True) as server:
        devall("run", "poem.yaml", "--task", "the sea", env=server.env, code=0)
    done = devall("test", "add", "last", "poem", code=0)
    assert done.stdout == f"{CASE}\n"
    assert done.stderr == ""
    return CASE


def edit(file: Path | str, old: str, new: str) -> None:
    text = Path(file).read_text("utf-8")
    assert old in text
    Path(file).write_text(text.replace(old, new), "utf-8")


def test_a_case_of_a_run_passes_without_key_and_network(devall, poem):
    assert poem.read_text("utf-8") == (
        'workflow: "../../../poem.yaml"\ntask: the sea\nrecording: recording.jsonl\nexpect:\n'
        "  status: completed\n  answer:\n    equals: |-\n      Good.\n      Very good.\n"
        "  nodes:\n    A: 1\n    S: 1\n    S/X: 1\n"
    )
    done = devall("test", code=0)
    assert done.stdout.startswith("1 passed in ")
    assert done.stderr.startswith("ok   poem (")
    quiet = devall("test", "-q", code=0)
    assert (quiet.stdout, quiet.stderr) == ("", "")
    # What the machine sets does not matter, nor does another folder's journal.
    devall("test", env={"MODEL": "another", "BASE_URL": "http://127.0.0.1:1/v1"}, code=0)


def test_a_recording_is_one_object_a_line_in_the_order_of_paths(devall, poem, workspace):
    head, *steps = map(json.loads, TAPE.read_text("utf-8").splitlines())
    assert (head["recording"], head["status"]) == (1, "completed")
    assert [step["step"] for step in steps] == [
        "/A@1/turn:1",
        "/A@1/turn:1/tool:call_poet_1_0",
        "/A@1/turn:1/tools",
        "/A@1/turn:2",
        "/S@1/X@1/turn:1",
    ]
    assert str(workspace) not in TAPE.read_text("utf-8")


def test_an_edited_prompt_fails_with_the_recorded_request_and_a_diff(devall, poem):
    edit("poem.yaml", "You are a poet.", "You are a sober poet.")
    done = devall("test", code=7)
    assert "FAIL poem" in done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == f"poem ({CASE})"
    assert "recording: the request of /A@1/turn:1 is not the one" in lines[1]
    assert "(poem.yaml:4:7)" in lines[1]
    assert "    -    content: You are a poet." in lines
    assert "    +    content: You are a sober poet." in lines
    assert "0 passed, 1 failed in " in lines[-1]


def test_a_node_that_survives_its_failures_hides_no_request_that_was_not_recorded(devall, poem):
    edit("poem.yaml", "    - id: A\n", "    - id: A\n      on_error: continue\n")
    devall("test", code=0)
    edit("poem.yaml", "You are a poet.", "You are a sober poet.")
    assert "recording: the request of /A@1/turn:1" in devall("test", code=7).stdout


def test_a_recorded_call_that_is_not_made_any_more_is_a_failure(devall, poem):
    edit("poem.yaml", "start: A\n", "start: A\n  end: A\n")
    edit("poem.yaml", "edges: [{from: A, to: S}]", "edges: [{from: A, to: S, condition: false}]")
    done = devall("test", code=7)
    assert "recorded, and not asked for any more: /S@1/X@1/turn:1" in done.stdout
    assert "nodes.S.runs: node S ran not at all" in done.stdout


def test_update_without_live_models_says_so_and_keeps_the_recording(devall, poem):
    before = TAPE.read_bytes()
    edit("poem.yaml", "Judge.", "Judge it.")
    done = devall("test", "--update", code=7)
    assert "its requests changed" in done.stdout
    assert "API_KEY is not set" in done.stdout
    assert TAPE.read_bytes() == before


def test_update_makes_only_the_changed_calls_anew(devall, poem):
    before = TAPE.read_text("utf-8").splitlines()
    edit("poem.yaml", "Judge.", "Judge it.")
    with ChatServer({"critic": ["Bad."]}, strict=True) as server:
        done = devall("test", "--update", env=server.env, code=0)
        assert not server.unexpected
    assert "written anew: recording and expectations" in done.stderr
    after = TAPE.read_text("utf-8").splitlines()
    assert after[1:-1] == before[1:-1]
    assert '"content": "Judge it."' in after[-1]
    assert "    equals: Bad.\n" in poem.read_text("utf-8")
    devall("test", code=0)


def test_a_live_run_that_fails_is_not_recorded(devall, poem):
    before = TAPE.read_bytes(), poem.read_bytes()
    edit("poem.yaml", "Judge.", "Judge it.")
    refusal = {"critic": [{"status": 401, "error": "no"}]}
    with ChatServer(refusal, strict=True) as server:
        done = devall("test", "--update", env=server.env, code=7)
    assert "the live run is failed, so nothing is kept" in done.stdout
    assert (TAPE.read_bytes(), poem.read_bytes()) == before


def test_update_rewrites_expectations_where_the_requests_are_the_same(devall, poem):
    edit(poem, "A: 1", "A: 2  # no")
    edit(poem, "Very good.", "Very bad.")
    edit(poem, "expect:\n", "# mine\nexpect:\n  tools: [{name: subtract}]\n")
    before = TAPE.read_bytes()
    done = devall("test", "--update", code=7)
    assert "tools.0: tool subtract was not called" in done.stdout
    assert "written anew: expectations" in done.stderr
    text = poem.read_text("utf-8")
    assert "# mine" in text
    assert "A: 1" in text
    assert "Very good." in text
    assert TAPE.read_bytes() == before


def test_the_objects_of_json_are_as_their_schemas_say(devall, poem):
    told = check("test", devall("test", "--json", code=0).stdout)
    assert (told["passed"], told["failed"], told["exit_code"]) == (1, 0, 0)
    assert told["cases"][0]["model_calls"] == 3
    edit("poem.yaml", "Judge.", "Judge it.")
    told = check("test", devall("test", "--json", code=7).stdout)
    [failure] = told["cases"][0]["failures"]
    assert (failure["what"], failure["file"], failure["line"]) == ("recording", "poem.yaml", 17)
    told = check("test add", devall("test", "add", "last", "b", "--json", code=0).stdout)
    assert told["passed"] is False
    assert check("test", devall("test", "no", "--json", code=2).stdout)["exit_code"] == 2


def test_reports_say_what_the_command_says(devall, poem, workspace):
    edit(poem, "A: 1", "A: 2")
    summary = workspace / "summary.md"
    env = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    reports = ("--report", "junit=out/t.xml", "--report", "markdown=out/t.md")
    done = devall("test", *reports, env=env, code=7)
    [suite] = ET.parse("out/t.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert "wanted: 2 runs" in (failure.text or "")
    for file in (Path("out/t.md"), summary):
        assert "workflow tests: 0 of 1 passed" in file.read_text("utf-8")
    assert f"::error file={CASE},line=11,col=5,title=workflow-test::nodes.A.runs" in done.stderr


def test_a_broken_case_is_told_with_its_line_and_nothing_runs(devall, poem, write):
    write("tests/workflows/bad/case.yaml", "workflow: ../../../poem.yaml\ntsak: x\n")
    done = devall("test", "--report", "junit=t.xml", code=3)
    assert "tests/workflows/bad/case.yaml:2:1: error [unknown-key]" in done.stderr
    assert "    2 | tsak: x\n" in done.stderr
    assert "ok " not in done.stderr
    [suite] = ET.parse("t.xml").getroot()
    assert suite.get("errors") == "1"
    devall("test", "tests/workflows/poem", code=0)


def test_cases_are_chosen_by_path_and_name(devall, poem):
    devall("test", "add", "last", "group/one", code=0)
    for arguments, count in (
        ((), 2),
        (("-k", "poem"), 1),
        (("-k", "one", "-k", "po"), 2),
        (("tests/workflows/group",), 1),
        ((CASE, "-j", "1"), 1),
    ):
        assert f"{count} passed" in devall("test", *arguments, code=0).stdout
    done = devall("test", "-k", "grop", code=2)
    assert "no case has grop in its name" in done.stderr
    devall("test", "nowhere", code=2)
    devall("test", "-j", "0", code=2)
    devall("test", "--report", "sarif=x", code=2)


def test_without_cases_the_first_step_is_told(devall, workspace):
    done = devall("test", code=2)
    assert "there are no cases in tests/workflows" in done.stderr
    assert "devall test add last NAME" in done.stderr
    (workspace / "tests/workflows").mkdir(parents=True)
    devall("test", code=2)


def test_a_case_that_cannot_be_made_is_refused(devall, poem, write):
    assert "--force" in devall("test", "add", "last", "poem", code=2).stderr
    devall("test", "add", "last", "poem", "--force", code=0)
    for name in ("../up", "/abs", "a//b", ""):
        assert "cannot be a case's name" in devall("test", "add", "last", name, code=2).stderr
    assert "there is no run nope" in devall("test", "add", "nope", "x", code=2).stderr
    devall("test", "add", "last", "x", "--logs-dir", "nowhere", code=2)
    devall("test", "add", "last", "x", "--dir", "cases", code=0)
    devall("test", "cases", code=0)
    Path("poem.yaml").unlink()
    assert "is gone" in devall("test", "add", "last", "y", code=2).stderr


def test_a_case_of_an_edited_workflow_is_made_and_said_to_fail(devall, poem):
    edit("poem.yaml", "Judge.", "Judge it.")
    done = devall("test", "add", "last", "late", code=0)
    assert "warning: it does not pass with the workflow as it is now" in done.stderr
    devall("test", "-k", "late", code=7)


@pytest.fixture
def review(devall, write):
    """Makes a case of a run in which a human is asked."""
    write("h.yaml", HUMAN)

    def made(name: str, *given: str, code: int = 0) -> Path:
        with ChatServer({"poet": ["draft"], "critic": ["done"]}) as server:
            devall("run", "h.yaml", "--task", "go", *given, env=server.env, code=code)
        devall("test", "add", "last", name, code=0)
        return Path(f"tests/workflows/{name}/case.yaml")

    return made


def test_answers_stand_in_the_case_and_an_edited_one_takes_effect(devall, review):
    case = review("yes", "--answer", "H=yes it is")
    assert "answers:\n  H: yes it is\n" in case.read_text("utf-8")
    devall("test", code=0)
    edit(case, "H: yes it is", "H: [not yet]")
    done = devall("test", code=7)
    assert "the request of /D@1/turn:1 is not the one" in done.stdout
    assert "-    content: yes it is" in done.stdout
    assert "+    content: not yet" in done.stdout


def test_an_answer_given_later_is_in_the_recording(devall, review):
    with ChatServer({"poet": ["draft"], "critic": ["done"]}) as server:
        devall("run", "h.yaml", "--task", "go", env=server.env, code=75)
        devall("resume", "last", "--answer", "H=fine", env=server.env, code=0)
    devall("test", "add", "last", "later", code=0)
    assert "answers" not in Path("tests/workflows/later/case.yaml").read_text("utf-8")
    devall("test", code=0)


def test_runs_that_wait_or_fail_are_cases_too(devall, review, write):
    case = review("waits", code=75)
    assert "status: waiting" in case.read_text("utf-8")
    write("functions/function_calling/mine.py", FUNCTIONS)
    write("poem.yaml", POEM)
    refusal = {"poet": [CALL, "x"], "critic": [{"status": 401, "error": "no"}]}
    with ChatServer(refusal) as server:
        devall("run", "poem.yaml", "--task", "go", env=server.env, code=1)
    devall("test", "add", "last", "fails", code=0)
    text = Path("tests/workflows/fails/case.yaml").read_text("utf-8")
    assert "  status: failed\n  error:\n    code: model_refused\n    node: S/X\n" in text
    assert "2 passed" in devall("test", code=0).stdout


def test_what_a_run_was_started_with_is_in_its_case(devall, write):
    write("functions/function_calling/mine.py", FUNCTIONS)
    write("poem.yaml", POEM.replace("Judge.", "'Judge ${TONE} at ${PLACE}.'"))
    env = {"PLACE": "sea", "MODEL": "poet"}
    with ChatServer({"poet": [CALL, "x"], "other": ["y"]}, strict=True) as server:
        devall(
            *("run", "poem.yaml", "--task", "one\ntwo", "--var", "TONE=dry"),
            *("--model", "S/X=other", "--max-usd", "5"),
            env=server.env | env,
            code=0,
        )
    devall("test", "add", "last", "poem", code=0)
    text = CASE.read_text("utf-8")
    for line in (
        "task: |-\n  one\n  two\n",
        "vars:\n  TONE: dry\n",
        "env:\n  MODEL: poet\n  PLACE: sea\n",
        "models:\n  S/X: other\n",
        "limits:\n  max_usd: 5",
    ):
        assert line in text
    assert "1 passed" in devall("test", env={"MODEL": "another"}, code=0).stdout


PARALLEL = """\
    graph:
      start: [A, B, C]
      end: D
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: a, role: One.}}
        - {id: B, type: agent, config: {provider: openai, name: b, role: Two.}}
        - {id: C, type: agent, config: {provider: openai, name: c, role: Three.}}
        - {id: D, type: agent, config: {provider: openai, name: d, role: All.}}
      edges: [{from: A, to: D}, {from: B, to: D}, {from: C, to: D}]
"""


def test_parallel_nodes_are_recorded_alike_however_they_interleave(devall, write):
    write("par.yaml", PARALLEL)
    texts: list[list[str]] = []
    for name, delays in (("x", (0.2, 0.1, 0)), ("y", (0, 0.1, 0.2))):
        script = {
            model: [{"text": model, "delay": delay}]
            for model, delay in zip("abc", delays, strict=True)
        }
        with ChatServer(script | {"d": ["all"]}, strict=True) as server:
            devall("run", "par.yaml", "--task", "go", env=server.env, code=0)
        devall("test", "add", "last", name, code=0)
        tape = Path(f"tests/workflows/{name}/recording.jsonl").read_text("utf-8")
        texts.append(tape.splitlines()[1:])
    assert texts[0] == texts[1]
    assert "2 passed" in devall("test", code=0).stdout
    edit("par.yaml", "Two.", "Second.")
    done = devall("test", code=7)
    assert done.stdout.count("the request of /B@1/turn:1 is not the one that was recorded") == 2
    assert "/A@1" not in done.stdout


def test_update_takes_no_failure_for_right(devall, write):
    write("par.yaml", PARALLEL)
    replies = "replies: {a: x, b: x, c: x, d: {error: insufficient_quota}}\n"
    text = f"workflow: ../../../par.yaml\ntask: go\n{replies}expect:\n  status: completed\n"
    case = write("tests/workflows/one/case.yaml", f"{text}  nodes:\n    A: 2\n")
    before = case.read_bytes()
    devall("test", "--update", code=7)
    assert case.read_bytes() == before
    edit(case, "{error: insufficient_quota}", "y")
    devall("test", "--update", code=0)
    assert "    A: 1\n" in case.read_text("utf-8")


async def test_a_run_that_was_given_files_is_a_case_which_cannot_be_made_anew(monkeypatch, write):
    write("par.yaml", PARALLEL)
    files = [
        Attachment(b"a note", "text/plain", "note.txt"),
        Attachment(b"\x89PNG", "image/png", "dot.png"),
    ]
    async with ChatServer() as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        result = await run("par.yaml", task="go", attachments=files, logs_dir="logs")
    assert result.status == "completed", result.error
    case = await make_case(
        "last", "files", logs_dir=Path("logs"), folder=Path("cases"), replaces=False
    )
    case.result.check()
    edit("par.yaml", "Two.", "Second.")
    [case] = read_cases(find_cases([Path("cases")]))
    failures = (await update_case(case)).failures
    assert "the run was given files with its task" in failures[0].message


def test_the_schema_of_a_case_is_printed(devall):
    schema = json.loads(devall("schema", "--output", "test-case", code=0).stdout)
    Draft202012Validator.check_schema(schema)
    assert schema["properties"]["replies"]["description"]


def test_help_shows_both_commands(devall):
    assert "Run tests of workflows" in devall("test", "--help", code=0).stdout
    assert "devall test add last poem" in devall("test", "add", "--help", code=0).stdout
    assert "test add" in devall("--help", code=0).stdout
    assert "`devall test --help`" in devall("test", "--nonsense", code=2).stderr
