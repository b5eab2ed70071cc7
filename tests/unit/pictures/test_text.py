from __future__ import annotations

import html
import re
from itertools import pairwise
from pathlib import Path
from textwrap import dedent

import pytest

from devall.loading.loader import LoadedGraph, load_text
from devall.pictures.course import Course, NodeCourse
from devall.pictures.dot import dot
from devall.pictures.mermaid import mermaid
from devall.pictures.scene import LONGEST_LABEL

ODD_IDS = [
    'a "b" <c>',
    "x|y]}",
    "end",
    "日本`**",
    "#35;&lt;\\",
    "\x1b[31m",
    "graph\nTD",
    "$&;--> n1",
]


def loaded(text: str) -> LoadedGraph:
    return load_text(dedent(text), folder=Path("/nowhere")).root


def chain(*ids: str) -> LoadedGraph:
    nodes = "".join(f"\n    - {{id: {quoted(i)}, type: passthrough}}" for i in ids)
    edges = "".join(f"\n    - {{from: {quoted(a)}, to: {quoted(b)}}}" for a, b in pairwise(ids))
    return loaded(f"graph:\n  start: {quoted(ids[0])}\n  nodes:{nodes}\n  edges:{edges or ' []'}\n")


def quoted(text: str) -> str:
    body = "".join(c if c.isalnum() and c.isascii() else f"\\u{ord(c):04x}" for c in text)
    return f'"{body}"'


LOOP = """
    graph:
      start: A
      end: [E]
      nodes:
        - {id: A, type: literal, config: {content: x}}
        - {id: W, type: passthrough}
        - {id: C, type: loop_counter, config: {max_iterations: 4}}
        - {id: E, type: passthrough}
      edges:
        - {from: A, to: W}
        - {from: W, to: C, condition: {type: function, config: {name: code_fail}}}
        - {from: C, to: W}
        - {from: W, to: E, condition: {type: keyword, config: {any: [done, ok], none: [no]}}}
"""
NESTED = """
    graph:
      id: outer
      start: S
      nodes:
        - {id: B, type: passthrough}
        - id: S
          type: subgraph
          config:
            type: config
            config:
              start: one
              nodes:
                - {id: one, type: passthrough}
                - {id: two, type: passthrough}
              edges: [{from: one, to: two}]
      edges:
        - {from: S, to: B}
        - {from: S, to: S, condition: always_false}
"""


def test_a_chain_goes_from_start_to_answer():
    text = mermaid(chain("A", "B"))
    assert text.startswith("flowchart TD\n")
    assert [line.strip() for line in text.splitlines() if "-->" in line] == [
        "start --> n1",
        "n1 --> n2",
        "n2 --> finish",
    ]
    assert [line.strip() for line in dot(chain("A", "B")).splitlines() if "->" in line] == [
        "start -> n1",
        "n1 -> n2",
        "n2 -> finish",
    ]


@pytest.mark.parametrize("odd", ODD_IDS)
def test_any_text_is_a_legal_id_and_stands_in_a_label_only(odd: str):
    shown = " ".join("".join(c if c.isprintable() else " " for c in odd).split())
    text = mermaid(chain("A", odd, "B"))
    labels = re.findall(r'n2\(\["(.*)"\]\)', text)
    assert len(labels) == 1
    assert '"' not in labels[0]
    said = re.sub(r"#(\d+);", lambda found: chr(int(found[1])), labels[0])
    assert " ".join("".join(c if c.isprintable() else " " for c in said).split()) == (
        f"{shown}<br/>passthrough"
    )
    assert re.findall(r"(\w+) --> (\w+)", text)[:3] == [("start", "n1"), ("n1", "n2"), ("n2", "n3")]

    label = re.search(r'n2 \[label="((?:[^"\\]|\\.)*)"', dot(chain("A", odd, "B")))
    assert label is not None
    plain = html.unescape(re.sub(r"\\(.)", lambda f: "\n" if f[1] == "n" else f[1], label[1]))
    assert " ".join(plain.split()) == f"{shown} passthrough"


def test_a_loop_is_a_group_and_its_edges_say_when_they_fire():
    text = mermaid(loaded(LOOP))
    inside = re.search(r'subgraph n5\["loop"\]\n(.*?)\n    end', text, re.DOTALL)
    assert inside is not None
    assert re.findall(r'n(\d)\W+"(\w)', inside[1]) == [("2", "W"), ("3", "C")]
    assert 'n2 -->|"if code_fail"| n3' in text.replace("#95;", "_")
    assert 'n2 -->|"if done or ok, not no"| n4' in text
    assert "4 rounds" in text
    assert "subgraph cluster_n5 {" in dot(loaded(LOOP))


