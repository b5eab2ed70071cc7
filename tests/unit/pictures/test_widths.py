from __future__ import annotations

import pytest
from fontTools.ttLib import TTFont
from hypothesis import given
from hypothesis import strategies as st

from devall.pictures.fonts import font_files
from devall.pictures.widths import columns, cut, em_width, measure, wrapped

TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zl", "Zp"]), max_size=60)
WORDS = ["Programmer", "openai: gpt-4o-mini", "if code_fail", "WWW mm", "illicit, filled", "Ünder"]


@pytest.mark.parametrize("file", font_files(), ids=["bold", "regular"])
def test_letters_are_not_wider_than_is_reckoned_with(file: str):
    font = TTFont(file)
    glyphs, widths = font.getBestCmap(), font["hmtx"]
    measured = measure(1, bold="Bold" in file)
    for text in WORDS:
        width = sum(widths[glyphs[ord(char)]][0] for char in text) / font["head"].unitsPerEm
        assert width <= measured(text) <= 1.6 * width


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 3), ("审查", 4), ("é", 1), ("e\u0301", 1), ("😀", 2)]
)
def test_columns_are_those_of_a_terminal(text: str, width: int):
    assert columns(text) == width


@given(TEXTS, st.integers(3, 30), st.integers(1, 4))
def test_lines_fit_and_hold_the_text(text: str, room: int, most: int):
    text = " ".join(text.split())
    lines = wrapped(text, room, most, em_width)
    assert 1 <= len(lines) <= most
    assert all(em_width(line) <= room for line in lines)
    told = "".join("".join(lines).split())
    whole = "".join(text.split())
    assert told == whole or (lines[-1].endswith("…") and whole.startswith(told[:-1]))


def test_a_line_breaks_where_one_would_break_it():
    assert wrapped("write_the_report and check", 13, 3, len) == [
        "write_the_",
        "report and",
        "check",
    ]
    assert wrapped("审查员与翻译者", 4, 9, columns) == ["审查", "员与", "翻译", "者"]


@given(TEXTS, st.integers(2, 30))
def test_what_is_cut_fits(text: str, room: int):
    assert em_width(cut(text, room, em_width)) <= room
    assert cut(text, 10_000, em_width) == text
