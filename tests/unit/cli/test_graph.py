"""`devall graph`: its kinds of pictures, where they go, and what they show of a run."""

from __future__ import annotations

import base64
import io
import json
import re
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from PIL import Image

from devall.history.course import course_of
from devall.history.past import find_past
from devall.pictures.course import NodeCourse
from devall.testing.chat_server import ChatServer
from tests.unit.cli.test_outputs import check

FLOW = """
    graph:
      id: flow
      start: L
      nodes:
        - {id: L, type: literal, config: {content: "a\\nb\\nc"}}
        - {id: M, type: passthrough}
        - {id: W, type: passthrough}
        - {id: P, type: passthrough}
        - {id: C, type: loop_counter, config: {max_iterations: 3}}
        - id: S
          type: subgraph
          config:
            type: config
            config:
              start: X
              nodes: [{id: X, type: passthrough}, {id: Y, type: passthrough}]
              edges: [{from: X, to: Y}]
        - {id: K, type: passthrough}
      edges:
        - from: L
          to: M
          dynamic: {type: map, split: {type: regex, pattern: "\\\\w"}}
        - {from: M, to: W}
        - {from: W, to: P}
        - {from: P, to: W}
        - {from: P, to: C}
        - {from: C, to: W}
        - {from: C, to: S}
        - {from: L, to: K, condition: false}
"""
LOOP = """
    graph:
      start: W
      end: [E]
      nodes:
        - {id: W, type: passthrough}
        - {id: P, type: passthrough}
        - {id: C, type: loop_counter, config: {max_iterations: 3}}
        - {id: E, type: passthrough}
      edges:
        - {from: W, to: P}
        - {from: P, to: W}
        - {from: P, to: C}
        - {from: C, to: W}
        - {from: C, to: E}
"""
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture
def ran(devall, write):
    """Runs a workflow; its file."""

    def run(text: str, *more: str) -> Path:
        file = write("flow.yaml", text)
        devall("run", file, "--task", "go", *more, code=0)
        return file

    return run


def test_the_suffix_of_the_file_says_what_is_drawn(devall, write):
    file = write("flow.yaml", LOOP)
    for name, beginning in {
        "a.svg": b"<svg ",
        "a.png": PNG,
        "a.dot": b"digraph ",
        "a.mmd": b"flowchart TD",
        "a.txt": b"\xe2\x97\x8f start",
    }.items():
        done = devall("graph", file, "-o", name, env={"LC_ALL": "C.UTF-8"}, code=0)
        assert Path(name).read_bytes().startswith(beginning) or name == "a.txt"
        assert done.stdout == ""
    devall("graph", file, "--format", "svg", "-o", "b.picture", code=0)
    assert ET.fromstring(Path("b.picture").read_text()).get("role") == "img"
    done = devall("graph", file, "-o", "b.jpeg", code=2)
    assert "its suffix names no kind of picture" in done.stderr
    assert ".svg" in done.stderr
    assert "there is no folder" in devall("graph", file, "-o", "no/a.svg", code=2).stderr


def test_what_cannot_be_drawn_is_refused(devall, write):
    file = write("flow.yaml", LOOP)
    assert "which workflow" in devall("graph", code=2).stderr
    told = devall("graph", file, "--format", "png", "--theme", "auto", code=2).stderr
    assert "cannot follow its viewer" in told
    assert "--scale 99" in devall("graph", file, "--scale", "99", code=2).stderr
    assert "sgv" in devall("graph", file, "--format", "sgv", code=2).stderr
    told = devall("graph", "--run", "last", "--var", "A=b", code=2).stderr
    assert "error" in told


def test_pixels_go_into_a_pipe_and_not_onto_a_terminal(devall, write, monkeypatch):
    file = write("flow.yaml", LOOP)

    class Out(io.TextIOWrapper):
        terminal = False

        def isatty(self) -> bool:
            return self.terminal

    pipe = Out(io.BytesIO())
    with monkeypatch.context() as changed:
        changed.setattr(sys, "stdout", pipe)
        devall("graph", file, "--format", "png", "--scale", "1", code=0)
    assert pipe.buffer.getvalue().startswith(PNG)  # type: ignore[attr-defined]
    pipe = Out(io.BytesIO())
    pipe.terminal = True
    with monkeypatch.context() as changed:
        changed.setattr(sys, "stdout", pipe)
        done = devall("graph", file, "--format", "png", code=2)
    assert "nothing for a terminal" in done.stderr
    assert "-o graph.png" in done.stderr


@pytest.mark.parametrize("kind", ["mermaid", "dot", "svg", "png", "ascii"])
def test_every_kind_is_told_as_json(devall, write, kind):
    file = write("flow.yaml", LOOP)
    told = check("graph", devall("graph", file, "--json", "--format", kind, code=0).stdout)
    assert told["format"] == kind
    assert told["run_id"] is told["output"] is None
    if kind == "png":
        assert Image.open(io.BytesIO(base64.b64decode(told["drawing"]))).width > 100
    else:
        assert "W" in told["drawing"]


