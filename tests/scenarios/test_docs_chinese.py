"""README.zh.md says what README.md says: the same commands, blocks, exit codes, names and links."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"```(\w*)\n(.*?)```", re.DOTALL)
HINT = "README.md has changed: say it in README.zh.md too"


@pytest.fixture(scope="module")
def english() -> str:
    return (PROJECT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def chinese() -> str:
    return (PROJECT / "README.zh.md").read_text("utf-8")


def without_comments(text: str) -> list[tuple[str, list[str]]]:
    """The fenced blocks: kind, and the lines without what stands behind a `#`."""
    return [
        (kind, [re.sub(r" +#.*", "", line) for line in block.splitlines()])
        for kind, block in FENCE.findall(text)
    ]


def spans(text: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", FENCE.sub("", text).replace("\n", " ")))


def rows(text: str) -> list[str]:
    """The first cells of all tables: exit codes, files, variables."""
    return re.findall(r"^\| ([^|]+) \|.*\n(?!\| --- )", text, re.MULTILINE)


def test_both_have_the_same_blocks_and_commands(english, chinese):
    assert without_comments(chinese) == without_comments(english), HINT


def test_both_name_the_same_exit_codes(english, chinese):
    codes = [[row for row in rows(text) if row[0].isdigit()] for text in (english, chinese)]
    assert codes[0] == codes[1], HINT
    assert len(codes[0]) == 10


def test_both_name_the_same_files_variables_and_options(english, chinese):
    assert spans(english) == spans(chinese), HINT
    named = [[row for row in rows(text) if row[0] in "[`"] for text in (english, chinese)]
    assert named[0] == named[1], HINT


def test_both_have_the_same_sections_and_links(english, chinese):
    def links(text: str) -> set[str]:
        return set(re.findall(r"\]\(([^)]+)\)", text))

    def levels(text: str) -> list[str]:
        return re.findall(r"^(#+) ", FENCE.sub("", text), re.MULTILINE)

    assert levels(english) == levels(chinese), HINT
    assert links(english) - {"README.zh.md"} == links(chinese) - {"README.md"}, HINT


def test_they_lead_to_each_other(english, chinese):
    assert "](README.zh.md)" in english
    assert "](README.md)" in chinese
