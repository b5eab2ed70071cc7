"""`devall show`, `why` and `diff` of real runs against the scripted chat server."""

from __future__ import annotations

import json

import pytest

from devall.testing.chat_server import ChatServer
from tests.unit.cli.test_outputs import check

LOOP = """
    graph:
      start: A
      end: E
      nodes:
        - {id: A, type: literal, config: {content: "go"}}
        - id: P
          type: agent
          config:
            provider: openai
            name: poet
            role: You are a poet.
            tooling: [{type: function, config: {tools: [{name: "mine:add"}]}}]
        - id: S
          type: subgraph
          config:
            type: config
            config: {start: X, nodes: [{id: X, type: passthrough}], edges: []}
        - {id: E, type: passthrough}
        - {id: N, type: passthrough}
      edges:
        - {from: A, to: P}
        - {from: P, to: S}
        - {from: S, to: P, condition: {type: keyword, config: {any: [again, nochmal]}}}
        - {from: S, to: E, condition: {type: keyword, config: {regex: ['d[o0]ne'], none: [stop]}}}
        - {from: A, to: N, condition: {type: keyword, config: {any: [never]}}}
        - {from: P, to: N, trigger: false}
"""
POET = [
    {"tool_calls": [{"name": "add", "arguments": {"a": 1, "b": 2}}]},
    "once again",
    "all done",
]


@pytest.fixture
def loop(write):
    write(
        "functions/function_calling/mine.py",
        'def add(a: int, b: int) -> int:\n    """The sum."""\n    return a + b\n',
    )
    return write("w.yaml", LOOP)


@pytest.fixture
def run(devall, loop):
    """Runs the loop with these replies of the poet."""

    def run_it(name, replies=POET, *options, code=0):
        with ChatServer({"poet": list(replies)}) as server:
            return devall(
                "run", loop, "--task", "hi", "--run-id", name, *options, env=server.env, code=code
            )

    return run_it


def test_an_overview_has_every_run_of_a_node_in_order(devall, run):
    run("r1")
    out = devall("show", "r1", code=0).stdout
    rows = [line.split()[1:3] for line in out.splitlines() if line[:1].isdigit()]
    assert rows == [
        [name, "completed"] for name in ("A", "P", "S", "/S@1/X@1", "P@2", "S@2", "/S@2/X@1", "E")
    ]
    assert "skipped: N" in out
    assert out.endswith("answer:\n    all done\n")


def test_a_node_is_shown_with_prompts_calls_and_results(devall, run):
    run("r1")
    out = devall("show", "last", "P", code=0).stdout
    for text in (
        "P, run 1 (/P@1): completed",
        "You are a poet.",
        'add({"a": 1, "b": 2})',
        "result:\n        3",
        "turn 2: openai poet, ",
        "once again",
        "P, run 2 (/P@2)",
        "edges that fired: P -> S",
    ):
        assert text in out
    second = devall("show", "last", "P@2", code=0).stdout
    assert "/P@2" in second
    assert "/P@1" not in second
    told = check("show", devall("show", "last", "P", "--json", code=0).stdout)
    request = told["visits"][0]["model_calls"][1]["request"]
    assert [message["role"] for message in request["messages"]] == [
        "system",
        "user",
        "assistant",
        "tool",
    ]
    assert told["visits"][0]["tool_calls"][0]["result"] == "3"


def test_a_node_in_a_subgraph_is_found_by_either_name_or_path(devall, run):
    run("r1")
    for name in ("S/X", "X", "/S@1/X@1"):
        assert "S/X, run 1 (/S@1/X@1)" in devall("show", "r1", name, code=0).stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["show", "r1", "Q"], "there is no node Q in the run"),
        (["show", "r1", "P@9"], "there is no P@9: the node has run 2 times"),
        (["show", "r1", "N"], "node N has not run"),
        (["show", "r1", "/P@9"], "nothing has run at /P@9"),
        (["why", "r1", "Q"], "there is no node Q in the run"),
        (["why", "r1", "P@9"], "P@9: there is no such run of it"),
        (["show", "x"], "there is no run x in logs"),
        (["why", "x", "P"], "there is no run x in logs"),
        (["diff", "r1", "x"], "there is no run x in logs"),
    ],
)
def test_what_is_not_there_is_said_with_what_is(devall, run, arguments, words):
    run("r1")
    done = devall(*arguments, code=2)
    assert words in done.stderr
    assert "hint: " in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("command", [["show", "x"], ["why", "x", "y"], ["diff", "x", "y"]])
def test_where_nothing_has_run_that_is_said_and_nothing_is_made(devall, workspace, command):
    assert "there is no folder logs" in devall(*command, code=2).stderr
    assert list(workspace.iterdir()) == []


