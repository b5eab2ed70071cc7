from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.config.nodes import AgentNode, LiteralNode
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, UsageError
from devall.loading.loader import LoadedGraph, load_mapping, load_text, load_workflow
from devall.loading.repair import NO_FLAWS
from devall.loading.reports import render_github, render_json, render_text

LITERAL = "{id: A, type: literal, config: {content: 'x ${X}'}}"


def graph(nodes: str, rest: str = "", start: str = "A") -> str:
    return f"graph:\n  start: {start}\n  nodes:\n{indent(dedent(nodes), '    ')}\n{rest}"


def broken(text: str, **options: Any) -> list[Diagnostic]:
    with pytest.raises(ConfigError) as error:
        load_text(text, **options)
    return list(error.value.diagnostics)


def codes(found: Iterable[Diagnostic]) -> list[tuple[str, int]]:
    return [(each.code, each.position.line) for each in found]


def content(loaded: LoadedGraph, number: int = 0) -> str:
    node = loaded.config.nodes[number]
    assert isinstance(node, LiteralNode)
    return node.config.content


def put(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(dedent(text))
    return folder / "main.yaml"


def test_a_file_is_loaded_with_its_variables(tmp_path: Path):
    file = put(tmp_path, main="vars: {X: 1}\n" + graph(f"- {LITERAL}"))
    loaded = load_workflow(file)
    assert (loaded.path, loaded.root.file) == (file, file)
    assert content(loaded.root) == "x 1"
    assert loaded.config.vars == {"X": 1}
    assert loaded.warnings == ()


def test_given_variables_override_those_of_the_file():
    text = "vars: {X: 1}\n" + graph(f"- {LITERAL}")
    assert content(load_text(text, variables={"X": 2}).root) == "x 2"
    assert content(load_text(text, variables={"X": "${Y}"}).root) == "x ${Y}"


def test_a_missing_file_or_a_directory_is_a_mistake_of_the_call(tmp_path: Path):
    with pytest.raises(UsageError, match="there is no file"):
        load_workflow(tmp_path / "none.yaml")
    with pytest.raises(UsageError, match="is a directory"):
        load_workflow(tmp_path)


def test_a_key_that_is_not_set_waits_for_the_run(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    text = graph("""\
        - id: A
          type: agent
          config:
            provider: openai
            name: m
            api_key: ${NO_SUCH_KEY}
            base_url: http://${NO_SUCH_HOST}/v1
    """)
    loaded = load_text(text)
    node = loaded.root.config.nodes[0]
    assert isinstance(node, AgentNode)
    assert (node.config.api_key, node.config.base_url) == (None, None)
    path = ("nodes", 0, "config")
    assert loaded.root.missing_variables == (
        ((*path, "api_key"), "NO_SUCH_KEY", Position("<text>", 9, 18)),
        ((*path, "base_url"), "NO_SUCH_HOST", Position("<text>", 10, 19)),
    )


def test_an_embedding_may_wait_as_well_and_nothing_else_may():
    text = graph(
        "- {id: A, type: passthrough}",
        "  memory:\n"
        + indent(
            dedent("""\
        - {name: s, type: simple, config: {embedding: {api_key: "${NO_KEY}"}}}
        - {name: m, type: mem0, config: {api_key: "${NO_KEY}"}}
        """),
            "    ",
        ),
    )
    assert codes(broken(text)) == [("unresolved-variable", 7)]


def test_a_missing_variable_belongs_to_the_graph_that_it_stands_in():
    text = graph("""\
        - id: A
          type: subgraph
          config:
            type: config
            config:
              start: X
              nodes:
                - {id: X, type: agent, config: {provider: o, name: m, api_key: "${NO_KEY}"}}
    """)
    loaded = load_text(text)
    assert loaded.root.missing_variables == ()
    inner = loaded.root.subgraphs["A"]
    assert [(path, name) for path, name, _ in inner.missing_variables] == [
        (("nodes", 0, "config", "api_key"), "NO_KEY")
    ]


def test_a_key_by_way_of_vars_waits_as_well():
    text = "vars: {KEY: '${NO_KEY}'}\n" + graph(
        '- {id: A, type: agent, config: {provider: o, name: m, api_key: "${KEY}"}}'
    )
    assert [name for _, name, _ in load_text(text).root.missing_variables] == ["NO_KEY"]
    also = text.replace("name: m", 'name: "${KEY}"')
    assert codes(broken(also)) == [("unresolved-variable", 1)]


def test_secrets_are_collected_and_never_shown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MY_TOKEN", "token-1")
    monkeypatch.setenv("OTHER_API_KEY", "default-1")
    text = graph("""\
        - id: A
          type: agent
          config:
            provider: o
            name: m
            api_key: key-1
            role: ${MY_TOKEN}
            tooling:
              type: mcp_remote
              server: http://x
              headers: {Authorization: Bearer bearer-1, Other: other-1}
    """)
    loaded = load_text(text)
    assert {"token-1", "key-1", "bearer-1", "Bearer bearer-1", "default-1"} <= loaded.secrets
    assert "other-1" not in loaded.secrets
    assert "token-1" not in repr(loaded).replace("role='token-1'", "")


@given(st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=6, max_size=12))
def test_no_report_shows_a_secret(word: str):
    secret = f"zq{word}qz"
    text = graph(
        f"""\
        - id: A
          type: agent
          config:
            provider: o
            name: 5
            api_key: {secret}
            input_mode: "${{MY_KEY}}"
            params: {{timeout: "${{MY_KEY}}", tool_mode: "${{MY_KEY}}"}}
            retry: {{max_attempts: x, x-note: {secret}}}
            tooling: [{{type: mcp_remote, server: "${{MY_KEY}}", headers: {{Authorization: {secret}, B: 1}}}}]
            {secret}: 1
        - {{id: A, type: "${{MY_KEY}}"}}
    """,
        f"  end: '{secret}'\n",
    )
    found = broken(text, variables={"MY_KEY": secret})
    assert len(found) > 6
    for form in (render_text, render_json, render_github):
        assert secret not in form(found)


def test_all_mistakes_come_in_one_report_in_the_order_of_the_file():
    text = graph("""\
        - {id: A, type: literal, config: {content: 5}}
        - {id: B, type: agent, config: {provider: o, name: "${NOPE}"}}
        - {id: B, type: passthrough, id: C}
    """)

    def check(loaded: LoadedGraph) -> list[Diagnostic]:
        return [
            Diagnostic("rule", "last", loaded.locate(("nodes", 2))),
            Diagnostic("rule", "first", loaded.locate(("start",)), severity="warning"),
            Diagnostic("rule", "first again", loaded.locate(("start",)), severity="warning"),
        ]

    found = broken(text, check=check)
    assert codes(found) == [
        ("rule", 2),
        ("wrong-type", 4),
        ("unresolved-variable", 5),
        ("rule", 6),
        ("duplicate-key", 6),
    ]
    assert found[1].quoted == "    - {id: A, type: literal, config: {content: 5}}"


def test_warnings_alone_do_not_stop():
    def check(loaded: LoadedGraph) -> list[Diagnostic]:
        return [Diagnostic("rule", "x", loaded.locate(("start",)), severity="warning")]

    loaded = load_text(graph("- {id: A, type: passthrough, dynamic: {type: map}}"), check=check)
    assert codes(loaded.warnings) == [("rule", 2), ("misplaced-dynamic", 4)]


def test_what_is_broken_is_marked_for_the_rules_and_the_rest_is_there():
    seen: list[LoadedGraph] = []
    text = graph(
        """\
        - {id: A, type: agent, config: {provider: o}}
        - {id: B, type: passthrough, colour: red}
        - {type: passthrough}
        - {id: D, type: passthrough}
        """,
        "  edges:\n    - {from: A, to: D, condition: {type: keyword}}\n    - {from: D}\n"
        "    - {from: D, to: B}\n  limits: 5\n",
    )
    broken(text, check=lambda loaded: seen.append(loaded) or [])
    (loaded,) = seen
    assert [node.id for node in loaded.config.nodes] == ["A", "B", "\x002", "D"]
    assert (loaded.flaws.nodes, loaded.flaws.edges) == (frozenset({0, 2}), frozenset({0, 1}))
    assert [(e.from_, e.to) for e in loaded.config.edges] == [("A", "D"), ("D", "\0"), ("D", "B")]
    assert "limits" in loaded.flaws.keys


def test_nothing_is_marked_in_a_sound_workflow():
    loaded = load_text(graph("- {id: A, type: passthrough}"))
    assert loaded.root.flaws == NO_FLAWS


def test_an_unresolved_value_is_reported_once_and_not_for_its_type():
    found = broken(graph("- {id: A, type: passthrough, timeout: '${NOPE}'}"))
    assert codes(found) == [("unresolved-variable", 4)]


def test_values_are_located_where_the_file_has_them():
    text = graph(
        """\
        - id: A
          type: agent
          config:
            provider: o
            name: m
            tooling:
              type: function
              tools: [{name: f}]
        """,
        "  edges:\n    - from: A\n      to: A\n      condition: code_pass\n",
    )
    locate = load_text(text).root.locate

    def at(*path: str | int) -> tuple[int, int]:
        found = locate(path)
        return found.line, found.column

    assert at("start", 0) == (2, 10)
    assert at("nodes", 0) == (4, 7)
    tool = ("config", "tooling", 0, "config", "tools", 0, "name")
    assert at("nodes", 0, *tool) == (11, 26)
    assert at("edges", 0, "condition", "config", "name") == (16, 18)
    assert at("nodes", 0, "nowhere") == at("nodes", 0)


def test_a_named_graph_is_loaded_relative_to_the_file_that_names_it(tmp_path: Path):
    (tmp_path / "parts").mkdir()
    put(
        tmp_path / "parts",
        sub=graph("- {id: A, type: subgraph, config: {type: file, config: {path: deep.yaml}}}"),
        deep=graph(f"- {LITERAL}"),
    )
    file = put(
        tmp_path,
        main="vars: {X: outer}\n"
        + graph("- {id: A, type: subgraph, config: {type: file, config: {path: parts/sub.yaml}}}"),
    )
    deep = load_workflow(file).root.subgraphs["A"].subgraphs["A"]
    assert deep.file == tmp_path / "parts" / "deep.yaml"
    assert content(deep) == "x outer"


def test_a_named_graph_has_its_own_vars_above_those_of_the_parent(tmp_path: Path):
    sub = "{id: A, type: subgraph, config: {type: file, config: {path: sub.yaml}}}"
    file = put(
        tmp_path,
        main="vars: {X: outer, Y: outer}\n" + graph(f"- {sub}"),
        sub="vars: {X: 'inner ${Y}'}\n" + graph(f"- {LITERAL}"),
    )
    assert content(load_workflow(file).root.subgraphs["A"]) == "x inner outer"
    given_values = load_workflow(file, variables={"X": "given"})
    assert content(given_values.root.subgraphs["A"]) == "x given"


def test_an_edited_file_is_read_anew(tmp_path: Path):
    sub = "{id: A, type: subgraph, config: {type: file, config: {path: sub.yaml}}}"
    file = put(tmp_path, main=graph(f"- {sub}"), sub="vars: {X: 1}\n" + graph(f"- {LITERAL}"))
    assert content(load_workflow(file).root.subgraphs["A"]) == "x 1"
    put(tmp_path, sub="vars: {X: 2}\n" + graph(f"- {LITERAL}"))
    assert content(load_workflow(file).root.subgraphs["A"]) == "x 2"


def test_files_that_include_each_other_are_an_error(tmp_path: Path):
    node = "- {{id: A, type: subgraph, config: {{type: file, config: {{path: {}.yaml}}}}}}"
    file = put(
        tmp_path,
        main=graph(node.format("one")),
        one=graph(node.format("two")),
        two=graph(node.format("one")),
    )
    with pytest.raises(ConfigError, match=r"one.yaml -> two.yaml -> one.yaml") as error:
        load_workflow(file)
    assert [each.code for each in error.value.diagnostics] == ["include-cycle"]


def test_a_broken_file_that_two_nodes_name_is_reported_once(tmp_path: Path):
    node = "- {{id: {}, type: subgraph, config: {{type: file, config: {{path: sub.yaml}}}}}}"
    file = put(
        tmp_path,
        main=graph(node.format("A") + "\n" + node.format("B")),
        sub=graph("- {id: A, type: literal}"),
    )
    with pytest.raises(ConfigError) as error:
        load_workflow(file)
    assert [(d.code, Path(d.position.file).name) for d in error.value.diagnostics] == [
        ("missing-key", "sub.yaml")
    ]


def test_the_file_of_an_output_schema_must_be_there(tmp_path: Path):
    agent = "- {id: A, type: agent, config: {provider: o, name: m, output_schema: answer.json}}"
    assert codes(broken(graph(agent), folder=tmp_path)) == [("missing-file", 4)]
    (tmp_path / "answer.json").write_text("{}")
    load_text(graph(agent), folder=tmp_path)


def test_plain_values_are_loaded_like_a_file():
    data = {
        "vars": {"X": 1},
        "graph": {
            "start": "A",
            "nodes": [{"id": "A", "type": "literal", "config": {"content": "x ${X}"}}],
        },
    }
    assert content(load_mapping(data, name="made").root) == "x 1"
    data["graph"]["nodes"].append({"id": "B"})  # type: ignore[index]
    with pytest.raises(ConfigError) as error:
        load_mapping(data, name="made")
    assert str(error.value).startswith("made: error [missing-key] node B: item 2 of `nodes` has no")


def test_the_environment_file_is_for_the_run_as_well(tmp_path: Path):
    (tmp_path / ".env").write_text("ONLY_HERE=x\n")
    loaded = load_workflow(put(tmp_path, main=graph("- {id: A, type: passthrough}")))
    assert loaded.environment.values["ONLY_HERE"] == "x"


def test_loading_takes_about_ten_times_as_long_for_ten_times_the_nodes():
    def cost(nodes: int) -> float:
        data = {
            "graph": {
                "start": "n0",
                "nodes": [
                    {"id": f"n{n}", "type": "literal", "config": {"content": "${X}"}}
                    for n in range(nodes)
                ],
                "edges": [{"from": f"n{n}", "to": f"n{n + 1}"} for n in range(nodes - 1)],
            }
        }
        start = time.process_time()
        load_mapping(data, variables={"X": "x"})
        return time.process_time() - start

    cost(100)
    small = min(cost(300) for _ in range(3))
    assert cost(3000) < 25 * small
