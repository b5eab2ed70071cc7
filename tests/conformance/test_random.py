"""The random workflows of the suite, in one process against scripted models."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.loading.loader import load_mapping
from devall.testing.scripted_model import ScriptedModels

LINES = (Path(__file__).parent / "random.jsonl").read_text(encoding="utf-8").splitlines()
CASES = [json.loads(line) for line in LINES]


def test_all_are_there() -> None:
    assert len(CASES) == 399


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
async def test_random_workflow(case: dict[str, Any], compare_calls: Callable[..., None]) -> None:
    expected = case["expected"]
    models = ScriptedModels(case["script"])
    loaded = load_mapping(case["workflow"], name=case["name"])
    result = await devall.run(loaded, task=case["script"]["task"], model_source=models)
    assert result.status == "completed", result.error
    assert result.answer == expected["final"]
    runs = {name: node.runs for name, node in result.nodes.items() if node.runs}
    assert runs == expected["runs"]
    sent = {
        model: [
            {"messages": [{"role": m.role, "content": m.text} for m in request.messages]}
            for request in requests
        ]
        for model, requests in models.requests.items()
    }
    compare_calls(sent, expected["calls"])
