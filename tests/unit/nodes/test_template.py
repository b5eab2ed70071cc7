"""Nodes that fill in a template."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.app import RunResult
from devall.core.errors import ConfigError


@pytest.fixture
def filled(tmp_path: Path) -> Callable[..., Any]:
    """A run of a template node with a task."""

    async def run(template: str, task: str = "hi", **node: Any) -> RunResult:
        config = {"id": "T", "type": "template", "config": {"template": template}} | node
        after = {"id": "End", "type": "passthrough"}
        graph = {"start": "T", "nodes": [config, after], "edges": [{"from": "T", "to": "End"}]}
        file = tmp_path / "flow.yaml"
        file.write_text(json.dumps({"version": "0.4.0", "graph": graph}))
        return await devall.run(file, task=task)

    return run


@pytest.mark.parametrize(
    ("template", "task", "text"),
    [
        ("<{{ input }}>", "hi", "<hi>"),
        ("{{ inputs | length }}", "hi", "1"),
        ("{{ (input | fromjson).a[1] }}", '{"a": [1, 2]}', "2"),
        ("{% for x in input | fromjson %}{{ loop.index }}={{ x }};{% endfor %}", "[7]", "1=7;"),
        ("{{ input | fromjson | tojson }}", '{"a":"ü<"}', '{"a": "ü<"}'),
        ("{{ input }}", "{{ environment }}<b>", "{{ environment }}<b>"),
    ],
)
async def test_the_last_input_is_put_into_the_template(
    filled: Callable[..., Any], template: str, task: str, text: str
):
    assert (await filled(template, task)).answer == text


async def test_secrets_of_the_environment_are_not_to_be_had(
    filled: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("PLACE", "Oslo")
    monkeypatch.setenv("SOME_API_KEY", "sk-1234567890")
    assert (await filled("{{ environment.PLACE }}")).answer == "Oslo"
    missing = await filled("{{ environment.SOME_API_KEY }}")
    assert missing.outcome.error.code == "template"


@pytest.mark.parametrize(
    ("template", "told"),
    [
        ("{{ inptu }}", "'inptu' is undefined"),
        ("{{ input | fromjson }}", "no JSON"),
        ("{{ input.__class__.__mro__ }}", "unsafe"),
        ("{% for i in range(10 ** 7) %}{% endfor %}", "too big"),
        ("{{ 1 / 0 }}", "division by zero"),
    ],
)
async def test_what_cannot_be_filled_in_is_an_error_of_the_node(
    filled: Callable[..., Any], template: str, told: str
):
    result = await filled(template)
    assert (result.status, result.outcome.error.code) == ("failed", "template")
    assert "T" in result.outcome.error.message
    assert told in result.outcome.error.message
    assert (await filled(template, on_error="continue")).status == "completed"


@pytest.mark.parametrize(
    ("template", "told"),
    [("a\n{% if %}", "line 2 of the template"), ("{{ input | nope }}", "nope"), ("{{ x", "line 1")],
)
async def test_what_is_no_template_is_found_before_anything_runs(
    filled: Callable[..., Any], template: str, told: str
):
    with pytest.raises(ConfigError) as caught:
        await filled(template)
    [problem] = [each for each in caught.value.diagnostics if each.severity == "error"]
    assert problem.code == "bad-template"
    assert told in problem.message
