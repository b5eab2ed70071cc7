"""Whatever a file holds: it loads, or all of its mistakes are reported, and nothing else happens."""

from __future__ import annotations

import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from devall.core.errors import ConfigError
from devall.graph.rules import check
from devall.loading.loader import load_mapping, load_text
from devall.loading.reports import render_github, render_json, render_text
from devall.plugins.functions import Kind, Trouble

SOUND: dict[str, Any] = {
    "version": "0.4.0",
    "vars": {"X": "${Y}", "Y": [1, "z"]},
    "graph": {
        "start": ["A"],
        "end": "C",
        "memory": [{"name": "notes", "type": "simple", "config": {"embedding": {"model": "e"}}}],
        "limits": {"max_seconds": 5},
        "nodes": [
            {
                "id": "A",
                "type": "agent",
                "config": {
                    "provider": "openai",
                    "name": "m",
                    "api_key": "${NO_SUCH_KEY}",
                    "params": {"temperature": 0.5},
                    "tooling": [
                        {"type": "function", "config": {"tools": [{"name": "f"}]}},
                        {"type": "mcp_remote", "server": "http://x", "headers": {"A": "b"}},
                    ],
                    "memories": {"name": "notes"},
                },
            },
            {"id": "B", "type": "loop_counter", "config": {"max_iterations": 2}},
            {
                "id": "C",
                "type": "subgraph",
                "config": {
                    "type": "config",
                    "config": {
                        "start": "X",
                        "nodes": [{"id": "X", "type": "literal", "config": {"content": "x"}}],
                        "edges": [],
                    },
                },
            },
        ],
        "edges": [
            {"from": "A", "to": "B", "condition": "f"},
            {"from": "B", "to": "A", "condition": {"type": "keyword", "config": {"any": ["x"]}}},
            {"from": "B", "to": "C", "dynamic": {"type": "map", "split": {"type": "regex",
             "config": {"pattern": "x"}}}},
        ],
    },
}  # fmt: skip


class Anything:
    def check(self, kind: Kind, name: str) -> Trouble | None:
        return None


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inside: list[tuple[Any, ...]] = []
    if isinstance(value, dict):
        inside = [each for key in value for each in places(value[key], (*path, key))]
    elif isinstance(value, list):
        inside = [each for n, item in enumerate(value) for each in places(item, (*path, n))]
    return [path, *inside] if path else inside


PLACES = places(SOUND)
VALUES = st.sampled_from(
    [None, "", "A", "B", "no", "true", "${NOPE}", "${X}", "${Y}", "$(Q: [1])", "$(Q: [1)", "(", 5,
     -1, 1.5, True, [], {}, [None], ["A"], {"type": "agent"}, {"type": "config", "config": {}}, [[]],
     {"id": "A"}, {"x": 1}, {"type": 5}, {"from": "A"}, {"config": {"config": {}}}]
)  # fmt: skip
KEYS = st.sampled_from(
    ["x-free", "typ", "config", "type", "id", "nodes", "edges", "role", "dynamic"]
)
CHANGES = st.lists(
    st.tuples(st.sampled_from(PLACES), st.sampled_from(["set", "drop", "add"]), KEYS, VALUES),
    max_size=6,
)


def changed(changes: list[tuple[tuple[Any, ...], str, str, Any]]) -> dict[str, Any]:
    root = copy.deepcopy(SOUND)
    for path, how, key, value in changes:
        target: Any = root
        try:
            for step in path[:-1]:
                target = target[step]
            if how == "set":
                target[path[-1]] = copy.deepcopy(value)
            elif how == "drop":
                del target[path[-1]]
            else:
                target[path[-1]][key] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError):
            continue  # an earlier change took the place away
    return root


def test_the_file_that_is_changed_is_sound():
    load_mapping(SOUND, check=lambda graph: check(graph, Anything()))


@given(CHANGES)
@settings(max_examples=50)
def test_any_change_is_reported_where_it_is(changes: list[Any]):
    text = json.dumps(changed(changes), indent=1)
    try:
        load_text(text, name="w.yaml", check=lambda graph: check(graph, Anything()))
    except ConfigError as error:
        found = error.diagnostics
        assert any(each.severity == "error" for each in found)
        lines = text.split("\n")
        for each in found:
            assert each.position.file == "w.yaml"
            assert 0 < each.position.line <= len(lines)
            assert 0 < each.position.column <= len(lines[each.position.line - 1]) + 1
            assert each.message
        assert [each.position for each in found] == sorted(each.position for each in found)
        assert render_text(found)
        assert len(json.loads(render_json(found))) == len(found)
        assert render_github(found).count("\n") == len(found) - 1


@given(CHANGES)
@settings(max_examples=50)
def test_plain_values_give_the_same_findings_as_their_text(changes: list[Any]):
    def findings(load: Any, source: Any) -> list[tuple[str, str]]:
        try:
            load(source, name="w.yaml", check=lambda graph: check(graph, Anything()))
        except ConfigError as error:
            return sorted((each.code, each.severity) for each in error.diagnostics)
        return []

    data = changed(changes)
    of_text = set(findings(load_text, json.dumps(data)))
    assert set(findings(load_mapping, data)) == of_text
