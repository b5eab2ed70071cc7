"""A file of functions that does not import, as `devall validate` tells it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Write = Callable[[str, str], Path]
Devall = Callable[..., "subprocess.CompletedProcess[str]"]

FLOW = """
version: 0.4.0
graph:
  start: A
  nodes:
    - id: A
      type: agent
      config: {{provider: openai, name: m, tooling: {{type: function, tools: [{{name: {tool}}}]}}}}
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import no_such_package_here\ndef bad(): ...", "no package `no_such_package_here`"),
        ("def bad(:\n", "bad.py:1: invalid syntax"),
    ],
    ids=["a package is missing", "a syntax error"],
)
def test_it_is_an_error_where_a_tool_lives_in_it_and_a_warning_elsewhere(
    devall: Devall, write: Write, text: str, said: str
) -> None:
    write("functions/function_calling/bad.py", text)
    write("functions/function_calling/good.py", "def good(): ...\n")
    elsewhere = devall("validate", write("good.yaml", FLOW.format(tool="good")), code=0)
    assert "warning [broken-functions] a file of tools does not import" in elsewhere.stdout
    assert said in elsewhere.stdout
    bound = devall("validate", write("bad.yaml", FLOW.format(tool='"bad:bad"')), code=3)
    assert "error [unknown-function] node A: tool `bad:bad`" in bound.stdout
    assert bound.stdout.count(said) == 1
