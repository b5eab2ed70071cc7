from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.loading.diagnostics import value_at
from devall.loading.document import parse_document
from devall.testing.cases.updating import rewritten

CASE = """\
workflow: w.yaml  # stays
expect:
  status: completed
  # a word about the answer
  answer:
    equals: |
      one

      two
    contains: [one]

  nodes:
    A: 1   # once
    B: {runs: 2, output: "old, {text}"}
    "C/D": {output: 'it''s old' , runs: 3}
    E:
      runs: {min: 1, max: 2}
      output: >-
        folded
        text
  exit_code: 0
"""
PATHS = [
    ("expect", "status"),
    ("expect", "answer", "equals"),
    ("expect", "nodes", "A", "runs"),
    ("expect", "nodes", "B", "runs"),
    ("expect", "nodes", "B", "output", "equals"),
    ("expect", "nodes", "C/D", "output", "equals"),
    ("expect", "nodes", "E", "output", "equals"),
    ("expect", "exit_code"),
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


def at(root, path):
    """The value at a path, or where it stands in short form."""
    value = value_at(root, path)
    return value_at(root, path[:-1]) if value is None else value


@given(st.dictionaries(st.sampled_from(PATHS), TEXT | st.integers(0, 99)))
def test_what_changes_is_changed_and_all_else_stays(changes):
    document = parse_document(CASE, "case.yaml")
    after = parse_document(rewritten(document, list(changes.items())), "case.yaml")
    assert not after.problems, after.text
    for path in PATHS:
        assert at(after.root, path) == changes.get(path, at(document.root, path))
    assert "# stays" in after.text
    assert "# a word about the answer" in after.text
    assert value_at(after.root, ("expect", "answer", "contains")) == ["one"]


@pytest.mark.parametrize("path", [("expect", "error", "code"), ("expect", "nodes", "X", "runs")])
def test_what_is_not_written_is_not_added(path):
    document = parse_document(CASE, "case.yaml")
    assert rewritten(document, [(path, 1)]) == CASE


def test_short_forms_stay_short():
    text = rewritten(parse_document(CASE, "c"), [(("expect", "nodes", "A", "runs"), 7)])
    assert "    A: 7\n" in text
    text = rewritten(parse_document("expect:\n  answer: old\n", "c"), [(PATHS[1], "a\nb")])
    assert text == "expect:\n  answer: |-\n    a\n    b\n"
