"""Schemas of tools in the words that a provider takes; what validates arguments stays as it is.

One schema that a provider dislikes makes it refuse the whole request, or answer with nothing.
So each is rewritten on a copy: references are written out, what is missing is added, and what
a provider does not know goes, where it bounds a value into the description.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import unquote, urlsplit

from devall.core.messages import JsonValue
from devall.models.gemini_schemas import in_gemini_words
from devall.models.shapes import as_list, as_object, as_text

JsonObject = dict[str, JsonValue]

MOST_NODES = 2_000
"""Schemas within a schema that are written out at most; deeper ones allow anything."""
MOST_ROUNDS = 2
"""How often a schema that refers to itself is written out within itself."""

_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_COMBINATORS = ("anyOf", "oneOf", "allOf")
_PLAIN = frozenset(
    {
        "title", "description", "type", "enum", "const", "default", "examples", "format",
        "minLength", "maxLength", "pattern", "minimum", "maximum", "exclusiveMinimum",
        "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "uniqueItems", "minProperties",
        "maxProperties", "deprecated", "readOnly", "writeOnly", "contentEncoding",
        "contentMediaType",
    }
)  # fmt: skip
"""Keywords whose values are no schemas and go on as they are."""


@dataclass(frozen=True, slots=True)
class Profile:
    """What a provider takes."""

    name: Literal["openai", "gemini", "lenient"]
    most_tools: int | None = None
    """Tools of one request; None = no bound is known."""


PROFILES: Mapping[str, Profile] = {
    "openai": Profile("openai", 128),
    "gemini": Profile("gemini", 512),
    "lenient": Profile("lenient"),
}


def profile_of(provider: str, url: str) -> Profile:
    """The profile of an endpoint: by its host, or by the provider's name where it has none."""
    host = urlsplit(url).hostname or ""
    if host.endswith("googleapis.com") or (provider == "gemini" and not host):
        return PROFILES["gemini"]
    if host == "api.openai.com" or provider == "azure" or (provider == "openai" and not host):
        return PROFILES["openai"]
    return PROFILES["gemini" if provider == "gemini" else "lenient"]


def adapted(schema: Mapping[str, JsonValue], profile: Profile) -> JsonObject:
    """The schema of a tool's arguments in the words of a profile; any odd schema gives one."""
    plain = _Writer(dict(schema)).root()
    return in_gemini_words(plain) if profile.name == "gemini" else plain


