"""Schemas of tools as providers take them; the corpus and its golden files stand beside."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from devall.models.tool_schemas import PROFILES, adapted, profile_of

HERE = Path(__file__).parent / "tool_schemas"
CORPUS: dict[str, dict[str, Any]] = json.loads((HERE / "corpus.json").read_text())
GEMINI = frozenset(
    [
        "type",
        "format",
        "title",
        "description",
        "nullable",
        "enum",
        "items",
        "minItems",
        "maxItems",
        "properties",
        "required",
        "minProperties",
        "maxProperties",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "anyOf",
    ]
)


# D1, D3: run with REGOLD=1 to write the golden files anew, and read the difference.
@pytest.mark.parametrize("profile", ["openai", "gemini"])
def test_each_shape_becomes_what_the_golden_file_has(profile: str):
    found = {name: adapted(schema, PROFILES[profile]) for name, schema in CORPUS.items()}
    golden = HERE / f"{profile}.json"
    if os.environ.get("REGOLD"):
        golden.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    assert found == json.loads(golden.read_text())


@pytest.mark.parametrize("name", CORPUS)
def test_unknown_endpoints_get_what_openai_gets(name: str):
    assert adapted(CORPUS[name], PROFILES["lenient"]) == adapted(CORPUS[name], PROFILES["openai"])


@pytest.mark.parametrize("name", CORPUS)
@pytest.mark.parametrize("profile", PROFILES)
def test_the_original_is_left_as_it_is(name: str, profile: str):
    before = json.dumps(CORPUS[name])
    adapted(CORPUS[name], PROFILES[profile])
    assert json.dumps(CORPUS[name]) == before


def problems(schema: Any, *, is_root: bool = True) -> list[str]:
    """What OpenAI refuses a request for."""
    found: list[str] = []
    if is_root:
        found += [] if schema.get("type") == "object" else ["root is no object"]
        found += [] if "properties" in schema else ["no properties"]
        found += [key for key in ("anyOf", "oneOf", "allOf", "enum", "not") if key in schema]
    if schema.get("type") == "array" and "items" not in schema:
        found.append("array without items")
    found += [key for key in schema if key.startswith(("$", "x-"))]
    for inner in children(schema):
        found += problems(inner, is_root=False)
    return found


def children(schema: Any) -> list[Any]:
    found = [*schema.get("properties", {}).values(), *schema.get("anyOf", ())]
    found += [*schema.get("oneOf", ()), *schema.get("allOf", ())]
    found += [schema[key] for key in ("items", "not") if key in schema]
    others = schema.get("additionalProperties")
    return [*found, *([others] if isinstance(others, dict) else [])]


def strangers(schema: Any) -> set[str]:
    """Words that Gemini does not know, and types that it refuses."""
    found = set(schema) - GEMINI
    if schema.get("type") == "array" and not schema["items"]:
        found.add("array of nothing")
    if not isinstance(schema.get("type", ""), str):
        found.add("list of types")
    if any(not isinstance(value, str) for value in schema.get("enum", ())):
        found.add("enum of no text")
    for inner in children(schema):
        found |= strangers(inner)
    return found


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["string", "#", "a", ""]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "properties",
                    "items",
                    "$ref",
                    "$defs",
                    "anyOf",
                    "oneOf",
                    "allOf",
                    "required",
                    "enum",
                    "const",
                    "default",
                    "not",
                    "additionalProperties",
                    "prefixItems",
                    "description",
                    "format",
                    "a",
                    "b",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
schemas = st.dictionaries(
    st.sampled_from(["type", "properties", "$ref", "anyOf", "allOf", "required", "$defs", "items"]),
    json_values
    | st.sampled_from(["object", "array", "#", "#/properties/a", "#/$defs/a", "#/anyOf/0"]),
    max_size=5,
)


@given(schemas)
@example({"anyOf": [None], "required": [[]]})
@settings(deadline=None)
def test_whatever_a_server_sends_gives_a_schema_that_openai_takes(schema: dict[str, Any]):
    found = adapted(schema, PROFILES["openai"])
    assert not problems(found)
    json.dumps(found)


@given(schemas)
@settings(deadline=None)
def test_whatever_a_server_sends_gives_a_schema_that_gemini_takes(schema: dict[str, Any]):
    found = adapted(schema, PROFILES["gemini"])
    assert not strangers(found)
    assert found["type"] == "object"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("references", {"from": {"name": "a"}, "to": {"name": "b"}}),
        ("recursive", {"value": 1, "children": [{"value": 2, "children": [{"value": 3}]}]}),
        ("null_unions", {"a": None, "b": None, "c": 3}),
        ("choice_at_the_top", {"id": 1}),
        ("choice_at_the_top", {"name": "x", "verbose": True}),
        ("all_of_at_the_top", {"a": "1", "b": "2"}),
        ("tuple", {"range": [1, 2], "pair": ["a", 1]}),
        ("free_form", {"data": {"any": "thing"}}),
        ("bounds", {"n": 5, "k": 3, "e": None}),
    ],
)
def test_what_the_original_takes_the_written_out_one_takes_too(name: str, arguments: Any):
    for profile in ("openai", "lenient"):
        jsonschema.validate(arguments, adapted(CORPUS[name], PROFILES[profile]))


def test_a_schema_that_branches_into_itself_stays_small():
    properties = {name: {"$ref": "#/$defs/node"} for name in "abcdefghijkl"}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": {"properties": properties}}}
    assert len(json.dumps(adapted(schema, PROFILES["openai"]))) < 200_000


@pytest.mark.parametrize(
    ("provider", "url", "name"),
    [
        ("openai", "https://api.openai.com/v1", "openai"),
        ("openai", "", "openai"),
        ("openai", "http://127.0.0.1:8000/v1", "lenient"),
        ("openai", "https://generativelanguage.googleapis.com/v1beta/openai/", "gemini"),
        ("gemini", "http://127.0.0.1:1/proxy", "gemini"),
        ("local", "", "lenient"),
    ],
)
def test_the_endpoint_decides_the_words(provider: str, url: str, name: str):
    assert profile_of(provider, url).name == name