def test_why_names_the_words_that_decided(devall, run):
    run("r1")
    out = devall("why", "r1", "E", code=0).stdout
    assert "E ran once" in out
    assert "triggered by S -> E (run 2 of S)" in out
    assert 'did not fire in run 1 of S: /d[o0]ne/ is not in "once again"' in out
    assert 'fired in run 2 of S: /d[o0]ne/ matches "done" in "all done"' in out
    assert "waited for: S (run 2)" in out


def test_why_tells_the_rounds_of_a_loop_and_why_it_was_left(devall, run):
    run("r1")
    out = devall("why", "r1", "P", code=0).stdout
    assert "P ran 2 times" in out
    assert "run 1, in round 1 of the loop P, S: triggered by A -> P" in out
    assert "run 2, in round 2 of the loop P, S: triggered by S -> P" in out
    assert "fired in run 1 of S: 'again' stands in \"once again\"" in out
    assert "did not fire in run 2 of S: 'again' or 'nochmal' is not in \"all done\"" in out
    assert "the loop P, S was left in round 2, as S -> E fired" in out
    second = devall("why", "r1", "P@2", code=0).stdout
    assert "run 2, in" in second
    assert "run 1, in" not in second


def test_why_tells_of_a_skipped_node_which_edge_did_not_trigger_it(devall, run):
    run("r1")
    out = devall("why", "r1", "N", code=0).stdout
    assert "N was skipped: P -> N fired, but does not trigger (`trigger: false`)" in out
    assert "'never' is not in \"go\"" in out
    told = check("why", devall("why", "r1", "N", "--json", code=0).stdout)
    assert told["nodes"][0]["fate"] == "skipped"
    assert [edge["trigger"] for edge in told["nodes"][0]["edges"]] == [True, False]


def test_why_uses_the_file_as_it_was(devall, run, write):
    run("r1")
    write("w.yaml", LOOP.replace("d[o0]ne", "other"))
    assert "/d[o0]ne/ matches" in devall("why", "r1", "E", code=0).stdout


def test_why_tells_what_a_node_that_has_not_run_waits_for(devall, run):
    run("r1", [{"status": 401, "error": "no"}], code=1)
    out = devall("why", "r1", "E", code=0).stdout
    assert "E has not run: the run ended (failed) before its turn; it waits for S" in out
    inner = devall("why", "r1", "X", code=0).stdout
    assert "has not run: the graph that it is in has not begun" in inner


def test_why_tells_what_a_function_said(devall, write):
    write("functions/edge/mine.py", "def long_enough(text):\n    return len(text) > 3\n")
    file = write(
        "f.yaml",
        """
        graph:
          start: [A, B]
          nodes:
            - {id: A, type: literal, config: {content: long text}}
            - {id: B, type: literal, config: {content: no}}
            - {id: E, type: passthrough}
          edges:
            - {from: A, to: E, condition: {type: function, config: {name: long_enough}}}
            - {from: B, to: E, condition: {type: function, config: {name: long_enough}}}
        """,
    )
    for journal in ("sqlite", "memory"):
        devall("run", file, "--journal", journal, "--run-id", journal, code=0)
        out = devall("why", journal, "E", code=0).stdout
        assert "A -> E, function long_enough\n    fired: function long_enough said yes" in out
        assert "did not fire: function long_enough said no" in out


def test_runs_that_did_the_same_do_not_differ(devall, run):
    run("first-run")
    run("second-run")
    done = devall("diff", "first-run", "second-run", code=0)
    assert done.stdout == ""
    assert "do not differ" in done.stderr
    told = check("diff", devall("diff", "first-run", "second-run", "--json", code=0).stdout)
    assert (told["same"], told["count"], told["differences"]) == (True, 0, [])


def test_the_first_difference_is_named_and_shown(devall, run):
    run("r1")
    run("r2", [*POET[:2], "quite d0ne"])
    done = devall("diff", "r1", "r2", code=1)
    lines = done.stdout.splitlines()
    assert lines[:3] == ["P@2: turn 1: reply", "--- r1", "+++ r2"]
    assert "-all done" in lines
    assert "+quite d0ne" in lines
    assert "further difference" in lines[-1]
    every = devall("diff", "r1", "r2", "--all", code=1).stdout
    assert "run: answer" in every
    assert every.index("S/X@1" if "S/X@1" in every else "S/X") < every.index("S@2: output")
    told = check("diff", devall("diff", "r1", "r2", "--all", "--json", code=1).stdout)
    assert told["differences"][0]["aspect"] == "turn 1: reply"
    assert told["count"] == len(told["differences"])


def test_a_changed_prompt_or_tool_call_is_the_first_difference(devall, run, write):
    run("r1")
    write("w.yaml", LOOP.replace("You are a poet.", "You are a critic."))
    run("r2")
    out = devall("diff", "r1", "r2", code=1).stdout
    assert out.startswith("P: turn 1: prompt\n")
    assert "-You are a poet." in out
    write("w.yaml", LOOP)
    other = {"tool_calls": [{"name": "add", "arguments": {"a": 5, "b": 2}}]}
    run("r3", [other, *POET[1:]])
    assert devall("diff", "r1", "r3", code=1).stdout.startswith("P: turn 1: reply\n")


