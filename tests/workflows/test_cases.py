"""The cases in this folder: `devall test` runs them as well."""

from __future__ import annotations

from pathlib import Path

import pytest

import devall

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    "case", sorted(HERE.glob("*/case.yaml")), ids=lambda case: case.parent.name
)
async def test_a_workflow_does_what_its_case_expects(case: Path) -> None:
    (await devall.run_case(case)).check()
