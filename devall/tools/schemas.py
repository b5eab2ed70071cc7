"""Checks values against JSON Schemas that others wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any, cast

from devall.core.errors import ToolArguments
from devall.core.messages import JsonValue

MISFITS = 5
"""How many misfits are named at most."""


def check_arguments(arguments: Mapping[str, JsonValue], schema: Mapping[str, JsonValue]) -> None:
    """Check arguments against the schema that their tool declares.

    A schema that is itself wrong, or refers to documents elsewhere, proves nothing: the
    arguments pass, and the tool's own check decides.

    Raises:
        ToolArguments: they do not fit; the first misfits are named.
    """
    misfits = find_misfits(dict(arguments), schema)
    if misfits:
        raise ToolArguments("arguments do not fit: " + "; ".join(misfits))


def find_misfits(value: JsonValue, schema: Mapping[str, JsonValue]) -> list[str]:
    """What in a value does not fit a schema, at most five misfits; empty for a wrong schema."""
    validators = _library()
    kind = validators.validator_for(schema, default=validators.Draft202012Validator)
    try:
        kind.check_schema(schema)
        # An empty registry: without one the library fetches what a `$ref` names.
        errors = cast("Iterable[Any]", kind(schema, registry=_registry()).iter_errors(value))
        return [_misfit(error) for _, error in zip(range(MISFITS), errors, strict=False)]
    # The schema is a stranger's: a reference that leads nowhere, a pattern that Python's `re`
    # does not know or a type it makes no sense for each raise something of their own.
    except Exception:  # noqa: BLE001
        return []


def _misfit(error: Any) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
    text = str(error.message)
    shown = text if len(text) <= 300 else f"{text[:200]} ... {text[-95:]}"
    return f"{place.lstrip('.')}: {shown}" if place else shown


@lru_cache(maxsize=1)
def _library() -> Any:
    from jsonschema import validators

    return validators


@lru_cache(maxsize=1)
def _registry() -> Callable[..., Any]:
    from referencing.jsonschema import EMPTY_REGISTRY

    return cast("Any", EMPTY_REGISTRY)