def test_a_loop_within_a_loop_is_a_group_within_a_group():
    nodes = "".join(f"\n    - {{id: {i}, type: passthrough}}" for i in "OIJKE")
    edges = "".join(
        f"\n    - {{from: {a}, to: {b}, condition: {c}}}"
        for a, b, c in [
            ("O", "I", "true"),
            ("I", "J", "true"),
            ("J", "I", "code_fail"),
            ("J", "K", "code_pass"),
            ("K", "O", "code_fail"),
            ("K", "E", "code_pass"),
        ]
    )
    text = mermaid(loaded(f"graph:\n  start: O\n  nodes:{nodes}\n  edges:{edges}\n"))
    depth, depths = 0, {}
    for line in text.splitlines():
        if found := re.search(r'\[\("(\w)<|\(\["(\w)<', line):
            depths[found[1] or found[2]] = depth
        depth += line.strip().startswith("subgraph ")
        depth -= line.strip() == "end"
    assert depths == {"O": 1, "I": 2, "J": 2, "K": 1, "E": 0}
    assert depth == 0


def test_a_subgraph_is_nested_and_may_lead_to_itself():
    text = mermaid(loaded(NESTED))
    assert 'subgraph n2["S (subgraph)"]' in text
    assert "n2 --> n1" in text
    assert re.search(r"n4 -->\|.*\| n3", text), "Mermaid draws no arrow from a group to itself"
    drawn = dot(loaded(NESTED))
    assert "subgraph cluster_n2 {" in drawn
    assert "n4 -> n1 [ltail=cluster_n2]" in drawn
    assert "start -> n3 [lhead=cluster_n2]" in drawn


@pytest.mark.parametrize(
    ("keys", "line", "label"),
    [
        ("trigger: false", "-.->", "no trigger"),
        ("carry_data: false", "-->", "no data"),
        ("condition: false", "-->", "never"),
        ("dynamic: {type: tree, split: {type: message}}", "==>", "tree by message"),
        (
            "process: {type: function, config: {name: uppercase_payload}}",
            "-->",
            "uppercase_payload()",
        ),
        ("process: {type: regex_extract, config: {pattern: 'a+'}}", "-->", "extract /a+/"),
        ("condition: {type: keyword, config: {regex: ['^x$']}}", "-->", "if /^x$/"),
        ("condition: {type: expression, config: {when: score >= 8}}", "-->", "if score >= 8"),
    ],
)
def test_what_is_special_about_an_edge_stands_beside_it(keys: str, line: str, label: str):
    graph = loaded(
        "graph:\n  start: A\n  nodes:\n    - {id: A, type: passthrough}\n"
        f"    - {{id: B, type: passthrough}}\n  edges:\n    - {{from: A, to: B, {keys}}}\n"
    )
    found = re.search(r'n1 (\S+)\|"(.*)"\| n2', mermaid(graph))
    assert found is not None
    assert found[1] == line
    assert re.sub(r"#(\d+);", lambda f: chr(int(f[1])), found[2]) == label
    assert f'label="{label}"' in dot(graph)


def test_a_majority_vote_has_no_edges_and_starts_every_node():
    graph = loaded(
        "graph:\n  is_majority_voting: true\n  start: A\n  nodes:\n"
        "    - {id: A, type: passthrough}\n    - {id: B, type: passthrough}\n"
    )
    assert re.findall(r"(\w+) --> (\w+)", mermaid(graph)) == [
        ("start", "n1"),
        ("start", "n2"),
        ("n1", "finish"),
        ("n2", "finish"),
    ]


def test_long_names_are_cut():
    label = re.search(r'n1\(\["(.*)<br/>', mermaid(chain("x" * 500)))
    assert label is not None
    assert len(label[1]) == LONGEST_LABEL


def test_a_run_is_told_by_class_word_and_mark_in_mermaid():
    course = Course(
        nodes={
            "A": NodeCourse(state="completed", runs=1, seconds=0.2),
            "W": NodeCourse(state="completed", runs=4, seconds=3),
            "C": NodeCourse(state="failed", runs=4, units=7),
        },
        edges={("", 0): 1, ("", 1): 4, ("", 2): 3},
        rounds={frozenset({"W", "C"}): 4},
    )
    text = mermaid(loaded(LOOP), course).replace("#183;", "·")
    assert 'subgraph n5["loop · 4 rounds"]' in text
    assert "✓ ×4 · 3.0 s" in text
    assert "✗ failed · ×4 · 7 units" in text
    assert "class n1,n2 completed" in text
    assert "class n3 failed" in text
    assert "class n4 unbegun" in text
    assert re.search(r'n2 -->\|"if code.*fail ×4"\| n3', text)
    assert "linkStyle 4 stroke" in text, "the edge from the start counts, and the last did not fire"

    drawn = dot(loaded(LOOP), course)
    assert 'label="loop · 4 rounds"' in drawn
    assert re.search(r'n3 \[label=".*✗ failed.*#cf222e.*filled"', drawn)
    assert re.search(r'n4 \[label=".*did not begin".*dashed', drawn)
    assert re.search(r"n2 -> n4 \[.*style=dotted", drawn)
    assert not re.search(r"n2 -> n3 \[.*dotted", drawn)


def test_a_graph_without_an_end_has_no_answer():
    graph = loaded(
        "graph:\n  start: A\n  nodes:\n    - {id: A, type: passthrough}\n"
        "    - {id: B, type: passthrough}\n  edges:\n    - {from: A, to: B}\n"
        "    - {from: B, to: A, condition: code_fail}\n"
    )
    assert "finish" not in mermaid(graph)
    assert "finish" not in dot(graph)
