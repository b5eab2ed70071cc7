"""Edges whose condition is an expression, in whole runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.errors import ConfigError
from devall.loading.loader import LoadedWorkflow, load_mapping


def literal(name: str, content: str) -> dict[str, Any]:
    return {"id": name, "type": "literal", "config": {"content": content}}


def edge(source: str, target: str, when: str) -> dict[str, Any]:
    condition = {"type": "expression", "config": {"when": when}}
    return {"from": source, "to": target, "condition": condition}


def workflow(content: str, edges: Sequence[Mapping[str, Any]]) -> LoadedWorkflow:
    nodes = [literal("A", content), literal("Good", "good"), literal("Bad", "bad")]
    graph = {"start": "A", "nodes": nodes, "edges": list(edges)}
    return load_mapping({"graph": graph}, folder=Path.cwd())


@pytest.mark.parametrize(
    ("content", "answer"),
    [
        ('{"score": 9, "remarks": "ok"}', "good"),
        ('{"score": 7}', "bad"),
        ("no JSON at all", "bad"),
        ('```json\n{"score": 8}\n```', "good"),
    ],
)
async def test_of_an_expression_and_its_opposite_exactly_one_edge_fires(content, answer):
    edges = [edge("A", "Good", "score >= 8"), edge("A", "Bad", "not (score >= 8)")]
    result = await devall.run(workflow(content, edges))
    assert (result.status, result.answer) == ("completed", answer)
    assert sorted(name for name, each in result.nodes.items() if each.runs) == sorted(
        ["A", answer.capitalize()]
    )


async def test_values_that_do_not_go_together_fail_the_run_with_the_edge():
    result = await devall.run(workflow('{"score": "9"}', [edge("A", "Good", "score >= 8")]))
    assert (result.status, result.exit_code) == ("failed", 1)
    assert result.error is not None
    assert (result.error.code, result.error.node) == ("expression", "A")
    assert "`score >= 8` of edge A -> Good" in result.error.message
    assert "the text '9' with the number 8" in result.error.message


def test_a_wrong_expression_is_found_before_anything_runs():
    with pytest.raises(ConfigError) as caught:
        workflow("x", [edge("A", "Good", "score >= ")])
    assert [each.code for each in caught.value.diagnostics] == ["bad-expression"]
