from __future__ import annotations

from pathlib import Path
from textwrap import dedent, indent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.loading.chatdev import Imported, import_document
from devall.loading.document import parse_document, read_document
from devall.loading.loader import load_text


def imported(text: str) -> Imported:
    return import_document(parse_document(text, "w.yaml"))


def agent(config: str, rest: str = "") -> str:
    """A workflow of one agent, with a comment that must stay."""
    return (
        "# mine\ngraph:\n  start: A\n  nodes:\n    - id: A\n      type: agent\n"
        + indent(dedent(rest), "      ")
        + "      config:\n        provider: openai # here\n        name: m\n"
        + indent(dedent(config), "        ")
        + "  edges: []\n"
    )


def test_what_runs_stays_byte_for_byte():
    text = agent("role:   'a'   \nretry: null\ntooling:\nmemories: []\n", "dynamic: null\n")
    found = imported(text)
    assert found.text == text
    assert found.changes == found.doubts == found.notes == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("skills: {enabled: yes}\n", "skills: {enabled: true}\n"),
        ("retry:\n  enabled: Off # no\n", "retry:\n  enabled: false # no\n"),
        ("retry: {max_attempts: 010}\n", "retry: {max_attempts: 8}\n"),
        ("retry: {max_attempts: 1_0}\n", "retry: {max_attempts: 10}\n"),
        ("params: {timeout: 1:30}\n", "params: {timeout: 90}\n"),
        ("params: {stream: no, seed: 0_17}\n", "params: {stream: false, seed: 15}\n"),
        ("role: 5\n", 'role: "5"\n'),
        ("role: 1.10\n", 'role: "1.10"\n'),
        ("persistent_session: true\n", "x-persistent_session: true\n"),
        ("description: for people\n", "x-description: for people\n"),
        ("tools: []\n", "x-tools: []\n"),
        (
            "tooling:\n  - {type: mcp, config: {server: 'http://a/mcp'}}\n",
            "tooling:\n  - {type: mcp_remote, config: {server: 'http://a/mcp'}}\n",
        ),
        (
            "tooling:\n  - type: mcp # old\n    config:\n      command: uvx\n",
            "tooling:\n  - type: mcp_local # old\n    config:\n      command: uvx\n",
        ),
        (
            "tooling: {type: mcp_local, command: x, args: blender-mcp}\n",
            'tooling: {type: mcp_local, command: x, args: ["blender-mcp"]}\n',
        ),
        (
            "tooling: {type: mcp_local, command: x, env: {PORT: 80}}\n",
            'tooling: {type: mcp_local, command: x, env: {PORT: "80"}}\n',
        ),
    ],
)
def test_what_means_one_thing_is_changed_and_loads(old: str, new: str):
    found = imported(agent(old))
    assert found.text == agent(new)
    assert found.changes
    assert all(each.hint and each.position.line > 9 for each in found.changes)
    assert load_text(found.text)
    assert imported(found.text).changes == ()


@pytest.mark.parametrize(
    "config",
    [
        "rol: you are a poet\n",  # near to `role`
        "temperature: 0.5\n",  # belongs into `params`
        "context_window: 3\n",  # belongs to the node
        "tooling:\n  - {type: mcp, config: {url: 'http://a/mcp'}}\n",
        "tooling: {type: mcp_local, command: x, env: {MODE: 0644}}\n",
        "retry: {enabled: 'yes'}\n",  # a word on purpose
    ],
)
def test_what_may_mean_two_things_is_left_to_a_person(config: str):
    found = imported(agent(config))
    assert found.text == agent(config)
    assert found.changes == ()


def test_a_misplaced_key_that_is_said_in_its_place_as_well_means_nothing():
    found = imported(agent("context_window: 3\n", "context_window: 1\nname: The poet\n"))
    changed = [each.message for each in found.changes]
    assert changed == [
        "`name` is `x-name` now",
        "`context_window` is `x-context_window` now",
    ]
    assert load_text(found.text)


def test_a_node_of_another_kind_has_no_place_for_the_key():
    text = (
        "graph:\n  start: A\n  nodes:\n  - id: A\n    type: human\n    name: You\n"
        "    memories: [{name: m}]\n    config: {provider: human, description: ok}\n  edges: []\n"
    )
    found = imported(text)
    assert load_text(found.text)
    assert len(found.changes) == 3


def test_a_condition_may_be_a_boolean_of_the_old_yaml():
    text = (
        "graph:\n  start: A\n  nodes: [{id: A, type: passthrough}, {id: B, type: passthrough}]\n"
        "  edges:\n    - {from: A, to: B, condition: yes}\n    - {from: A, to: B, condition: 'no'}\n"
    )
    found = imported(text)
    assert found.text == text.replace("yes", "true")


def test_secrets_are_not_repeated():
    found = imported(agent("api_key: 918273645\n"))
    assert 'api_key: "918273645"' in found.text
    assert "918273645" not in str(found.changes)


def test_words_in_vars_are_asked_about_and_dates_are_noted():
    found = imported("vars:\n  A: no\n  B: 2026-01-02\n  C: 'no'\n" + agent(""))
    assert [(each.position.line, each.code) for each in found.doubts] == [(2, "yaml-1.1")]
    assert "write `false`" in found.doubts[0].hint
    assert [each.position.line for each in found.notes] == [3]


