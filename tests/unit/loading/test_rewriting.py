from __future__ import annotations

import pytest

from devall.loading.document import parse_document
from devall.loading.rewriting import Rewriting


def rewriting(text: str) -> Rewriting:
    return Rewriting(parse_document(text, "w.yaml"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: {b: no} # why\n", "a: {b: false} # why\n"),
        ("a:\n  b:  'no'   # why\n", "a:\n  b:  false   # why\n"),
    ],
)
def test_a_value_is_replaced_and_nothing_else(text: str, expected: str):
    found = rewriting(text)
    assert found.replace(("a", "b"), "false")
    assert found.apply().text == expected


def test_a_value_of_several_lines_is_left_alone():
    found = rewriting("a: |\n  x\nb: one\n  two\nc: [1]\n")
    assert not any(found.replace((key,), "1") for key in "abc")
    assert not found


def test_only_what_has_no_quotes_is_plain():
    found = rewriting("a: yes\nb: 'yes'\nc: |\n  yes\nd: 010\n")
    assert [found.plain((key,)) for key in "abcd"] == ["yes", None, None, "010"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\n", "x-a: 1\n"),
        ('"a": 1\n', '"x-a": 1\n'),
        ("{a: 1}\n", "{x-a: 1}\n"),
    ],
)
def test_a_key_gets_another_name(text: str, expected: str):
    found = rewriting(text)
    assert found.rename(("a",), "x-")
    assert found.apply().text == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("g:\n  # c\n  a: 1\n", 'g:\n  # c\n  k: "v"\n  a: 1\n'),
        ("g: {a: 1}\n", 'g: {k: "v", a: 1}\n'),
        ("g:\n  a: 1\n  k: null # c\n", 'g:\n  a: 1\n  k: "v" # c\n'),
        ("g:\n  k:\n  a: 1\n", 'g:\n  k: "v"\n  a: 1\n'),
        ("g:\n  a: {b: 1}\n", 'g:\n  k: "v"\n  a: {b: 1}\n'),
    ],
)
def test_a_mapping_gets_a_key(text: str, expected: str):
    found = rewriting(text)
    assert found.put(("g",), "k", "v")
    assert found.apply().text == expected


def test_lines_are_known_by_what_they_were():
    found = rewriting("g:\n  - a: 1\n    b: no\n")
    assert found.put(("g", 0), "k", {"x": 1})
    assert found.replace(("g", 0, "b"), "false")
    done = found.apply()
    assert done.text == 'g:\n  - k: {"x": 1}\n    a: 1\n    b: false\n'
    assert done.origins == (1, 2, 2, 3, 4)


def test_a_place_is_changed_once():
    found = rewriting("a: &x {k: no}\nb: *x\n")
    assert found.replace(("a", "k"), "false")
    assert not found.replace(("b", "k"), "false")
    assert found.apply().text == "a: &x {k: false}\nb: *x\n"
