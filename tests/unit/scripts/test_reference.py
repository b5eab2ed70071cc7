"""docs/reference.md is what `make reference` writes, and leaves nothing of the format out."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from devall.config.schema import json_schema


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(__file__).resolve().parents[3] / "scripts" / "reference.py"
    spec = importlib.util.spec_from_file_location("reference", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def page(script: ModuleType) -> str:
    return script.page()


def test_the_page_is_not_stale(script, page):
    assert script.PAGE.read_text("utf-8") == page, "run `make reference`"


def test_the_command_writes_it(project):
    makefile = (project / "Makefile").read_text("utf-8")
    assert re.search(
        r"^reference:.*\n\t@\$\(BIN\)/python scripts/reference\.py$", makefile, re.MULTILINE
    )


def documented(page: str) -> Iterator[tuple[str, str]]:
    """(text above the table, key) of every row."""
    for section in page.split("\n### ")[1:]:
        for key in re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE):
            yield section, key.rpartition(".")[2]


def test_every_key_of_the_format_has_a_row_with_a_text(page):
    keys = {key for _, key in documented(page)}
    ignored = {"type", "config"}
    for definition in json_schema()["$defs"].values():
        shown = {
            k for k, v in definition["properties"].items() if v.get("description") != "Ignored."
        }
        assert shown - keys <= ignored
    assert re.findall(r"\| \|$|\|  \|$", page.replace("| key | type | default | |", "")) == []


def test_every_kind_of_node_tool_store_and_condition_has_a_section(page):
    for definition in json_schema()["$defs"].values():
        kind = definition["properties"].get("type", {}).get("const")
        assert kind is None or f"\n`type: {kind}`\n" in page


def test_what_a_page_says_of_a_key_follows_its_model(page):
    assert "| `config.max_iterations` | whole number ≥ 1 | `10` |" in page
    assert "| `from` | text | **needed** |" in page
    assert "| `images` | true or false, `auto` | `auto` |" in page
    assert "### NodeBase\n" in page.partition("### AgentNode")[0]
