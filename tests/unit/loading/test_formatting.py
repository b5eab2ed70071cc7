from __future__ import annotations

import io
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from devall.loading.document import parse_document, read_document
from devall.loading.formatting import format_yaml

PROJECT = Path(__file__).parents[3]
FOLDERS = ("yaml_instance", "tests/conformance", "tests/errors")


def formatted(text: str) -> str:
    document = parse_document(text, "w.yaml")
    assert document.is_readable
    return format_yaml(document)


def lines(text: str) -> list[str]:
    """The lines without what formatting may change."""
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]


def check(text: str) -> str:
    """The formatted text, after a look at all that must be true of it."""
    document = parse_document(text, "w.yaml")
    new = format_yaml(document)
    again = parse_document(new, "w.yaml")
    assert again.root == document.root
    assert format_yaml(again) == new
    return new


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_file_keeps_its_values_and_lines_and_is_done_after_one_time(folder: str):
    files = sorted((PROJECT / folder).rglob("*.yaml"))
    assert files
    for file in files:
        document = read_document(file, file.name)
        if document.is_readable:
            assert lines(check(document.text)) == lines(document.text), file


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "b: ",
                ": ",
                "- ",
                "-   ",
                "\n",
                "\n\n\n",
                "  ",
                "    ",
                "# c",
                " # d",
                "'x'",
                '"y"',
                '"',
                "'",
                "|",
                "|+",
                "|2",
                ">-",
                "[",
                "]",
                "{",
                "}",
                ", ",
                "&x ",
                "*x",
                "? ",
                "!!str ",
                "1",
                "\t",
                "---",
            ]
        ),
        max_size=18,
    )
)
@example(["b: ", "|+", "\n", "  ", "a", "\n\n\n"])
@example(["b: ", "|2", "\n", "    ", "a", "\n", "  ", "b: ", "\n", "# c"])
@example(["b: ", "\n", "- ", "a", "\n", "# c", "\n", "- ", "b: ", "1"])
def test_any_yaml_keeps_its_values_and_is_done_after_one_time(parts: list[str]):
    text = "".join(parts)
    assume(parse_document(text, "w.yaml").is_readable)
    check(text)


TEXTS = st.text("ab :#'\"-|>\n\t{}[]$é", max_size=24)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 99) | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=16,
)


@settings(max_examples=40)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=3), VALUES, min_size=1),
    st.sampled_from([(2, 2, 0), (2, 4, 2), (4, 6, 3), (3, 3, 0)]),
    st.sampled_from([20, 80]),
)
def test_written_values_are_the_same_when_they_are_formatted(
    values: dict[str, object], indent: tuple[int, int, int], width: int
):
    yaml = YAML(typ="rt", pure=True)
    yaml.indent(*indent)
    yaml.width = width
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(values, stream)
    assume(parse_document(stream.getvalue(), "w.yaml").is_readable)
    check(stream.getvalue())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a:\n- 1\n- b: 2\n  c: 3\n", "a:\n  - 1\n  - b: 2\n    c: 3\n"),
        ("a:\n      b:\n        c:   1\n", "a:\n  b:\n    c: 1\n"),
        ("a:\n-   b: 1\n    c: 2\n", "a:\n  - b: 1\n    c: 2\n"),
        ("- - 1\n  -   2\n-     - 3\n", "- - 1\n  - 2\n- - 3\n"),
        ("\n\na: 1   \n\n\n\nb: 2\n\n\n", "a: 1\n\nb: 2\n"),
        ("a: 1", "a: 1\n"),
        ("\ufeffa: 1\r\nb: 2\r\n", "a: 1\nb: 2\n"),
        ("a:\n    {x: 1,\n     y: 2}\n", "a:\n  {x: 1,\n   y: 2}\n"),
        ("a: 'one\n  two\n\n  three'\n", "a: 'one\n  two\n\n  three'\n"),
        ("k:\n    a: one\n        two\n", "k:\n  a: one\n    two\n"),
        ("---\na: 1\n...\n", "---\na: 1\n...\n"),
        ("", ""),
        ("# only a comment\n", "# only a comment\n"),
    ],
)
def test_lines_are_indented_in_one_way(given: str, expected: str):
    assert formatted(given) == expected


def test_block_texts_move_as_a_whole_and_keep_what_is_in_them():
    text = "k:\n    a: |\n        one\n          two  \n\n            \n        # three\n    b: >-\n      x\n"
    assert formatted(text) == (
        "k:\n  a: |\n    one\n      two  \n\n        \n    # three\n  b: >-\n    x\n"
    )


def test_a_told_indentation_is_told_anew():
    assert formatted("k:\n    a: |4-\n          x\n        y\n") == "k:\n  a: |2-\n      x\n    y\n"


def test_the_end_of_a_block_text_is_part_of_it():
    assert formatted("a: |+\n   x\n\n\nb: 1\n") == "a: |+\n  x\n\n\nb: 1\n"
    assert formatted("a: |+\n   x\n\n") == "a: |+\n  x\n\n"
    assert formatted("a: |\n   x") == "a: |\n  x"


def test_comments_stay_with_what_stands_in_their_column():
    text = dedent("""\
        # head
        graph:
            # first
            nodes:
            # the poet
            - id: A   # a name
              type: literal
              # within A
              config:
                    content: x
            #    commented: out
        #  far left
            edges: []
        # end
        """)
    assert formatted(text) == dedent("""\
        # head
        graph:
          # first
          nodes:
            # the poet
            - id: A   # a name
              type: literal
              # within A
              config:
                content: x
          #    commented: out
        #  far left
          edges: []
        # end
        """)


def test_quotes_anchors_and_order_stay():
    text = "z: 'q'\na: \"r\"\nbase: &b {k: 'v'}\nmore: *b\nplain: s\n"
    assert formatted(text) == text


def test_keys_that_stand_twice_stay_both():
    assert formatted("a:   1\na: 2\n") == "a: 1\na: 2\n"


def test_many_comments_take_no_longer_than_other_lines():
    text = "a: 1\n" + "# c\n" * 50_000 + "b: 2\n"
    assert formatted(text) == text
