"""`devall resume` and `devall runs answer` as a person uses them: edits, answers, and replays after."""

from __future__ import annotations

import json

from devall.testing.chat_server import ChatServer

FLOW = """
    graph:
      start: a
      nodes:
        - {id: a, type: agent, config: {provider: openai, name: a, role: "ONE"}}
        - {id: ask, type: human, config: {description: Well?}}
        - {id: b, type: agent, config: {provider: openai, name: b, role: "TWO"}}
        - {id: c, type: agent, config: {provider: openai, name: c}}
      edges: [{from: a, to: ask}, {from: ask, to: b}, {from: b, to: c}]
"""
UNITS = """
    graph:
      start: items
      nodes:
        - {id: items, type: literal, config: {content: "red\\nblue"}}
        - {id: ask, type: human, config: {description: Which shade?}}
        - {id: end, type: passthrough, config: {only_last_message: false}}
      edges:
        - {from: items, to: ask, dynamic: {type: map, split: {type: regex, pattern: "[a-z]+"}}}
        - {from: ask, to: end}
"""


def test_an_edited_node_and_what_follows_run_again_and_it_is_said(devall, write):
    file = write("w.yaml", FLOW)
    with ChatServer({"a": ["1"], "b": ["2", "2 again"], "c": ["3", "3 again"]}) as server:
        devall("run", file, "--task", "x", "--run-id", "r", env=server.env, code=75)
        devall("resume", "r", "--answer", "ask=yes", env=server.env, code=0)
        write("w.yaml", FLOW.replace("TWO", "NEW"))
        done = devall("resume", "r", env=server.env, code=0)
        assert {name: len(calls) for name, calls in server.calls.items()} == {
            "a": 1,
            "b": 2,
            "c": 2,
        }
    assert done.stdout == "3 again\n"
    assert "run again: b, and what follows: c" in done.stderr
    # What is replayed is the run as it was last gone on with.
    assert devall("replay", "r", code=0).stdout == "3 again\n"


def test_answers_are_kept_one_by_one_and_the_run_goes_on_when_it_is_told_to(devall, write):
    file = write("w.yaml", UNITS)
    done = devall("run", file, "--run-id", "r", code=75)
    assert "/ask@1/unit:1" in done.stderr
    assert "--answer /ask@1/unit:2=TEXT" in done.stderr
    told = json.loads(devall("runs", "answer", "r", "/ask@1/unit:2=navy", "--json", code=0).stdout)
    assert told == {"run_id": "r", "open": ["/ask@1/unit:1"], "resume": "devall resume r"}
    assert json.loads(devall("resume", "r", "--json", code=75).stdout)["waiting"] == [
        {"path": "/ask@1/unit:1", "question": "Which shade?"}
    ]
    assert devall("runs", "answer", "r", "ask=crimson", code=0).stdout == "devall resume r\n"
    assert devall("resume", "r", code=0).stdout == "navy\n"
    words = devall("runs", "answer", "r", "ask=late", code=2).stderr
    assert "has asked nothing that is still open" in words


def test_a_run_that_nobody_knows_cannot_be_answered(devall, write):
    devall("run", write("w.yaml", UNITS), "--run-id", "r", code=75)
    assert "there is no run nope" in devall("runs", "answer", "nope", "ask=x", code=2).stderr
    assert "there is no human node 'asks'" in devall("runs", "answer", "r", "asks=x", code=2).stderr
