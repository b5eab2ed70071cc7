"""The cases of the conformance suite, run by scripted models, against their estimates."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import devall
from devall.cli.plan_facts import gather
from devall.core.messages import user
from devall.estimates.estimate import estimate
from devall.estimates.texts import estimated
from devall.graph.checked import load_workflow
from devall.graph.compile import compile_graph
from devall.nodes.crew import Overrides
from devall.testing.scripted_model import ScriptedModels

CASES = sorted((Path(__file__).parents[2] / "conformance" / "cases").iterdir())


def read(place: Path) -> dict[str, Any]:
    return YAML(typ="safe").load(place.read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
async def test_a_case_runs_within_its_estimate(
    case: Path, workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = read(case / "script.yaml")
    for name, value in {"BASE_URL": "http://x", "API_KEY": "k", **script.get("env", {})}.items():
        monkeypatch.setenv(name, value)
    loaded = load_workflow(case / "workflow.yaml", variables=script.get("vars", {}))
    facts = await gather(
        loaded,
        task=user(script["task"]),
        overrides=Overrides(),
        ex_tools=(),
        functions_dir=None,
        units=None,
        logs=workspace,
    )
    found = estimate(compile_graph(loaded.root), facts)
    models = ScriptedModels(script)
    answers = {"H": script["human"]} if "human" in script else {}
    result = await devall.run(loaded, task=script["task"], model_source=models, answers=answers)
    assert result.status == "completed", result.error
    assert result.usage.model_calls >= found.least.model_calls
    sent = dict.fromkeys(models.requests, 0.0)
    for node in found.all_nodes():
        runs = result.nodes[node.name].runs
        assert runs >= node.least.runs, node.name
        assert node.runs.value is not None
        assert runs <= node.runs.value, node.name
        if node.agent is not None:
            calls = result.usage_by_node[node.name].model_calls if runs else 0
            assert node.cost.model_calls.value is not None
            assert node.least.model_calls <= calls <= node.cost.model_calls.value, node.name
            # Without `max_tokens` answers may have any length: their share is unknown.
            most = node.cost.input_tokens.value
            if node.agent.model in sent:
                sent[node.agent.model] += float("inf") if most is None else most
    for name, most in sent.items():
        assert sum(estimated(each.messages, each.tools) for each in models.requests[name]) <= most
