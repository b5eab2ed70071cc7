from __future__ import annotations

import json
import stat

import pytest

from devall.testing.chat_server import ChatServer

AGENTS = """
    graph:
      start: A
      end: B
      initial_instruction: Two numbers, please.
      nodes:
        - {id: A, type: agent, config: {provider: openai, name: poet, role: "You are a poet."}}
        - {id: B, type: agent, config: {provider: openai, name: critic}}
      edges: [{from: A, to: B}]
"""
LITERALS = """
    graph:
      start: A
      nodes:
        - {id: A, type: literal, config: {content: "${WORD:-hello}"}}
        - {id: B, type: passthrough}
      edges: [{from: A, to: B}]
"""
HUMAN = """
    graph:
      start: A
      end: Z
      nodes:
        - {id: A, type: literal, config: {content: the draft}}
        - {id: reviewer, type: human, config: {description: Is it good?}}
        - {id: Z, type: passthrough}
      edges: [{from: A, to: reviewer}, {from: reviewer, to: Z}]
"""
HUMAN_IN_SUBGRAPH = """
    graph:
      start: S
      nodes:
        - id: S
          type: subgraph
          config:
            type: config
            config:
              start: ask me
              nodes: [{id: ask me, type: human, config: {description: "What now?"}}]
              edges: []
      edges: []
"""


@pytest.fixture
def poem(write):
    return write("poem.yaml", AGENTS)


def test_plain_lines_hold_no_control_characters(devall, poem):
    with ChatServer({"poet": ["\x1b[31mred\x07 \r\n words"], "critic": ["ok"]}) as server:
        done = devall("run", poem, "--task", "x", env=server.env, code=0)
    assert "red words" in done.stderr
    assert all(character.isprintable() or character == "\n" for character in done.stderr)


def test_json_is_one_object_with_everything(devall, poem, workspace):
    with ChatServer({"poet": ["a poem"], "critic": ["fine"]}) as server:
        done = devall(
            "run", poem, "--task", "x", "--run-id", "r1", "--json", env=server.env, code=0
        )
    found = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert found.pop("seconds") > 0
    usage = found.pop("usage")
    assert (usage["model_calls"], usage["usd"], usage["unpriced_calls"]) == (2, None, 2)
    assert {name: u["model_calls"] for name, u in found.pop("usage_by_node").items()} == {
        "A": 1,
        "B": 1,
    }
    assert list(found.pop("usage_by_model")) == ["poet", "critic"]
    assert found.pop("warnings") == []
    assert found == {
        "run_id": "r1",
        "workflow": "poem.yaml",
        "status": "completed",
        "exit_code": 0,
        "answer": "fine",
        "answer_node": "B",
        "nodes": {
            "A": {"runs": 1, "status": "completed"},
            "B": {"runs": 1, "status": "completed"},
        },
        "error": None,
        "waiting": [],
        "logs_dir": "logs/r1",
    }


def test_quiet_says_nothing_when_all_is_well(devall, write):
    done = devall("run", write("w.yaml", LITERALS), "--quiet", code=0)
    assert (done.stdout, done.stderr) == ("hello\n", "")


def test_a_runs_files_are_private_and_where_they_were_wanted(devall, write, workspace):
    file = write("w.yaml", LITERALS)
    devall("run", file, "--run-id", "a", code=0)
    devall("run", file, "--run-id", "b", "--logs-dir", "elsewhere", code=0)
    devall("run", file, "--run-id", "c", env={"DEVALL_LOGS_DIR": "there"}, code=0)
    for folder in (workspace / "logs/a", workspace / "elsewhere/b", workspace / "there/c"):
        assert {"events.jsonl", "run.log"} <= {place.name for place in folder.iterdir()}
        for place in (folder, *folder.rglob("*")):
            assert stat.S_IMODE(place.stat().st_mode) == (0o700 if place.is_dir() else 0o600)


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["--task", "the task"], ""),
        (["--task-file", "task.txt"], ""),
        (["-"], "the task\n"),
        (["--task-file", "-"], "the task\n"),
    ],
)
def test_the_task_comes_from_an_option_a_file_or_standard_input(
    devall, poem, workspace, arguments, stdin
):
    (workspace / "task.txt").write_text("the task\n")
    with ChatServer() as server:
        devall("run", poem, *arguments, env=server.env, stdin=stdin, code=0)
        assert server.calls["poet"][0]["messages"][-1]["content"] == "the task"


def test_a_workflow_that_makes_nothing_of_a_task_needs_none(devall, write):
    assert devall("run", write("w.yaml", LITERALS), code=0).stdout == "hello\n"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (["--var", "WORD=over=5"], "over=5"),
        (["--vars-file", "vars.yaml"], "from yaml"),
        (["--vars-file", "vars.json"], "from json"),
        (["--vars-file", "vars.yaml", "--var", "WORD=stands"], "stands"),
        (["--env-file", "other.env"], "from env file"),
    ],
)
def test_variables_come_from_options_and_files(devall, write, arguments, answer):
    write("vars.yaml", "WORD: from yaml\n")
    write("vars.json", '{"WORD": "from json"}')
    write("other.env", "WORD=from env file\n")
    assert devall("run", write("w.yaml", LITERALS), *arguments, code=0).stdout == f"{answer}\n"


