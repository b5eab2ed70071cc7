from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from devall.loading.document import parse_document
from devall.testing.cases.yaml_text import yaml_lines

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(TEXT, VALUES, max_size=4))
@example(
    {"a": "one\ntwo", "b": "one\n\ntwo\n", "c": "\ntwo", "d": " one\ntwo", "e": "one\ntwo\n\n"}
)
@example({"a": "null", "b": "True", "c": "12", "d": "1.5e3", "e": "~", "f": "x: y", "g": "# no"})
@example({"x": {"y": "one\n  two\n"}, "l": ["one\ntwo", {}, []]})
def test_what_is_written_is_what_is_read(value):
    text = "\n".join(yaml_lines(value)) + "\n"
    document = parse_document(text, "case.yaml")
    assert not document.problems, text
    assert (document.root or {}) == value


def test_texts_of_several_lines_stand_line_by_line():
    assert list(yaml_lines({"a": {"b": "one\ntwo"}})) == ["a:", "  b: |-", "    one", "    two"]