def test_a_key_that_says_the_same_twice_is_put_aside_once():
    found = imported(agent("role: a\n# again\nrole: a\n"))
    assert load_text(found.text)
    assert [(each.code, each.position.line) for each in found.changes] == [("duplicate-key", 12)]
    assert "# again" in found.text


def test_of_two_that_differ_it_is_said_which_one_chatdev_takes():
    text = agent("role: a\nrole: b\n")
    found = imported(text)
    assert found.text == text
    assert [each.message for each in found.notes] == ["of the two `role` ChatDev takes the second"]


GRAPH = """\
graph:
  id: g
  nodes:
    - id: A
      type: passthrough
    - id: S
      type: subgraph
      config:
        type: config
        config:
          # within
          id: inner
          nodes: [{id: X, type: passthrough}, {id: Y, type: passthrough}]
          edges: [{from: X, to: Y}]
  edges: [{from: A, to: S}]
"""


def test_graphs_without_a_start_get_the_one_node_that_nothing_leads_to():
    found = imported(GRAPH)
    assert '  start: "A"\n  id: g\n' in found.text
    assert '          # within\n          start: "X"\n          id: inner\n' in found.text
    assert [each.position.line for each in found.changes] == [1, 10]
    assert load_text(found.text)
    assert found.line(found.text.split("\n").index("  edges: [{from: A, to: S}]") + 1) == 15


def test_a_graph_of_two_beginnings_gets_no_start():
    text = "graph: {nodes: [{id: A, type: passthrough}, {id: B, type: passthrough}], edges: []}\n"
    assert imported(text).text == text


def dynamic(edges: str) -> str:
    return (
        "graph:\n  start: A\n  nodes:\n    - {id: A, type: passthrough}\n    - id: B\n"
        "      type: passthrough\n      dynamic:\n        type: map\n        split: {type: message}\n"
        f"  edges:\n{edges}"
    )


def test_dynamic_goes_to_the_only_edge_that_brings_something():
    found = imported(dynamic("    - from: A\n      to: B\n      dynamic: null\n"))
    assert 'dynamic: {"type": "map", "split": {"type": "message"}}' in found.text
    assert "x-dynamic:\n" in found.text
    loaded = load_text(found.text)
    assert loaded.warnings == ()
    edge = loaded.config.graph.edges[0]
    assert edge.dynamic is not None
    assert edge.dynamic.type == "map"


def test_dynamic_that_edges_say_themselves_is_put_aside():
    edges = "    - {from: A, to: B, dynamic: {type: map}}\n    - {from: A, to: B}\n"
    found = imported(dynamic(edges))
    assert found.text == dynamic(edges).replace("      dynamic:", "      x-dynamic:")


def test_dynamic_of_a_node_with_two_ways_in_is_left_to_a_person():
    text = dynamic("    - {from: A, to: B}\n    - {from: A, to: B}\n")
    found = imported(text)
    assert found.text == text
    assert [(each.code, each.position.line) for each in found.doubts] == [("misplaced-dynamic", 7)]


def test_tabs_become_spaces_where_all_widths_say_the_same():
    text = "graph:\n\tstart: A\n\tnodes:\n\t- id: A\n\t  type: passthrough\n\tedges: []\n"
    found = imported(text)
    assert "\t" not in found.text
    assert [(each.code, each.position.line) for each in found.changes] == [("tabs", 2)]
    assert load_text(found.text)


@pytest.mark.parametrize("text", ["a: [", "a:\n\tb: 1\n  c: [\n", ""])
def test_what_cannot_be_read_stays(text: str):
    assert imported(text).text == text


def test_an_anchor_that_is_used_twice_is_changed_once():
    text = agent("skills: &s {enabled: yes}\n", "x-more: *s\n").replace("      x-more: *s\n", "")
    assert "enabled: true" in imported(text).text


PROJECT = Path(__file__).parents[3]


def test_workflows_of_our_own_stay_as_they_are():
    files = [
        *(PROJECT / "yaml_instance").rglob("*.yaml"),
        *(PROJECT / "tests" / "conformance").rglob("workflow.yaml"),
    ]
    assert len(files) > 50
    for file in files:
        document = read_document(file, file.name)
        found = import_document(document)
        assert (found.text, found.changes) == (document.text, ()), file


def test_broken_files_are_changed_once_or_not_at_all():
    for file in (PROJECT / "tests" / "errors").rglob("*.yaml"):
        found = import_document(read_document(file, file.name))
        assert imported(found.text).changes == (), file
        assert len(found.origins) == found.text.count("\n") + 1


KEYS = st.sampled_from(
    ["id", "type", "config", "start", "dynamic", "params", "role", "rol", "name", "args", "env"]
)
WORDS = st.sampled_from(
    ["yes", "'no'", "010", "1_0", "mcp", "agent", "literal", "A", "", "null", "5", "2026-01-02"]
)
NODE = st.lists(st.tuples(KEYS, WORDS), max_size=6)


@given(st.lists(NODE, max_size=3), st.lists(st.tuples(KEYS, WORDS), max_size=3))
def test_whatever_a_file_says_it_is_done_after_one_time(
    nodes: list[list[tuple[str, str]]], others: list[tuple[str, str]]
):
    text = "graph:\n" + "".join(f"  {key}: {word}\n" for key, word in others) + "  nodes:\n"
    for node in nodes:
        text += "    - x-node: 1\n" + "".join(f"      {key}: {word}\n" for key, word in node)
    found = imported(text)
    assert imported(found.text).changes == ()
    assert len(found.origins) == found.text.count("\n") + 1
