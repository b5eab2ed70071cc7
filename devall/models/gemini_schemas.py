"""Schemas in Gemini's words: a part of OpenAPI 3.0, of which it refuses all else.

The source of the list of words is the `Schema` object of the Gemini API.
"""

from __future__ import annotations

import json

from devall.core.messages import JsonValue
from devall.models.shapes import as_list, as_object, as_text

JsonObject = dict[str, JsonValue]

_KEPT = frozenset(
    {"type", "description", "title", "minItems", "maxItems", "minimum", "maximum", "minLength",
     "maxLength", "pattern", "minProperties", "maxProperties"}
)  # fmt: skip
_FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "integer": frozenset({"int32", "int64"}),
    "number": frozenset({"float", "double"}),
}
_SAID = (
    "const", "enum", "format", "default", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
    "uniqueItems", "not", "contentEncoding", "contentMediaType",
)  # fmt: skip
"""Words that it does not know, and that a description can say."""


def in_gemini_words(schema: JsonObject) -> JsonObject:
    """A schema without references, written anew.

    `null` in a union becomes `nullable`; `oneOf` becomes `anyOf`, `allOf` is merged; what
    bounds a value and has no word is said in the description.
    """
    schema = _without_all_of(schema)
    kinds = [kind for kind in as_list(schema.get("type")) or [schema.get("type")] if kind]
    branches = [as_object(b) for b in as_list(schema.get("anyOf")) + as_list(schema.get("oneOf"))]
    is_nullable = "null" in kinds or any(b.get("type") == "null" for b in branches)
    kinds = [kind for kind in kinds if kind != "null"]
    branches = [branch for branch in branches if branch.get("type") != "null"]
    if len(branches) == 1:  # a union with null alone
        own = {k: v for k, v in schema.items() if k not in {"anyOf", "oneOf", "type"}}
        found = in_gemini_words(branches[0] | own)
        return found | ({"nullable": True} if is_nullable else {})
    found: JsonObject = {key: value for key, value in schema.items() if key in _KEPT}
    found.pop("type", None)
    if len(kinds) > 1 and not branches:
        branches = [_of_type(schema, kind) for kind in kinds]
    if branches:
        found = {key: found[key] for key in ("description", "title") if key in found}
        found["anyOf"] = [in_gemini_words(branch) for branch in branches]
    else:
        _write_value(found, schema, str(kinds[0]) if kinds else "")
    if is_nullable:
        found["nullable"] = True
    return found


def _write_value(found: JsonObject, schema: JsonObject, kind: str) -> None:
    """Whatever belongs to one type, and a description of what has no word."""
    said = {key: schema[key] for key in _SAID if key in schema}
    values = as_list(schema.get("enum")) or ([schema["const"]] if "const" in schema else [])
    if values and kind in {"", "string"} and all(isinstance(v, str) and v for v in values):
        kind = "string"
        found["enum"] = values
        said.pop("enum", None)
        said.pop("const", None)
    if values and not kind:
        kind = _kind_of(values)
        if None in values:
            found["nullable"] = True
    if as_text(schema.get("format")) in _FORMATS.get(kind, ()):
        found["format"] = said.pop("format")
    if kind:
        found["type"] = kind
    if kind == "array":
        # It wants to know of what.
        found["items"] = in_gemini_words(as_object(schema.get("items"))) or {"type": "string"}
    if kind == "object":
        properties = as_object(schema.get("properties"))
        found["properties"] = {n: in_gemini_words(as_object(p)) for n, p in properties.items()}
        if required := [name for name in as_list(schema.get("required")) if name in properties]:
            found["required"] = required
        others = as_object(schema.get("additionalProperties"))
        if others:
            said["further values"] = {k: others[k] for k in ("type", "enum") if k in others}
    if said:
        words = "; ".join(f"{k}: {json.dumps(v, ensure_ascii=False)}" for k, v in said.items())
        before = as_text(found.get("description"))
        found["description"] = f"{before} ({words})".strip()


def _kind_of(values: list[JsonValue]) -> str:
    """The one type that all values have, null aside; empty where there is none."""
    kinds: set[type] = {type(value) for value in values if value is not None}
    if kinds <= {int, float}:
        return "integer" if kinds == {int} else "number"
    return {frozenset({bool}): "boolean", frozenset({str}): "string"}.get(frozenset(kinds), "")


def _without_all_of(schema: JsonObject) -> JsonObject:
    """All parts as one schema."""
    parts = as_list(schema.get("allOf"))
    found = {key: value for key, value in schema.items() if key != "allOf"}
    for each in parts:
        part = _without_all_of(as_object(each))
        own = as_object(found.get("properties"))
        added = as_object(part.get("properties"))
        properties = own | {name: each for name, each in added.items() if name not in own}
        required = [*as_list(found.get("required")), *as_list(part.get("required"))]
        found = part | found
        if properties:
            found["properties"] = properties
        if required:
            found["required"] = list(dict.fromkeys(required))
    return found


def _of_type(schema: JsonObject, kind: JsonValue) -> JsonObject:
    """The part of a schema that speaks of one of its types."""
    own = {key: value for key, value in schema.items() if key not in {"description", "title"}}
    if kind != "array":
        own.pop("items", None)
    if kind != "object":
        for key in ("properties", "required", "additionalProperties"):
            own.pop(key, None)
    return own | {"type": kind}