def test_models_are_chosen_by_option_for_all_or_for_one(devall, poem):
    with ChatServer({"mini": ["small"], "big": ["large"]}) as server:
        done = devall(
            "run",
            poem,
            "--task",
            "x",
            "--model",
            "mini",
            "--model",
            "B=big",
            env=server.env,
            code=0,
        )
        assert sorted(server.calls) == ["big", "mini"]
    assert done.stdout == "large\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--answer", "A=x"], "there is no human node 'A'"),
        (["--model", "C=x"], "there is no agent 'C'"),
        (["--var", "WORD"], "is no assignment"),
        (["--vars-file", "none"], "--vars-file none: no such file"),
        (["--env-file", "none"], "--env-file none"),
        (["--functions-dir", "none"], "none"),
        (["--run-id", "../up"], "../up"),
        (["--task", "a", "--task-file", "b"], "--task and --task-file exclude each other"),
        (["more"], "unexpected argument 'more'"),
        (["--bogus"], "no such option: --bogus"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(devall, poem, arguments, words):
    env = {"API_KEY": "k" * 8, "BASE_URL": "http://127.0.0.1:1"}
    arguments = (
        arguments if "--task" in arguments or "more" in arguments else [*arguments, "--task", "x"]
    )
    done = devall("run", poem, *arguments, "--json", env=env, code=2)
    found = json.loads(done.stdout)
    assert (found["status"], found["exit_code"], found["error"]["code"]) == ("failed", 2, "usage")
    assert words in found["error"]["message"]
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_a_run_id_is_used_once(devall, write):
    file = write("w.yaml", LITERALS)
    devall("run", file, "--run-id", "r", code=0)
    assert "there is a run r" in devall("run", file, "--run-id", "r", code=2).stderr


@pytest.mark.parametrize(
    ("name", "content", "code", "words"),
    [
        ("missing.yaml", None, 2, "there is no file missing.yaml"),
        ("folder", "folder", 2, "is a directory"),
        ("binary.yaml", b"\x00\x01\x02", 3, "binary"),
        ("broken.yaml", b"graph: [", 3, "broken.yaml:1"),
        ("empty.yaml", b"", 3, "empty.yaml"),
        ("nodes.yaml", b"graph: {start: A, nodes: [], edges: []}", 3, "nodes.yaml:1"),
    ],
)
def test_a_bad_file_is_said_so_without_a_traceback(devall, workspace, name, content, code, words):
    if content == "folder":
        (workspace / name).mkdir()
    elif content is not None:
        (workspace / name).write_bytes(content)
    done = devall("run", name, "--json", code=code)
    found = json.loads(done.stdout)
    assert (found["exit_code"], found["run_id"], found["logs_dir"]) == (code, None, None)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not (workspace / "logs").exists()


def test_every_mistake_of_a_file_is_shown_with_its_line_and_a_caret(devall, write):
    file = write(
        "w.yaml",
        """
        graph:
          start: A
          nodes:
            - {id: A, type: litteral, config: {content: x}}
            - {id: B, type: passthrough, colour: red}
          edges: [{from: A, to: B}]
        """,
    )
    done = devall("run", file, "--json", code=3)
    assert "w.yaml:5:" in done.stderr
    assert "w.yaml:6:" in done.stderr
    assert "    6 |" in done.stderr
    assert "^" in done.stderr
    places = [(d["line"], d["severity"]) for d in json.loads(done.stdout)["error"]["diagnostics"]]
    assert (5, "error") in places
    assert (6, "error") in places


def test_a_missing_key_ends_with_4_and_says_how_to_set_it(devall, poem):
    done = devall("run", poem, "--task", "x", "--json", code=4)
    assert "API_KEY" in done.stderr
    assert json.loads(done.stdout)["error"]["code"] == "setup"
    assert "hint:" in done.stderr


def test_a_model_that_refuses_fails_the_run_with_node_and_hint(devall, poem, workspace):
    with ChatServer({"poet": [{"error": "invalid_api_key"}]}) as server:
        done = devall("run", poem, "--task", "x", env=server.env, code=1)
    assert done.stdout == ""
    assert "A: failed after" in done.stderr
    assert "error [model_refused]" in done.stderr
    assert "Traceback" not in done.stderr
    events = next((workspace / "logs").glob("*/events.jsonl")).read_text()
    assert '"event":"node_failed"' in events
    assert '"event":"run_finished"' in events


def test_a_human_without_an_answer_ends_with_75_and_says_how_to_go_on(devall, write):
    done = devall("run", write("w.yaml", HUMAN), "--json", code=75)
    found = json.loads(done.stdout)
    assert (found["status"], found["answer"]) == ("waiting", None)
    assert found["waiting"] == [{"path": "/reviewer@1", "question": "Is it good?"}]
    assert "--answer reviewer=TEXT" in done.stderr
    assert "Is it good?" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [["--answer", "reviewer=accept=1"], ["--answers", "a.yaml"], ["--answers", "a.json"]],
)
def test_answers_given_beforehand_are_used(devall, write, arguments):
    write("a.yaml", "reviewer: [accept=1]\n")
    write("a.json", '{"reviewer": "accept=1"}')
    done = devall("run", write("w.yaml", HUMAN), *arguments, code=0)
    assert done.stdout == "accept=1\n"


def test_a_human_in_a_subgraph_is_named_by_its_way(devall, write):
    file = write("w.yaml", HUMAN_IN_SUBGRAPH)
    done = devall("run", file, code=75)
    assert "'S/ask me=TEXT'" in done.stderr
    assert devall("run", file, "--answer", "S/ask me=go", code=0).stdout == "go\n"
    assert devall("run", file, "--answer", "ask me=go", code=0).stdout == "go\n"


def test_debug_shows_where_an_error_came_from(devall):
    assert "Traceback" in devall("run", "missing.yaml", "--debug", code=2).stderr
