"""The JSON Schema of a line of events.jsonl, made from the classes of the events."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields, is_dataclass
from inspect import getdoc
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

from devall.core.docstrings import docstrings
from devall.core.events import Event
from devall.core.messages import Message
from devall.telemetry.run_log import KINDS, VERSION

Schema = dict[str, Any]

_WORDS = frozenset({"task", "answer", "question", "result", "message", "hint"})
"""Texts of any length."""
_BODY: Schema = {
    "description": "A field of more than 64 KB: it stands in `bodies/<sha256>` beside the file.",
    "type": "object",
    "properties": {
        "body": {"type": "string", "pattern": "^[0-9a-f]{64}$", "description": "Its SHA-256."},
        "bytes": {"type": "integer"},
        "type": {"enum": ["text", "json"], "description": "What the body is to be read as."},
    },
    "required": ["body", "bytes", "type"],
    "additionalProperties": False,
}
_HIDDEN: Schema = {
    "description": "A text that a node with `log_output: false` has said.",
    "type": "object",
    "properties": {"hidden": {"const": True}, "chars": {"type": "integer"}},
    "required": ["hidden", "chars"],
    "additionalProperties": False,
}
_MORE_TEXTS = {
    "path": "The logical path of what it belongs to: empty for the run, `/writer@2` for the second "
    "run of node writer, `/S@1/X@1` in a subgraph, `/M@1/unit:3` for the third unit of a dynamic "
    "edge.",
    "at": "Seconds since the epoch.",
}
"""What the classes do not say of their fields."""
_MAYBE_HIDDEN = {"answer", "content"}
"""Fields whose whole text `log_output: false` may hide."""
_MAYBE_NULL = {("ToolProgress", "progress")}
"""Numbers that a tool says: what JSON does not have becomes null."""


def events_schema() -> Schema:
    """The JSON Schema of a line; which event it is says `event`."""
    definitions = _Definitions()
    lines = {name: definitions.line(name, kind) for name, kind in KINDS.items()}
    return {
        "title": "a line of events.jsonl",
        "description": "An event of a run. Fields and kinds of events may be added, and fields at "
        "their default may be absent in a later version of devall; none changes its meaning "
        "within a version `v`.",
        "type": "object",
        "required": ["v", "event"],
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in lines],
        "$defs": lines
        | dict(sorted(definitions.found.items()))
        | {"body": _BODY, "hidden": _HIDDEN},
    }


class _Definitions:
    """The schemas of the values in events, by the names of their classes."""

    def __init__(self) -> None:
        self.found: dict[str, Schema] = {}

    def line(self, name: str, kind: type[Event]) -> Schema:
        """The schema of a kind of event."""
        properties: Schema = {"v": {"const": VERSION}, "event": {"const": name}}
        for field, schema, text in self._fields(kind):
            is_long = field in _WORDS or schema.get("type") not in _SHORT
            properties[field] = _either(schema, _reference("body")) if is_long else schema
            properties[field] |= {"description": text} if text else {}
        return {
            "description": getdoc(kind) or "",
            "type": "object",
            "properties": properties,
            "required": ["v", "event", "at", *_required(kind)],
        }

    def _fields(self, kind: type) -> Iterator[tuple[str, Schema, str]]:
        """The name, schema and description of each field."""
        hints = get_type_hints(kind)
        for each in fields(cast("Any", kind)):
            name = each.name
            schema = self._of(hints[name])
            if name in _MAYBE_HIDDEN:
                schema = _either(schema, _reference("hidden"))
            if (kind.__name__, name) in _MAYBE_NULL:
                schema = _either(schema, {"type": "null"})
            texts = [_texts(owner).get(name, "") for owner in kind.__mro__]
            yield name, schema, _MORE_TEXTS.get(name) or next(filter(None, texts), "")

    def _of(self, hint: Any) -> Schema:
        """The schema of a type."""
        if hint in _PLAIN:
            return {"type": _PLAIN[hint]}
        if is_dataclass(hint):
            return self._object(cast("type", hint))
        kind, arguments = get_origin(hint), get_args(hint)
        if kind in {types.UnionType, Union}:
            return _either(*map(self._of, arguments))
        if kind is Literal:
            return {"enum": list(arguments)}
        if kind is tuple and arguments[-1] is Ellipsis:
            return {"type": "array", "items": self._of(arguments[0])}
        if kind is tuple:
            items = [self._of(each) for each in arguments]
            return {"type": "array", "prefixItems": items, "minItems": len(items)}
        if isinstance(kind, type) and issubclass(kind, Mapping):
            return {"type": "object"}
        return {}  # any JSON

    def _object(self, kind: type) -> Schema:
        name = kind.__name__
        if name not in self.found:
            self.found[name] = {}  # a graph may hold graphs
            properties = {
                field: schema | ({"description": text} if text else {})
                for field, schema, text in self._fields(kind)
            }
            self.found[name] = {
                "description": getdoc(kind) or "",
                "type": "object",
                "properties": properties,
                "required": ["role", "content"] if kind is Message else _required(kind),
            }
        return _reference(name)


_PLAIN: Mapping[Any, str] = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    type(None): "null",
}
_SHORT = ("string", "integer", "number", "boolean")
"""Types of fields that are never a body of their own, unless they are words."""


def _reference(name: str) -> Schema:
    return {"$ref": f"#/$defs/{name}"}


def _required(kind: type) -> list[str]:
    all_of = fields(cast("Any", kind))
    return [each.name for each in all_of if each.default is each.default_factory is MISSING]


def _either(*schemas: Schema) -> Schema:
    """What any of them takes; anything, if one of them does."""
    if {} in schemas:
        return {}
    return {"anyOf": [part for each in schemas for part in _parts(each)]}


def _parts(schema: Schema) -> list[Schema]:
    return schema["anyOf"] if list(schema) == ["anyOf"] else [schema]


def _texts(kind: type) -> Mapping[str, str]:
    if not kind.__module__.startswith("devall."):
        return {}
    if kind.__module__ not in _CACHE:
        assert kind.__module__ in sys.modules
        _CACHE[kind.__module__] = docstrings(kind.__module__)
    return _CACHE[kind.__module__].get(kind.__name__, {})


_CACHE: dict[str, dict[str, dict[str, str]]] = {}
