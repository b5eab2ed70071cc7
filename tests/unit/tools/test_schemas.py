from __future__ import annotations

import pytest

from devall.core.errors import ToolArguments
from devall.tools.schemas import SchemaCheck


def test_misfits_are_named_by_their_place():
    schema = {
        "type": "object",
        "properties": {"a": {"type": "array", "items": {"type": "integer"}}},
        "required": ["b"],
    }
    with pytest.raises(ToolArguments) as caught:
        SchemaCheck(schema).check_arguments({"a": [1, "x"]})
    assert "a[1]: 'x' is not of type 'integer'" in str(caught.value)
    assert "'b' is a required property" in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nonsense"},
        {"properties": 5},
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#/nowhere"},
        {"properties": {"a": {"pattern": "(?<"}}},
    ],
)
def test_a_schema_that_is_wrong_itself_lets_arguments_pass(schema: dict[str, object]):
    SchemaCheck(schema).check_arguments({"a": "x"})


def test_at_most_five_misfits_are_named():
    many = SchemaCheck({"additionalProperties": {"type": "string"}})
    assert len(many.misfits(dict.fromkeys("abcdefgh", 1))) == 5
