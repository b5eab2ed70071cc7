"""The JSON Schemas that agents' answers must fit: read, and checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from devall.core.errors import SetupError
from devall.core.messages import JsonValue


def read_schema(written: JsonValue, base: Path) -> dict[str, JsonValue]:
    """The schema that an `output_schema` stands for.

    Args:
        written: A schema, or the path of a file with one.
        base: Where the path begins.

    Raises:
        SetupError: the file cannot be read, or holds no JSON object.
    """
    if not isinstance(written, str):
        return dict(cast("Mapping[str, JsonValue]", written))
    place = base / written
    try:
        read: JsonValue = json.loads(place.read_bytes())
    except OSError as error:
        raise SetupError(f"`output_schema` {place} cannot be read: {error}") from error
    except (ValueError, RecursionError) as error:
        raise SetupError(f"`output_schema` {place} is no JSON: {error}") from error
    if not isinstance(read, dict):
        raise SetupError(f"`output_schema` {place} is no JSON Schema: it holds no object")
    return cast("dict[str, JsonValue]", read)


def validator_of(schema: Mapping[str, JsonValue]) -> Any:
    """The validator of a schema.

    Raises:
        SetupError: it is no JSON Schema, or refers to something that does not stand in it.
    """
    from jsonschema.exceptions import SchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry

    kind = cast(Any, validator_for(schema))
    try:
        kind.check_schema(schema)
    except SchemaError as error:
        where = "/".join(map(str, error.absolute_path))
        at = f" at {where}" if where else ""
        raise SetupError(f"`output_schema` is no JSON Schema{at}: {error.message}") from error
    names = set(_named(schema, "$id")) | {f"#{each}" for each in _named(schema, "$anchor")}
    for reference in _named(schema, "$ref"):
        if not _is_there(reference, schema, names):
            raise SetupError(
                f"`output_schema`: `$ref: {reference}` leads to nothing in the schema",
                hint="put it under `$defs` and write `#/$defs/NAME`; nothing is read from elsewhere",
            )
    # An empty registry: a `$ref` to the network is never followed.
    return kind(schema, registry=cast(Any, Registry)())


def _is_there(reference: str, schema: Mapping[str, JsonValue], names: set[str]) -> bool:
    if reference in names or reference == "#":
        return True
    if names and not reference.startswith("#/"):
        return True  # perhaps relative to one of them
    if not reference.startswith("#/"):
        return reference.startswith("https://json-schema.org/")
    value: JsonValue = schema
    for step in reference[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = cast("dict[str, JsonValue]", value)[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(cast("Any", value)):
            value = cast("list[JsonValue]", value)[int(key)]
        else:
            return bool(names)  # a schema within may be what it begins at
    return True


def _named(value: JsonValue, key: str) -> Iterator[str]:
    """The texts that stand under a key anywhere in a schema; examples and constants aside."""
    todo: list[JsonValue] = [value]
    while todo:
        each = todo.pop()
        if isinstance(each, dict):
            members = cast("dict[str, JsonValue]", each)
            found = members.get(key)
            if isinstance(found, str):
                yield found
            todo += [v for k, v in members.items() if k not in _NO_SCHEMAS]
        elif isinstance(each, list):
            todo += cast("Sequence[JsonValue]", each)


_NO_SCHEMAS = frozenset({"const", "default", "enum", "example", "examples"})
