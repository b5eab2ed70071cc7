"""How texts are cut."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.memory.passages import OVERLAP, PASSAGE, passages


def cut(text: str, name: str = "x.md") -> list[tuple[str, str, int]]:
    return [(p.title, p.text, p.line) for p in passages(text, name)]


MARKDOWN = """Before all.

# Guide

## Install

Use pip.

```sh
# not a heading
pip install x
```

### Offline

Copy it.

## Use ##

Call it.
"""


def test_markdown_is_cut_at_headings_that_are_kept_as_titles_of_what_is_below():
    assert cut(MARKDOWN) == [
        ("", "Before all.", 1),
        ("Guide", "## Install\n\nUse pip.\n\n```sh\n# not a heading\npip install x\n```", 5),
        ("Guide > Install", "### Offline\n\nCopy it.", 14),
        ("Guide", "## Use ##\n\nCall it.", 18),
    ]


def test_a_long_section_is_cut_in_pieces_that_overlap_and_name_it():
    words = " ".join(f"word{n}" for n in range(400))
    found = list(passages(f"# Guide\n\n## Long\n\n{words}\n", "x.md"))
    assert [p.title for p in found] == ["Guide", *["Guide > Long"] * (len(found) - 1)]
    for one, next_one in pairwise(found):
        shared = one.text[-OVERLAP:]
        assert next_one.text.startswith(shared[shared.index(" ") + 1 :])
        assert not next_one.text.startswith("ord")


PYTHON = '''"""What it is."""

import os

LIMIT = 5


# Adds.
@decorated
def add(a, b):

    return a + b


async def wait():
    pass


class Small:
    def one(self): ...


print(add(1, 2))
'''


def test_python_is_cut_at_top_level_definitions_with_what_stands_right_above_them():
    assert cut(PYTHON, "x.py") == [
        ("", '"""What it is."""\n\nimport os\n\nLIMIT = 5', 1),
        ("", "# Adds.\n@decorated\ndef add(a, b):\n\n    return a + b", 8),
        ("", "async def wait():\n    pass", 15),
        ("", "class Small:\n    def one(self): ...", 19),
        ("", "print(add(1, 2))", 23),
    ]


def test_a_long_class_is_cut_at_its_methods_and_a_long_function_in_pieces():
    body = "\n".join(f"        x{n} = {n}" for n in range(30))
    methods = "\n\n".join(f"    def m{n}(self):\n{body}" for n in range(3))
    found = cut(f"class Big:\n    x = 1\n\n{methods}\n", "x.py")
    assert [(title, text.split("(")[0].strip()) for title, text, _ in found] == [
        ("class Big", "class Big:\n    x = 1"),
        ("class Big", "def m0"),
        ("class Big", "def m1"),
        ("class Big", "def m2"),
    ]
    titles = [title for title, *_ in cut(f"def long():\n{(body + chr(10)) * 5}\n", "x.py")]
    assert titles == ["", *["def long"] * (len(titles) - 1)]
    assert len(titles) > 1


def test_python_that_does_not_parse_is_cut_at_blank_lines_before_lines_without_indent():
    text = "def a(:\n    x\n\n    y\n\n" + "z = 1\n" * 200
    assert cut(text, "x.py")[0][1] == "def a(:\n    x\n\n    y"


def test_other_code_is_cut_before_lines_without_indent_and_texts_at_every_blank_line():
    body = "  call();\n" * 60
    text = f"function a() {{\n{body}\n{body}}}\n\nfunction b() {{\n{body}}}\n"
    assert [t.split("\n")[0] for _, t, _ in cut(text, "x.js") if t.startswith("function")] == [
        "function a() {",
        "function b() {",
    ]
    paragraphs = "\n\n".join("word " * 120 for _ in range(3))
    assert [line for *_, line in cut(paragraphs, "x.txt")] == [1, 3, 5]


def test_short_paragraphs_go_together():
    assert cut("one\n\ntwo\n\n\nthree", "x.txt") == [("", "one\n\ntwo\n\nthree", 1)]


PIECES = st.text(alphabet="ab \n#`(", max_size=30)


@given(
    st.lists(
        st.sampled_from(["word", "def f():\n    pass\n", "# H\n", "\n\n", " ", "x" * 700]),
        max_size=60,
    ),
    st.lists(PIECES, max_size=30),
    st.sampled_from(["x.md", "x.py", "x.js", "x.txt", ""]),
)
def test_no_passage_is_empty_or_too_long_and_no_word_is_lost(
    parts: list[str], others: list[str], name: str
):
    text = "".join(a + b for a, b in zip(parts, [*others, *[""] * len(parts)], strict=False))
    found = list(passages(text, name))
    assert all(0 < len(p.text) <= PASSAGE and p.text.strip() for p in found)
    whole = " ".join(p.whole for p in found)
    lost = [w for w in text.split() if len(w) < OVERLAP and w not in whole]
    assert [w for w in lost if w.strip("#")] == []


@given(st.integers(0, 3), st.sampled_from([" ", "\n", "\n\n", ""]))
def test_the_line_of_a_passage_is_where_it_begins(blank: int, joint: str):
    text = "\n" * blank + joint.join(f"{n:05}" for n in range(700))
    lines = text.split("\n")
    for passage in passages(text, "x.txt"):
        assert passage.text.split("\n")[0] in lines[passage.line - 1]


@pytest.mark.parametrize("name", ["x.md", "x.py", "x.js", "x"])
def test_a_text_of_nothing_has_no_passages(name: str):
    assert cut("", name) == cut("\n \n\f\n", name) == []
