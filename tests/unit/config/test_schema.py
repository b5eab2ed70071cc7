from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from devall.config.schema import json_schema
from devall.loading.document import parse_document

ERRORS = Path(__file__).parents[2] / "errors" / "cases"


@pytest.fixture(scope="module")
def validator() -> Any:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def properties(schema: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).items()
        for each in schema.values():
            yield from properties(each)
    elif isinstance(schema, list):
        for each in schema:
            yield from properties(each)


def test_every_key_is_described_by_the_docstring_under_it():
    found = dict(properties(json_schema()))
    assert [name for name, schema in found.items() if not schema.get("description")] == []
    assert found["max_attempts"]["description"] == "Attempts in all, the first one included."


def test_every_mapping_is_described():
    assert [n for n, s in json_schema()["$defs"].items() if not s.get("description")] == []


@pytest.mark.parametrize(
    "graph",
    [
        "{start: A, nodes: [{id: A, type: passthrough}]}",
        "{start: [A], end: null, x-note: 1, nodes: [{id: A, type: human, description: null}]}",
        "{start: A, nodes: [{id: A, type: agent, config: {provider: p, name: m,"
        " tooling: {type: mcp_local, command: x, args: null}}}]}",
        "{start: A, nodes: [], edges: [{from: A, to: B, condition: true},"
        " {from: A, to: B, condition: code_pass, description: old},"
        " {from: A, to: B, dynamic: {type: map, split: {type: regex, config: {pattern: x}}}}]}",
    ],
)
def test_what_loads_fits_the_schema(graph: str, validator: Any):
    root = parse_document(f"version: 0.4.0\ngraph: {graph}\n", "x").root
    assert [each.message for each in validator.iter_errors(root)] == []


@pytest.mark.parametrize(
    "name", ["misspelt-keys", "wrong-types", "unknown-types", "missing-keys", "unknown-values"]
)
def test_what_is_broken_does_not_fit_the_schema(name: str, validator: Any):
    root = parse_document((ERRORS / name / "workflow.yaml").read_text(), "x").root
    assert not validator.is_valid(root)
