from __future__ import annotations

import json
import time
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from devall.core.errors import UsageError
from devall.loading.document import MAX_BYTES, parse_document, parse_value, read_document

ROOT = Path(__file__).parents[3]
FILES = sorted(
    file
    for folder in ("yaml_instance", "tests/conformance")
    for file in (ROOT / folder).rglob("*.yaml")
)


def load(text: str) -> Any:
    found = parse_document(dedent(text), "w.yaml")
    assert found.problems == ()
    return found.root


def codes(text: str) -> list[str]:
    return [each.code for each in parse_document(dedent(text), "w.yaml").problems]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("0777", 777),
        ("0o17", 15),
        ("0x1F", 31),
        ("1.10", 1.1),
        ("1e3", 1000.0),
        ("-5", -5),
        (".5", 0.5),
        ("0.4.0", "0.4.0"),
        ("2026-01-02", "2026-01-02"),
        ("12:30:45", "12:30:45"),
        ("1_000", "1_000"),
        ("~", None),
        ("null", None),
        ("", None),
        ("True", True),
        ("FALSE", False),
        ("-.inf", float("-inf")),
        ("'5'", "5"),
        ('"true"', "true"),
        ("!!str 5", "5"),
        ("!!float 5", 5.0),
        ("!!int '7'", 7),
        ("9" * 5000, "9" * 5000),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(text: str, value: Any):
    found = load(f"a: {text}")["a"]
    assert (found, type(found)) == (value, type(value))


def test_every_key_and_value_has_its_place():
    text = dedent("""\
        graph:
          nodes:
            - id: A
              config: {role: 'x', "n": [1,
                2]}
          start:
          - B
        """)
    place = parse_document(text, "w.yaml").place

    def at(*path: str | int) -> tuple[int, int, int, int]:
        found = place.find(path)
        return found.key_line, found.key_column, found.line, found.column

    assert at("graph") == (1, 1, 2, 3)
    assert at("graph", "nodes", 0) == (3, 7, 3, 7)
    assert at("graph", "nodes", 0, "id") == (3, 7, 3, 11)
    assert at("graph", "nodes", 0, "config", "role") == (4, 16, 4, 22)
    assert at("graph", "nodes", 0, "config", "n", 1) == (5, 9, 5, 9)
    assert at("graph", "start", 0) == (7, 5, 7, 5)
    assert at("graph", "nowhere") == at("graph")


def test_a_text_of_several_lines_is_placed_where_it_begins():
    place = parse_document("a: |\n  x\n  y\nb: >-\n  z\n", "w.yaml").place
    assert (place.find(("a",)).line, place.find(("a",)).column) == (1, 4)
    assert (place.find(("b",)).line, place.find(("b",)).column) == (4, 4)


def test_all_duplicate_keys_are_found_and_the_first_one_stays():
    found = parse_document("a: 1\nb: 2\na: 3\nc: {d: 1, d: 2}\n", "w.yaml")
    assert [(p.position.line, p.position.column) for p in found.problems] == [(3, 1), (4, 11)]
    assert "lines 1 and 3" in found.problems[0].message
    assert found.root == {"a": 1, "b": 2, "c": {"d": 1}}
    assert found.is_readable


def test_aliases_repeat_values_and_merge_keys_fill_in():
    found = load("""\
        base: &base {a: 1, b: 2}
        one: *base
        two:
          <<: *base
          b: 3
        three: {<<: [{c: 4}, *base], d: 5}
        quoted: {'<<': 6}
        """)
    assert found["one"] == {"a": 1, "b": 2}
    assert found["two"] == {"a": 1, "b": 3}
    assert found["three"] == {"a": 1, "b": 2, "c": 4, "d": 5}
    assert found["quoted"] == {"<<": 6}


def test_what_a_merge_key_brings_is_placed_where_it_was_written():
    place = parse_document("b: &b\n  x: 1\nc:\n  <<: *b\n", "w.yaml").place
    assert place.find(("c", "x")).line == 2


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("a: !!python/object:os.system x", "custom-tag"),
        ("a: !mine x", "custom-tag"),
        ("a: !!int x", "custom-tag"),
        ("a: !!binary aGk=", "custom-tag"),
        ("a: *b", "unknown-anchor"),
        ("a: &a [*a]", "unknown-anchor"),
        ("a: 1\n---\nb: 2", "many-documents"),
        ("5: x", "bad-key"),
        ("[a]: x", "bad-key"),
        ("a: b: c", "syntax"),
        ("a:\n\tb: c", "syntax"),
        ("a: {b: c", "syntax"),
        ("a: [b", "syntax"),
        ("a: 'b", "syntax"),
        ("a: }", "syntax"),
        ("a: - b", "syntax"),
        ("<<: 5\na: 1", "bad-merge"),
        ("a: \ud800", "not-text"),
    ],
)
def test_what_is_no_plain_yaml_is_refused(text: str, code: str):
    assert codes(text) == [code]