def test_a_node_that_ran_in_one_run_only_is_a_difference(devall, run):
    run("r1")
    run("r2", [*POET[:2], "once again", "all done"])
    every = devall("diff", "r1", "r2", "--all", code=1).stdout
    assert "P@3: ran in the second run only" in every


def test_a_run_that_is_in_no_journal_is_shown_and_that_is_said(devall, run):
    run("kept-run")
    run("memory-run", POET, "--journal", "memory")
    done = devall("show", "memory-run", "P", code=0)
    assert "in no journal (--journal memory)" in done.stderr
    assert "once again" in done.stdout
    assert done.stdout.count("You are a poet.") == 2  # once for each run of the node
    assert "tools: add" in done.stdout
    told = check("show", devall("show", "memory-run", "P", "--json", code=0).stdout)
    kept = check("show", devall("show", "kept-run", "P", "--json", code=0).stdout)
    for mine, whole in zip(told["visits"], kept["visits"], strict=True):
        for one, other in zip(mine["model_calls"], whole["model_calls"], strict=True):
            assert one["request"]["messages"] == other["request"]["messages"]
            assert one["reply"]["message"] == other["reply"]["message"]
    done = devall("diff", "kept-run", "memory-run", code=0)
    assert "prompts and replies are not compared: the second run is in no journal" in done.stderr
    done = devall("why", "memory-run", "E", code=0)
    assert "told by the file as it is today" in done.stderr
    assert "/d[o0]ne/ matches" in done.stdout


def test_what_is_kept_out_of_logs_is_kept_out_of_what_is_shown(devall, loop, write):
    file = write(
        "hidden.yaml",
        """
        graph:
          start: P
          nodes:
            - id: P
              type: agent
              log_output: false
              config: {provider: openai, name: poet}
            - {id: Q, type: agent, config: {provider: openai, name: critic}}
            - {id: R, type: agent, config: {provider: openai, name: quoter, input_mode: prompt}}
            - {id: T, type: agent, config: {provider: openai, name: teller}}
          edges:
            - {from: P, to: Q, condition: {type: keyword, config: {any: [hush]}}}
            - {from: P, to: R}
            - {from: R, to: T}
        """,
    )
    replies = {
        "poet": ["hush, a private word"],
        "critic": ["fine"],
        "quoter": ["It said: hush, a private word!"],
    }
    with ChatServer(replies) as server:
        devall("run", file, "--task", "hi", "--run-id", "r1", env=server.env, code=0)
        devall("run", file, "--task", "ho", "--run-id", "r2", env=server.env)
    for arguments in (
        ["show", "r1"],
        ["show", "r1", "P"],
        ["show", "r1", "Q", "--json"],
        ["show", "r1", "R", "--json"],
        ["show", "r1", "T", "--json"],
        ["show", "r1", "T"],
        ["why", "r1", "Q"],
        ["diff", "r1", "r2", "--all"],
    ):
        done = devall(*arguments)
        assert "private word" not in done.stdout + done.stderr
    assert "kept out of logs" in devall("show", "r1", "Q", code=0).stdout


def test_a_key_of_the_environment_is_not_printed(devall, run):
    key = "sk-sentinel-0123456789"
    run("r1", [f"echo {key}", "all done"])  # not known as a key then
    done = devall("show", "r1", "P", env={"MY_TOKEN": key}, code=0)
    assert key not in done.stdout
    assert "echo ***" in done.stdout
    assert key not in devall("show", "r1", "P", "--json", env={"MY_TOKEN": key}, code=0).stdout


def test_json_of_a_run_that_is_not_there_is_that_of_one_which_never_began(devall, workspace):
    told = check("show", devall("show", "x", "--json", code=2).stdout)
    assert told["run_id"] is None
    assert json.loads(devall("diff", "x", "y", "--json", code=2).stdout)["exit_code"] == 2


