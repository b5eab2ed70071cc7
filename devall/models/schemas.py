"""JSON Schemas that hold a small model to a tool call or an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devall.core.messages import JsonValue
from devall.models.base import ToolSchema
from devall.models.shapes import as_count, as_list, as_object

JsonObject = dict[str, JsonValue]

NO_TOOL = "none"
"""What stands for a tool's name where the model answers."""

LONGEST_ARGUMENT = 4_000
"""Characters of a text argument whose schema does not bound it."""
LONGEST_ANSWER = 20_000
"""Characters of an answer."""
MOST_ITEMS = 50
"""Items of a list whose schema does not bound it."""
LARGEST_NUMBER = 1_000_000_000
"""Either side of zero: without a bound a number came back as 3.7e308."""
_DEEPEST = 8
"""Levels to which a schema that refers to itself is followed."""

_KEPT = frozenset(
    {
        "type",
        "enum",
        "const",
        "required",
        "minLength",
        "maxLength",
        "minItems",
        "maxItems",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
    }
)
"""Keywords that go to the endpoint as they are; others say nothing that a grammar can hold."""


def choice_schema(
    tools: Sequence[ToolSchema], *, may_answer: bool, answer: Mapping[str, JsonValue] | None
) -> JsonObject:
    """The schema of a reply: a call of one of the tools, or an answer.

    Args:
        tools: What may be called.
        may_answer: Whether an answer is legal as well.
        answer: Schema of the answer; None = text.
    """
    branches = [_branch(tool.name, "arguments", bounded(tool.parameters)) for tool in tools]
    if may_answer:
        inner = bounded(answer) if answer else {"type": "string", "maxLength": LONGEST_ANSWER}
        branches.append(_branch(NO_TOOL, "answer", inner))
    return branches[0] if len(branches) == 1 else {"anyOf": branches}


def _branch(name: str, field: str, inner: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {"tool": {"const": name}, field: inner},
        "required": ["tool", field],
        "additionalProperties": False,
    }


def bounded(schema: Mapping[str, JsonValue]) -> JsonObject:
    """The schema without references, with every text, list and number bounded."""
    definitions = as_object(schema.get("$defs")) | as_object(schema.get("definitions"))
    return _bounded(dict(schema), definitions, 0)


def _bounded(schema: JsonObject, definitions: JsonObject, depth: int) -> JsonObject:
    if isinstance(reference := schema.get("$ref"), str):
        if depth > _DEEPEST:
            return {"type": "object"}
        target = as_object(definitions.get(reference.rpartition("/")[2]))
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        return _bounded(target | beside, definitions, depth + 1)
    found: JsonObject = {key: value for key, value in schema.items() if key in _KEPT}
    for key in ("anyOf", "oneOf", "allOf"):
        if branches := [as_object(b) for b in as_list(schema.get(key))]:
            inner = [_bounded(branch, definitions, depth + 1) for branch in branches]
            found["allOf" if key == "allOf" else "anyOf"] = inner
    if properties := as_object(schema.get("properties")):
        found["properties"] = {
            name: _bounded(as_object(value), definitions, depth + 1)
            for name, value in properties.items()
        }
    if items := as_object(schema.get("items")):
        found["items"] = _bounded(items, definitions, depth + 1)
    others: JsonValue = schema.get("additionalProperties")
    if isinstance(others, bool):
        found["additionalProperties"] = others
    elif others := as_object(others):
        found["additionalProperties"] = _bounded(others, definitions, depth + 1)
    return found | _bounds(found)


def _bounds(schema: JsonObject) -> JsonObject:
    """The bounds that a schema lacks."""
    if "enum" in schema or "const" in schema:
        return {}
    kind: JsonValue = schema.get("type")
    kinds = as_list(kind) or [kind]
    added: JsonObject = {}
    if "string" in kinds and "maxLength" not in schema:
        added["maxLength"] = max(LONGEST_ARGUMENT, as_count(schema.get("minLength")))
    if "array" in kinds and "maxItems" not in schema:
        added["maxItems"] = max(MOST_ITEMS, as_count(schema.get("minItems")))
    if "integer" in kinds or "number" in kinds:
        if not schema.keys() & {"minimum", "exclusiveMinimum"}:
            added["minimum"] = min(
                -LARGEST_NUMBER, 2 * _bound(schema, "maximum", "exclusiveMaximum")
            )
        if not schema.keys() & {"maximum", "exclusiveMaximum"}:
            added["maximum"] = max(
                LARGEST_NUMBER, 2 * _bound(schema, "minimum", "exclusiveMinimum")
            )
    return added


def _bound(schema: JsonObject, *names: str) -> int:
    """The bound on the other side; 0 where there is none."""
    given = (schema.get(name) for name in names)
    return next((int(value) for value in given if isinstance(value, int | float)), 0)
