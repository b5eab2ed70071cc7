from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from devall.config.agents import PROVIDERS
from devall.core.diagnostics import Diagnostic
from devall.core.errors import ConfigError
from devall.graph.rules import check
from devall.loading.loader import LoadedGraph, load_mapping, load_text, load_workflow
from devall.models import routes
from devall.plugins.functions import FunctionCatalog, Kind, Trouble
from devall.plugins.shipped import shipped_functions

CONFORMANCE = Path(__file__).parents[2] / "conformance"


class Names:
    """Knows three functions and one module of two tools."""

    def check(self, kind: Kind, name: str) -> Trouble | None:
        known = {"edge": "yes", "edge_processor": "upper", "tool": "get"}
        return None if name in {known[kind], "mod:All", "a:get", "b:get"} else Trouble("unknown")

    def tool_names(self, name: str) -> tuple[str, ...]:
        return ("get", "put") if name == "mod:All" else ()


def loaded(nodes: str | Sequence[Any], edges: Sequence[str] = (), **more: Any) -> LoadedGraph:
    """A graph of passthrough nodes named in one text; edges as `A B` with settings behind."""
    made = [
        {"id": each, "type": "passthrough"} if isinstance(each, str) else each
        for each in (nodes.split() if isinstance(nodes, str) else nodes)
    ]
    ways = []
    for edge in edges:
        source, target, *rest = edge.split(maxsplit=2)
        ways.append({"from": source, "to": target} | (json.loads(rest[0]) if rest else {}))
    first = made[0]["id"] if made else "A"
    graph = {"start": first, "nodes": made, "edges": ways} | more
    return load_mapping({"graph": graph}).root


def found(nodes: str | Sequence[Any], edges: Sequence[str] = (), **more: Any) -> list[Diagnostic]:
    return check(loaded(nodes, edges, **more), Names())


def codes(*args: Any, **more: Any) -> list[str]:
    return [each.code for each in found(*args, **more)]


def report(text: str) -> list[Diagnostic]:
    with pytest.raises(ConfigError) as error:
        load_text(text, check=lambda graph: check(graph, Names()))
    return list(error.value.diagnostics)


def agent(name: str = "A", **config: Any) -> dict[str, Any]:
    return {"id": name, "type": "agent", "config": {"provider": "openai", "name": "m"} | config}


WHEN = '{"condition": {"type": "keyword", "config": {"any": ["x"]}}}'


