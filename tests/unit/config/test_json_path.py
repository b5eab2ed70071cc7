from __future__ import annotations

import pytest

from devall.config.json_path import parse_json_path


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("items", ("items",)),
        ("data.items", ("data", "items")),
        ("$.data.items[*]", ("data", "items", None)),
        ("$", ()),
        ("", ()),
        ("$[0].x", (0, "x")),
        ("a[-1]", ("a", -1)),
        ("a.0.b", ("a", 0, "b")),
        ("$['a b'][\"c.d\"]", ("a b", "c.d")),
        ("a.*.b", ("a", None, "b")),
        ("$.größe", ("größe",)),
        ("[*]", (None,)),
        ("a b", ("a b",)),
    ],
)
def test_a_path_is_names_indices_and_every(text: str, steps: tuple[object, ...]):
    assert parse_json_path(text) == steps


@pytest.mark.parametrize("text", ["a..b", "$..a", "a[?(@.x)]", "a[1:2]", "a[", "a.", "a[]"])
def test_what_cannot_be_read_is_refused_from_there_on(text: str):
    with pytest.raises(ValueError, match="cannot be read"):
        parse_json_path(text)