class _Writer:
    """Writes one schema out: no references, nothing missing, no unknown words."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._nodes = 0

    def root(self) -> JsonObject:
        """The schema as an object with properties, and no choice at its top."""
        schema = self._merged(self._resolved(self._root, ())[0])
        found = self._written(schema, ())
        found |= {"type": "object", "properties": as_object(found.get("properties"))}
        for key in ("enum", "const", "default"):
            found.pop(key, None)
        return found

    def _written(self, value: JsonValue, trail: tuple[str, ...]) -> JsonObject:
        self._nodes += 1
        if self._nodes > MOST_NODES or not isinstance(value, dict):
            return {}
        schema, trail = self._resolved(as_object(value), trail)
        found: JsonObject = {key: schema[key] for key in schema if key in _PLAIN}
        _set_type(found, schema)
        self._write_object(found, schema, trail)
        self._write_array(found, schema, trail)
        for key in _COMBINATORS:
            if branches := as_list(schema.get(key)):
                found[key] = [self._written(branch, trail) for branch in branches]
        if isinstance(schema.get("not"), dict):
            found["not"] = self._written(schema["not"], trail)
        return found

    def _write_object(self, found: JsonObject, schema: JsonObject, trail: tuple[str, ...]) -> None:
        properties = as_object(schema.get("properties"))
        if properties or isinstance(schema.get("additionalProperties"), dict):
            found.setdefault("type", "object")
        if "object" not in _types(found):
            return
        written = {
            name: self._written(each, trail)
            for name, each in properties.items()
            if each is not False  # no value is legal there
        }
        named = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
        others: JsonValue = schema.get("additionalProperties")
        if others is not False:
            written |= {name: {} for name in named if name not in written}
        if required := [name for name in named if name in written]:
            found["required"] = required
        if isinstance(others, bool):
            found["additionalProperties"] = others
        elif isinstance(others, dict):
            found["additionalProperties"] = self._written(others, trail)
        if written or others is None:
            found["properties"] = written

    def _write_array(self, found: JsonObject, schema: JsonObject, trail: tuple[str, ...]) -> None:
        items: JsonValue = schema.get("items")
        several = as_list(schema.get("prefixItems")) or as_list(items)
        if several or isinstance(items, dict):
            found.setdefault("type", "array")
        if "array" not in _types(found):
            return
        if several:
            kinds: list[JsonValue] = []
            for each in several:
                kind = self._written(each, trail)
                kinds += [] if kind in kinds else [kind]
            found["items"] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
        else:
            found["items"] = self._written(items, trail)

    def _resolved(
        self, schema: JsonObject, trail: tuple[str, ...]
    ) -> tuple[JsonObject, tuple[str, ...]]:
        """The schema with what its reference names, and the references that led to it."""
        while isinstance(reference := schema.get("$ref"), str):
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            target = self._target(reference)
            if target is None:
                return _noted(beside, f"see {reference}"), trail
            if trail.count(reference) >= MOST_ROUNDS:
                kind = {key: target[key] for key in ("type", "description") if key in target}
                return kind | beside, trail
            trail = (*trail, reference)
            schema = target | beside
        return schema, trail

    def _target(self, reference: str) -> JsonObject | None:
        """What a reference within the document names."""
        if not reference.startswith("#"):
            return None
        found: JsonValue = self._root
        for step in reference.removeprefix("#").split("/")[1:]:
            name = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(found, list) and name.isdigit() and int(name) < len(as_list(found)):
                found = as_list(found)[int(name)]
            else:
                found = as_object(found).get(name)
        return as_object(found) if isinstance(found, dict) else None

    def _merged(self, schema: JsonObject, depth: int = 0) -> JsonObject:
        """The root without a choice: all properties of its branches, required where all are."""
        branches = {key: as_list(schema.get(key)) for key in _COMBINATORS}
        found = {key: value for key, value in schema.items() if key not in _COMBINATORS}
        if depth > MOST_ROUNDS or not any(branches.values()):
            return found
        properties = as_object(schema.get("properties"))
        required = _names(schema)
        notes: list[str] = []
        for key, given in branches.items():
            parts = [
                self._merged(self._resolved(as_object(each), ())[0], depth + 1) for each in given
            ]
            for part in parts:
                properties |= {
                    name: each
                    for name, each in as_object(part.get("properties")).items()
                    if name not in properties
                }
            needs = [_names(part) for part in parts]
            if key == "allOf":
                required = [*required, *(name for need in needs for name in need)]
            elif parts:
                required = [*required, *(n for n in needs[0] if all(n in need for need in needs))]
                if any(needs):
                    notes.append("give " + " or ".join(_all_of(need) for need in needs))
        found |= {"properties": properties, "required": [*dict.fromkeys(required)]}
        return _noted(found, *notes)


def _names(schema: JsonObject) -> list[str]:
    """What a schema requires; what is no name there is left out."""
    return [each for each in as_list(schema.get("required")) if isinstance(each, str)]


def _all_of(names: list[str]) -> str:
    return "+".join(names) or "none of these"


def _set_type(found: JsonObject, schema: JsonObject) -> None:
    """Keep the types that there are; one alone stands alone."""
    kinds = [each for each in _types(schema) if isinstance(each, str) and each in _TYPES]
    if kinds:
        found["type"] = kinds[0] if len(kinds) == 1 else kinds
    elif "type" in found:
        del found["type"]
        if kind := as_text(schema.get("type")):
            found |= _noted(found, f"type {kind}")


def _types(schema: JsonObject) -> list[JsonValue]:
    kind: JsonValue = schema.get("type")
    return as_list(kind) or [kind]


def _noted(schema: JsonObject, *notes: str) -> JsonObject:
    """The schema with something said at the end of its description."""
    if not notes:
        return schema
    said = as_text(schema.get("description"))
    note = f"({'; '.join(notes)})"
    return schema | {"description": f"{said} {note}" if said else note}