def test_units_of_a_map_are_told_apart(devall, write):
    file = write(
        "m.yaml",
        """
        graph:
          start: L
          nodes:
            - {id: L, type: literal, config: {content: '["a", "b"]'}}
            - id: S
              type: subgraph
              config:
                type: config
                config:
                  start: X
                  nodes:
                    - {id: X, type: passthrough}
                    - {id: Y, type: passthrough}
                  edges: [{from: X, to: Y, condition: {type: keyword, config: {any: [a]}}}]
            - {id: M, type: agent, config: {provider: openai, name: poet}}
          edges:
            - from: L
              to: S
              dynamic: {type: map, split: {type: json_path, json_path: "$[*]"}}
            - from: L
              to: M
              dynamic: {type: map, split: {type: json_path, json_path: "$[*]"}}
        """,
    )
    with ChatServer() as server:
        devall("run", file, "--run-id", "r1", env=server.env, code=0)
    out = devall("why", "r1", "Y", code=0).stdout
    assert "Y ran once (in /S@1/unit:1)" in out
    assert "Y was skipped: no edge into it fired (in /S@1/unit:2)" in out
    out = devall("show", "r1", "M", code=0).stdout
    assert "turn 1 [unit:1]: openai poet" in out
    assert "turn 1 [unit:2]: openai poet" in out
    assert "/S@1/unit:2/X@1" in devall("show", "r1", code=0).stdout


def test_a_loop_that_came_to_its_bound_says_so(devall, write):
    file = write(
        "l.yaml",
        """
        graph:
          start: A
          limits: {max_loop_iterations: 5}
          nodes: [{id: A, type: passthrough}, {id: B, type: passthrough}]
          edges: [{from: A, to: B}, {from: B, to: A}]
        """,
    )
    devall("run", file, "--task", "x", "--run-id", "r1", code=6)
    out = devall("why", "r1", "A", code=0).stdout
    assert "the loop A, B ended after round 5: that is its bound (`max_loop_iterations`)" in out
    assert "… 2 earlier runs (--full shows all)" in out
    assert "run 1, in round 1" in devall("why", "r1", "A", "--full", code=0).stdout


def test_what_an_earlier_process_did_is_shown_as_it_was(devall, write):
    file = write(
        "h.yaml",
        """
        graph:
          start: A
          nodes:
            - {id: A, type: agent, config: {provider: openai, name: poet}}
            - {id: H, type: human, config: {description: Is it good?}}
            - {id: Z, type: passthrough}
          edges: [{from: A, to: H}, {from: H, to: Z}]
        """,
    )
    with ChatServer({"poet": [{"text": "a poem", "delay": 0.3}]}) as server:
        devall("run", file, "--task", "x", "--run-id", "r1", env=server.env, code=75)
        out = devall("show", "r1", "H", code=0).stdout
        assert "waiting" in out
        assert "not answered" in out
        why = devall("why", "r1", "Z", code=0).stdout
        assert "the run ended (waiting) before its turn; it waits for H (waits for a human)" in why
        devall("resume", "r1", "--answer", "H=yes", env=server.env, code=0)
    told = check("show", devall("show", "r1", "A", "--json", code=0).stdout)
    [visit] = told["visits"]
    assert visit["model_calls"][0]["from_journal"]
    assert visit["seconds"] >= 0.3
    assert "has answered:\n    yes" in devall("show", "r1", "H", code=0).stdout


def test_a_secret_of_the_file_today_is_not_printed_by_why(devall, write):
    file = write(
        "s.yaml",
        """
        graph:
          start: A
          nodes: [{id: A, type: literal, config: {content: word}}, {id: B, type: passthrough}]
          edges: [{from: A, to: B, condition: {type: keyword, config: {any: ["${MY_TOKEN}"]}}}]
        """,
    )
    env = {"MY_TOKEN": "sentinel-0123456789"}
    for journal in ("sqlite", "memory"):
        devall("run", file, "--journal", journal, "--run-id", journal, env=env, code=0)
        for more in ((), ("--json",)):
            done = devall("why", journal, "B", *more, env=env, code=0)
            assert "sentinel" not in done.stdout + done.stderr
            assert "***" in done.stdout


def test_a_model_call_that_failed_is_shown_and_compared(devall, write):
    file = write(
        "f.yaml",
        """
        graph:
          start: A
          nodes:
            - id: A
              type: agent
              on_error: continue
              log_output: false
              config:
                provider: openai
                name: poet
                retry: {max_attempts: 2, min_wait_seconds: 0.01, max_wait_seconds: 0.02}
            - {id: B, type: passthrough}
          edges: [{from: A, to: B}]
        """,
    )
    broken = {"status": 500, "error": "out of order"}
    with ChatServer({"poet": [broken, broken, "a poem"]}) as server:
        devall("run", file, "--task", "x", "--run-id", "r1", env=server.env, code=0)
        devall("run", file, "--task", "x", "--run-id", "r2", env=server.env, code=0)
    out = devall("show", "r1", "A", code=0).stdout
    assert "attempt 1 failed: the endpoint failed (status 500)" in out
    assert "failed [model_unavailable]:" in out
    told = check("show", devall("show", "r1", "A", "--json", code=0).stdout)
    assert told["visits"][0]["model_calls"][0]["reply"] is None
    assert "did not fire: A failed" in devall("why", "r1", "B", code=0).stdout
    assert "A: turn 1: reply (only in r2)" in devall("diff", "r1", "r2", code=1).stdout
