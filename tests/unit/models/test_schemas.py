"""Schemas that hold a small model to a call or an answer."""

from __future__ import annotations

import jsonschema
import pytest
from pydantic import BaseModel

from devall.models.base import ToolSchema
from devall.models.schemas import bounded, choice_schema

RAND = ToolSchema(
    "rand_num",
    "",
    {
        "type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
)
PING = ToolSchema("ping", "", {"type": "object", "properties": {}})


def is_legal(value, schema) -> bool:
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_a_reply_is_a_call_or_an_answer():
    schema = choice_schema((RAND, PING), may_answer=True, answer=None)
    assert is_legal({"tool": "rand_num", "arguments": {"a": 1, "b": 2.5}}, schema)
    assert is_legal({"tool": "ping", "arguments": {}}, schema)
    assert is_legal({"tool": "none", "answer": "hi"}, schema)
    assert not is_legal({"tool": "other", "arguments": {}}, schema)
    assert not is_legal({"tool": "rand_num", "arguments": {"a": 1}}, schema)
    assert not is_legal({"tool": "none", "answer": 5}, schema)


def test_where_a_call_is_demanded_an_answer_is_not_legal():
    schema = choice_schema((RAND,), may_answer=False, answer=None)
    assert "anyOf" not in schema
    assert not is_legal({"tool": "none", "answer": "hi"}, schema)


def test_an_answer_may_have_a_schema_of_its_own():
    wanted = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    schema = choice_schema((PING,), may_answer=True, answer=wanted)
    assert is_legal({"tool": "none", "answer": {"n": 1}}, schema)
    assert not is_legal({"tool": "none", "answer": "hi"}, schema)


@pytest.mark.parametrize("value", [3.7e308, -3.7e308])
def test_numbers_are_bounded(value):
    assert not is_legal({"a": 1, "b": value}, bounded(RAND.parameters))


def test_texts_and_lists_are_bounded():
    schema = bounded({"type": "array", "items": {"type": "string"}})
    assert not is_legal(["x"] * 51, schema)
    assert not is_legal(["x" * 4001], schema)
    assert is_legal(["x" * 4000] * 50, schema)


@pytest.mark.parametrize(
    "own",
    [
        {"type": "integer", "minimum": 5_000_000_000},
        {"type": "number", "maximum": -5_000_000_000},
        {"type": "integer", "minimum": 1, "maximum": 3},
        {"type": "string", "minLength": 10, "maxLength": 12},
        {"type": "string", "minLength": 9000},
        {"enum": ["a", 1, None]},
        {"const": 1e300},
        {"type": ["string", "null"]},
    ],
    ids=str,
)
def test_what_its_own_bounds_allow_stays_possible(own):
    examples = [
        6_000_000_000, -6_000_000_000, 2, "x" * 11, "x" * 9000, "a", 1, None, 1e300
    ]  # fmt: skip
    legal = [e for e in examples if is_legal(e, own)]
    schema = bounded(own)
    assert any(is_legal(e, schema) for e in legal)
    assert all(is_legal(e, own) for e in examples if is_legal(e, schema))


def test_references_are_followed():
    class City(BaseModel):
        name: str

    class Trip(BaseModel):
        stops: list[City]
        home: City | None = None

    schema = bounded(Trip.model_json_schema())
    assert "$ref" not in str(schema)
    assert "$defs" not in schema
    assert is_legal({"stops": [{"name": "x"}], "home": None}, schema)
    assert not is_legal({"stops": [{"nam": "x"}]}, schema)


def test_a_schema_that_refers_to_itself_ends():
    class Tree(BaseModel):
        children: list["Tree"] = []

    Tree.model_rebuild(_types_namespace={"Tree": Tree})
    assert is_legal({"children": [{"children": []}]}, bounded(Tree.model_json_schema()))


@pytest.mark.parametrize(
    "odd",
    [
        {},
        {"type": None},
        {"properties": None},
        {"$ref": "#/nowhere"},
        {"items": True},
        {"type": "string", "minLength": None},
        {"anyOf": [True, {"type": "string"}]},
        {"additionalProperties": {"type": "integer"}},
    ],
    ids=str,
)
def test_odd_schemas_never_crash(odd):
    assert isinstance(bounded(odd), dict)
