from __future__ import annotations

from pathlib import Path

import pytest

import devall
from bench import graphs


@pytest.mark.parametrize(
    ("text", "runs"),
    [(graphs.chain(7), 7), (graphs.wide(9), 9), (graphs.TWO, 2)],
    ids=["chain", "wide", "two"],
)
async def test_what_is_measured_runs_every_node(text: str, runs: int, tmp_path: Path):
    file = tmp_path / "measured.yaml"
    file.write_text(text, encoding="utf-8")
    result = await devall.run(file, task="x")
    assert result.status == "completed"
    assert sum(node.runs for node in result.nodes.values()) == runs


@pytest.mark.parametrize(
    "text",
    [
        graphs.agents(3, stream=True),
        graphs.agents(3, stream=False),
        graphs.branches(["slow", "quick"], ["quick", "slow"]),
        graphs.LOOP,
    ],
    ids=["streamed", "whole", "branches", "loop"],
)
def test_what_is_measured_is_a_valid_file(text: str, tmp_path: Path):
    file = tmp_path / "measured.yaml"
    file.write_text(text, encoding="utf-8")
    assert devall.load_workflow(file).warnings == ()