@pytest.mark.parametrize(
    "file", sorted(CONFORMANCE.rglob("workflow.yaml")), ids=lambda file: file.parent.name
)
def test_conformance_cases_have_no_errors(file: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("BASE_URL", "http://127.0.0.1:1")
    functions = FunctionCatalog(None, shipped_functions())
    load_workflow(file, check=lambda graph: check(graph, functions))


def test_random_workflows_have_no_errors():
    functions = FunctionCatalog(None, shipped_functions())
    lines = (CONFORMANCE / "random.jsonl").read_text().splitlines()
    assert len(lines) == 399
    for line in lines:
        case = json.loads(line)
        load_mapping(
            case["workflow"], name=case["name"], check=lambda graph: check(graph, functions)
        )


def test_a_sound_graph_has_no_findings():
    assert codes("A B C", ["A B", f"B A {WHEN}", "B C " + WHEN], end="C") == []


def test_unknown_ids_are_errors_with_the_nearest_name():
    problems = found(
        "Poet Critic", ["Poet Critc", "Pote Critic"], start=["Poet", "Nobody"], end="Judge"
    )
    assert [(each.code, each.severity) for each in problems] == [("unknown-node", "error")] * 4
    hints = [each.hint for each in problems]
    assert "did you mean `Critic`?" in hints
    assert "did you mean `Poet`?" in hints
    assert hints.count("known: Poet, Critic") == 2


def test_a_mistyped_id_causes_no_finding_about_what_was_meant():
    assert codes("Poet Critic", ["Poet Critc"], end="Crtic") == ["unknown-node", "unknown-node"]


def test_with_an_unknown_edge_nothing_is_said_to_be_unreachable():
    assert codes("A B C", ["A Zebra"]) == ["unknown-node"]


def test_ids_are_unique():
    nodes = ["A", "B", {"id": "A", "type": "human"}]
    assert [(d.code, d.severity) for d in found(nodes, ["A B"])] == [("duplicate-node", "error")]


def test_a_graph_needs_nodes_and_a_start():
    assert codes([]) == ["no-nodes"]
    assert codes("A", start=[]) == ["no-start"]


@pytest.mark.parametrize(
    ("edges", "reason"),
    [
        ([], "no edge leads to it"),
        (['A B {"trigger": false}'], "no edge into it triggers"),
        (['A B {"condition": false}'], "have `condition: false`"),
        (["B B"], "no edge leads to it"),
        (["C B"], "triggered only by C, which never runs"),
    ],
)
def test_a_node_that_never_runs_is_a_warning_with_its_reason(edges: list[str], reason: str):
    problems = [d for d in found("A C B", edges) if d.message.startswith("node B never runs")]
    assert [(each.code, each.severity) for each in problems] == [("unreachable-node", "warning")]
    assert reason in problems[0].message


def test_an_end_that_cannot_be_reached_is_one_warning():
    problems = found("A B", end=["A", "B"])
    assert [(each.code, each.severity) for each in problems] == [("unreachable-end", "warning")]


def test_edges_that_never_fire_are_warnings():
    assert codes("A B", ["A B", 'B A {"condition": false}']) == ["edge-never-fires"]
    assert codes("A B C", ["A B", "C B"]) == ["unreachable-node", "edge-never-fires"]


def test_an_edge_that_neither_triggers_nor_carries_is_a_warning():
    nothing = '{"trigger": false, "carry_data": false}'
    assert codes("A B", ["A B", f"A B {nothing}"]) == ["edge-does-nothing"]
    clears = '{"trigger": false, "carry_data": false, "clear_context": true}'
    assert codes("A B", ["A B", f"A B {clears}"]) == []


def test_dynamic_edges_into_one_node_must_agree():
    one, other = '{"dynamic": {"type": "map"}}', '{"dynamic": {"type": "tree"}}'
    edges = ["A B", f"A C {one}", f"B C {other}"]
    assert [(d.code, d.severity) for d in found("A B C", edges)] == [("dynamic-disagrees", "error")]
    assert codes("A B C", ["A B", f"A C {one}", f"B C {one}", "B C"]) == []
    assert codes("A B C", [f"A C {one}", f"A B {other}"]) == []


def test_functions_must_be_known():
    process = {"type": "function", "config": {"name": "lower"}}
    edges = ['A B {"condition": "no"}', "A B " + json.dumps({"process": process})]
    nodes = [agent(tooling={"type": "function", "tools": [{"name": "get"}, {"name": "x"}]}), "B"]
    problems = found(nodes, edges)
    assert [(d.code, d.severity) for d in problems] == [("unknown-function", "error")] * 3
    assert [d.message for d in problems] == [
        "edge A -> B: unknown",
        "edge A -> B: unknown",
        "node A: unknown",
    ]


def test_known_functions_are_fine():
    process = {"type": "function", "config": {"name": "upper"}}
    edges = ['A B {"condition": "yes"}', "A B " + json.dumps({"process": process})]
    assert codes([agent(tooling={"type": "function", "tools": {"name": "get"}}), "B"], edges) == []


def test_memory_stores_must_be_there_and_their_names_unique():
    stores = [{"name": "notes", "type": "blackboard"}, {"name": "notes", "type": "simple"}]
    nodes = [agent(memories=[{"name": "note"}, {"name": "notes"}])]
    problems = found(nodes, memory=stores)
    assert [d.code for d in problems] == ["duplicate-memory", "unknown-memory"]
    assert problems[1].hint == "did you mean `notes`?"
    assert "define the store" in found(nodes)[0].hint


@pytest.mark.parametrize(
    ("sources", "severity"),
    [
        ([{"tools": ["get"]}, {"tools": ["get"]}], "error"),
        ([{"tools": ["mod:All"]}, {"tools": ["get"]}], "error"),
        ([{"tools": ["a:get", "b:get"]}], "error"),
        ([{"tools": ["get", "get"]}], "warning"),
        ([{"tools": ["mod:All", "get"]}], "warning"),
        ([{"tools": ["get"]}, {"tools": ["get"], "prefix": "p"}], None),
        ([{"tools": ["get"]}, {"tools": ["get"], "exclude": "g*"}], None),
        ([{"tools": ["get"]}, {"tools": ["mod:All"], "include": "put"}], None),
        ([{"tools": ["get"], "prefix": "p"}, {"tools": ["get"], "prefix": "p"}], "error"),
    ],
)
def test_tools_of_one_agent_have_different_names(sources: list[Any], severity: str | None):
    tooling = [
        {**each, "type": "function", "tools": [{"name": name} for name in each["tools"]]}
        for each in sources
    ]
    problems = found([agent(tooling=tooling)])
    assert [each.code for each in problems] == (["duplicate-tool"] if severity else [])
    assert {each.severity for each in problems} == ({severity} if severity else set())


def test_two_agents_may_have_the_same_tools():
    source = {"type": "function", "tools": {"name": "get"}}
    assert codes([agent("A", tooling=source), agent("B", tooling=source)], ["A B"]) == []


def test_a_setting_that_looks_like_a_misspelt_one_is_a_warning():
    params = {"temprature": 0.5, "top_k": 5, "min_p": 0.1, "seed": 1, "tool_lop_limit": 3}
    problems = found([agent(params=params)])
    assert [(d.code, d.severity, d.hint) for d in problems] == [
        ("unknown-param", "warning", "did you mean `temperature`?"),
        ("unknown-param", "warning", "did you mean `tool_loop_limit`?"),
    ]


def test_a_provider_that_does_not_ship_is_a_warning_with_the_nearest_one():
    assert codes([agent(provider="ollama")]) == []
    [problem] = found([agent(provider="opena")])
    assert (problem.code, problem.severity) == ("unknown-provider", "warning")
    assert problem.hint.startswith("did you mean `openai`? known: openai, gemini")


def test_the_providers_of_the_format_are_those_that_models_are_found_for():
    assert tuple(routes.PROVIDERS) == PROVIDERS


def test_a_vote_needs_voters_and_no_edges():
    assert codes("A", ["A A"], is_majority_voting=True) == ["voting-with-edges", "voting-alone"]
    assert codes("A B", is_majority_voting=True) == []


def test_a_loop_limit_on_a_node_means_nothing():
    node = {"id": "A", "type": "passthrough", "limits": {"max_loop_iterations": 5}}
    assert codes([node]) == ["limit-without-effect"]


def test_graphs_within_nodes_are_checked_as_well():
    inner = {"start": "X", "nodes": [{"id": "X", "type": "passthrough"}], "end": "Y"}
    node = {"id": "A", "type": "subgraph", "config": {"type": "config", "config": inner}}
    assert codes([node]) == ["unknown-node"]


def test_a_graph_that_two_nodes_name_is_checked_once(tmp_path: Path):
    (tmp_path / "sub.yaml").write_text(
        "graph: {start: X, nodes: [{id: X, type: passthrough}, {id: Y, type: passthrough}]}"
    )
    node = "{{id: {}, type: subgraph, config: {{type: file, config: {{path: sub.yaml}}}}}}"
    nodes = f"[{node.format('A')}, {node.format('B')}]"
    text = f"graph: {{start: A, nodes: {nodes}, edges: [{{from: A, to: B}}]}}"
    graph = load_text(text, folder=tmp_path).root
    assert [each.code for each in check(graph, Names())] == ["unreachable-node"]


def test_an_edge_to_a_node_whose_config_is_broken_is_fine():
    problems = report("""\
graph:
  start: A
  nodes:
    - {id: A, type: agent, config: {provider: o}}
    - {id: B, type: nothing}
    - {id: C, type: passthrough}
  edges:
    - {from: A, to: B}
    - {from: B, to: C}
""")
    assert [each.code for each in problems] == ["missing-key", "unknown-type"]


def test_a_node_without_an_id_may_be_the_one_that_an_edge_means():
    text = """\
graph:
  start: A
  nodes:
    - {id: A, type: passthrough}
    - {type: passthrough}
  edges:
    - {from: A, to: Beta}
"""
    assert [each.code for each in report(text)] == ["missing-key"]
    assert [each.code for each in report(text + "    - {from: A, to: Gamma}\n")] == [
        "missing-key",
        "unknown-node",
    ]


def test_a_broken_edge_hides_no_mistake_elsewhere_and_causes_none():
    problems = report("""\
graph:
  start: A
  nodes:
    - {id: A, type: passthrough}
    - {id: B, type: passthrough}
    - {id: C, type: passthrough}
  edges:
    - {from: A, to: B, condition: {type: keyword}}
    - {from: B}
    - {from: C, to: Nowhere}
""")
    assert [each.code for each in problems] == ["missing-key", "missing-key", "unknown-node"]


@pytest.mark.parametrize("key", ["edges", "edgs", "edges: 5"])
def test_edges_that_are_not_understood_leave_nothing_unreachable(key: str):
    place = "" if key == "edges" else "  "
    rest = f"{place}{key}" if ":" in key else f"{place}{key}: [{{from: A, to: B}}]"
    nodes = "[{id: A, type: passthrough}, {id: B, type: passthrough}]"
    problems = report(f"graph:\n  start: A\n  nodes: {nodes}\n{rest}\n")
    assert len(problems) == 1


def test_a_store_whose_config_is_broken_is_there_for_agents():
    problems = report("""\
graph:
  start: A
  memory: [{name: notes, type: simple, config: 5}]
  nodes:
    - {id: A, type: agent, config: {provider: openai, name: m, memories: {name: notes}}}
""")
    assert [each.code for each in problems] == ["wrong-type"]


def test_ten_times_the_nodes_take_about_ten_times_as_long():
    def cost(count: int) -> float:
        nodes = [f"n{n}" for n in range(count)]
        edges = [f"n{n} n{n + 1}" for n in range(count - 1)]
        edges += [f"n{n + 1} n{n} {WHEN}" for n in range(0, count - 1, 2)]
        edges += [f"n{n} gone{n}" for n in range(0, count, 3)]
        graph = loaded(nodes, edges)
        start = time.process_time()
        assert check(graph, Names())
        return time.process_time() - start

    cost(50)
    small = min(cost(300) for _ in range(3))
    assert cost(3000) < 25 * small