def test_anchors_that_explode_are_refused_at_once():
    lines = ["a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    assert codes("\n".join(lines)) == ["too-large"]


def test_a_merge_cannot_explode_either():
    lines = ["a0: &a0 {k: [1, 2, 3]}"]
    lines += [
        f"a{n}: &a{n} {{{', '.join(f'k{m}: *a{n - 1}' for m in range(9))}}}" for n in range(1, 30)
    ]
    assert codes("\n".join(lines)) == ["too-large"]


@pytest.mark.parametrize("open_close", ["[]", "{a: }"])
def test_deep_nesting_is_refused_without_a_traceback(open_close: str):
    text = open_close[:-1] * 5000 + open_close[-1] * 5000
    assert codes(text) == ["too-large"]
    assert codes("\n".join(" " * n + "a:" for n in range(300))) == ["too-large"]


def test_byte_order_mark_and_other_line_ends_are_fine(tmp_path: Path):
    file = tmp_path / "w.yaml"
    file.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: |\r\n  x\r\n  y\r\n")
    found = read_document(file, "w.yaml")
    assert found.root == {"a": 1, "b": "x\ny\n"}
    assert parse_document("a: 1\rb: 2", "x").root == {"a": 1, "b": 2}


def test_an_empty_file_holds_nothing():
    for text in ("", "\n", "# x\n", "---\n", "--- \n...\n"):
        assert load(text) is None


def test_directives_and_document_marks_are_fine():
    assert load("%YAML 1.2\n---\na: no\n...\n") == {"a": "no"}


def test_a_huge_file_is_refused_without_being_read(tmp_path: Path):
    file = tmp_path / "w.yaml"
    with file.open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
        stream.write(b"a: 1\n" * 5000)
    found = read_document(file, "w.yaml")
    assert [each.code for each in found.problems] == ["too-large"]
    assert "52,428,800" in found.problems[0].message


def test_the_largest_file_is_read_up_to_its_limit(tmp_path: Path):
    file = tmp_path / "w.yaml"
    file.write_bytes(b"a: '" + b"x" * (MAX_BYTES - 5) + b"'")
    assert read_document(file, "w.yaml").problems == ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\x7fELF\0\0\1", "binary"),
        ("a: 1".encode("utf-16"), "UTF-16"),
        (b"a: caf\xe9", "0xe9 is no UTF-8"),
    ],
)
def test_what_is_no_text_is_refused(data: bytes, text: str, tmp_path: Path):
    file = tmp_path / "w.yaml"
    file.write_bytes(data)
    found = read_document(file, "w.yaml")
    assert not found.is_readable
    assert [each.code for each in found.problems] == ["not-text"]
    assert text in found.problems[0].message


def test_a_file_that_cannot_be_opened_is_a_mistake_of_the_call(tmp_path: Path):
    with pytest.raises(UsageError, match="is a directory"):
        read_document(tmp_path, "w")
    with pytest.raises(UsageError, match="there is no file w"):
        read_document(tmp_path / "none.yaml", "w")


def test_a_short_value_is_read_or_refused():
    assert parse_value("[1, two]") == [1, "two"]
    with pytest.raises(ValueError, match="bracket"):
        parse_value("[1, ")


@pytest.mark.parametrize("file", FILES, ids=lambda file: "/".join(file.parts[-2:]))
def test_files_are_read_as_ruamel_reads_them(file: Path):
    text = file.read_text()
    expected = YAML(typ="safe", pure=True).load(text)
    assert parse_document(text, "w.yaml").root == expected


WORDS = st.text("ab:#-?,[]{}'\"|>&*!%@ $\\\n\t0.é", max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=12,
)


@given(VALUES)
def test_json_is_yaml(value: Any):
    for indent in (None, 2):
        text = json.dumps(value, indent=indent, ensure_ascii=False)
        assert parse_document(text, "w.yaml").root == value


@given(
    st.lists(
        st.sampled_from(
            [
                "a",
                "b: ",
                "- ",
                "\n",
                "  ",
                "'",
                '"',
                "[",
                "]",
                "{",
                "}",
                ", ",
                "# c",
                ": ",
                "|",
                ">-",
                "&x ",
                "*x",
                "? ",
                "!!str ",
                "1",
            ]
        ),
        max_size=14,
    )
)
@example(["a", ": ", "|", "\n", "  ", "a", "\n", "  ", "# c"])
def test_any_text_is_read_as_ruamel_reads_it_or_refused(parts: list[str]):
    text = "".join(parts)
    found = parse_document(text, "w.yaml")
    try:
        expected = YAML(typ="safe", pure=True).load(text)
    except Exception:  # noqa: BLE001 -- whatever ruamel does not read, devall does not read
        assert found.problems
        return
    # Keys that are no text, and such things, are refused here alone.
    if not found.problems:
        assert found.root == expected


@given(st.text(max_size=60))
def test_no_text_makes_it_fail(text: str):
    parse_document(text, "w.yaml")


def test_ten_times_the_text_takes_about_ten_times_as_long():
    def cost(nodes: int) -> float:
        lines = [
            f"  - id: n{n}\n    type: passthrough\n    config: {{a: [1, 'x']}}"
            for n in range(nodes)
        ]
        text = "nodes:\n" + "\n".join(lines)
        start = time.process_time()
        parse_document(text, "w.yaml")
        return time.process_time() - start

    cost(100)
    small = min(cost(200) for _ in range(3))
    assert cost(2000) < 25 * small