def test_a_run_is_drawn_as_it_was(devall, ran):
    file = ran(LOOP)
    told = check("graph", devall("graph", "--run", "last", "--json", code=0).stdout)
    assert Path(told["workflow"]).samefile(file)
    assert told["run_id"]
    assert "loop · 3 rounds" in devall("graph", "--run", "last", "--format", "svg").stdout
    assert "×3" in devall("graph", "--run", "last", "--format", "dot").stdout
    text = devall("graph", "--run", "last", "--format", "ascii", env={"LC_ALL": "C.UTF-8"}).stdout
    assert re.search("[✓+] [×x]3", text)
    file.write_text(file.read_text().replace("id: E", "id: End").replace("to: E", "to: End"))
    assert "End" not in devall("graph", "--run", "last", code=0).stdout


def test_a_file_that_is_not_what_ran_is_told_of(devall, ran, write):
    file = ran(LOOP)
    assert devall("graph", file, "--run", "last", code=0).stderr == ""
    other = write("other.yaml", LOOP)
    assert "it ran " in devall("graph", other, "--run", "last", code=0).stderr
    file.write_text(
        file.read_text().replace("{from: C, to: E}", "{from: C, to: E, trigger: false}")
    )
    done = devall("graph", file, "--run", "last", code=0)
    assert "its graph has changed since" in done.stderr


def test_events_are_enough_to_draw_a_run(devall, ran):
    file = ran(LOOP, "--journal", "memory")
    done = devall("graph", "--run", "last", code=0)
    assert done.stderr == ""
    assert "3 rounds" in done.stdout
    file.write_text(
        file.read_text()
        .replace("id: E", "id: End")
        .replace("to: E", "to: End")
        .replace("[E]", "[End]")
    )
    done = devall("graph", file, "--run", "last", code=0)
    assert "its nodes have changed since" in done.stderr


def test_the_course_of_a_run_counts_runs_units_rounds_and_edges(ran):
    ran(FLOW)
    course = course_of(find_past(Path("logs"), "last").story())
    runs = {name: (each.state, each.runs, each.units) for name, each in course.nodes.items()}
    assert runs == {
        "L": ("completed", 1, 0),
        "M": ("completed", 1, 3),
        "W": ("completed", 3, 0),
        "P": ("completed", 3, 0),
        "C": ("completed", 3, 0),
        "S": ("completed", 1, 0),
        "S/X": ("completed", 1, 0),
        "S/Y": ("completed", 1, 0),
        "K": ("skipped", 0, 0),
    }
    assert course.rounds == {frozenset({"W", "P", "C"}): 3}
    assert course.edges[("", 2)] == 3
    assert ("", 7) not in course.edges
    assert course.edges["S", 0] == 1
    assert all(each.seconds >= 0 for each in course.nodes.values())


def test_the_course_of_an_agent_names_the_models_that_were_asked(devall, write):
    file = write(
        "agent.yaml",
        """
        graph:
          start: A
          nodes: [{id: A, type: agent, config: {provider: openai, name: gpt-4o}}]
        """,
    )
    with ChatServer({"m": ["hi"]}) as server:
        devall("run", file, "--task", "x", "--model", "m", env=server.env, code=0)
    assert course_of(find_past(Path("logs"), "last").story()).nodes["A"].models == ("openai: m",)
    text = devall("graph", "--run", "last", "--format", "ascii", code=0).stdout
    assert "openai: m" in text
    assert "gpt-4o" not in text
    assert "openai: gpt-4o" in devall("graph", file, "--format", "ascii", code=0).stdout


def test_what_had_begun_when_its_process_was_killed_is_not_running(ran):
    ran(FLOW)
    story = find_past(Path("logs"), "last").story()
    last = max(story.visits.values(), key=lambda visit: visit.began)
    story.finished, last.ended = None, None
    assert course_of(story).nodes[last.node].state == "running"
    assert course_of(story, is_over=True).nodes[last.node].state == "cancelled"


def test_a_run_that_waits_shows_where(devall, write):
    file = write(
        "ask.yaml",
        """
        graph:
          start: A
          nodes:
            - {id: A, type: literal, config: {content: x}}
            - {id: H, type: human, config: {description: ok?}}
            - {id: Z, type: passthrough}
          edges: [{from: A, to: H}, {from: H, to: Z}]
        """,
    )
    devall("run", file, "--task", "x", code=75)
    course = course_of(find_past(Path("logs"), "last").story())
    assert course.nodes["H"] == NodeCourse(state="waiting", runs=1)
    assert "Z" not in course.nodes
    text = devall("graph", "--run", "last", "--format", "mermaid", code=0).stdout
    assert "class n2 waiting" in text
    assert "class n3 unbegun" in text
    drawn = json.loads(devall("graph", "--run", "last", "--json").stdout)["drawing"]
    assert drawn == text


@pytest.mark.parametrize("kind", ["mermaid", "dot", "svg", "ascii"])
def test_a_secret_in_a_condition_is_not_drawn(devall, write, kind):
    file = write(
        "flow.yaml",
        """
        graph:
          start: A
          nodes: [{id: A, type: passthrough}, {id: B, type: passthrough}]
          edges:
            - {from: A, to: B, condition: {type: keyword, config: {any: ["${MY_API_KEY}"]}}}
        """,
    )
    key = "sk-0123456789abcdef"
    done = devall("graph", file, "--format", kind, env={"MY_API_KEY": key}, code=0)
    assert key not in done.stdout.replace("#45;", "-")
    assert "***" in done.stdout.replace("#42;", "*")
