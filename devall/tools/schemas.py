"""Checks values against JSON Schemas that others wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

from devall.core.errors import ToolArguments
from devall.core.messages import JsonValue

MISFITS = 5
"""How many misfits are named at most."""


class SchemaCheck:
    """A JSON Schema, compiled when the first value is checked.

    A schema that is itself wrong, or refers to documents elsewhere, proves nothing: every value
    passes, and whoever takes the value decides.
    """

    def __init__(self, schema: Mapping[str, JsonValue]) -> None:
        self._schema = schema

    def check_arguments(self, arguments: Mapping[str, JsonValue]) -> None:
        """Check a tool's arguments.

        Raises:
            ToolArguments: they do not fit; the first misfits are named.
        """
        misfits = self.misfits(dict(arguments))
        if misfits:
            raise ToolArguments("arguments do not fit: " + "; ".join(misfits))

    def misfits(self, value: JsonValue) -> list[str]:
        """What in a value does not fit, at most five misfits."""
        if self._validator is None:
            return []
        try:
            errors = cast("Iterable[Any]", self._validator.iter_errors(value))
            return [_misfit(error) for _, error in zip(range(MISFITS), errors, strict=False)]
        # A reference that leads nowhere, or a type that a keyword makes no sense for.
        except Exception:  # noqa: BLE001
            return []

    @cached_property
    def _validator(self) -> Any:
        """The library's validator, None for a schema that is wrong itself."""
        from jsonschema import validators
        from referencing.jsonschema import EMPTY_REGISTRY

        library: Any = validators
        try:
            kind = library.validator_for(self._schema, default=library.Draft202012Validator)
            kind.check_schema(self._schema)
        # The schema is a stranger's: it may be anything, and the library raises as many things.
        except Exception:  # noqa: BLE001
            return None
        # An empty registry: without one the library fetches what a `$ref` names.
        return kind(self._schema, registry=EMPTY_REGISTRY)


def _misfit(error: Any) -> str:
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.path)
    text = str(error.message)
    shown = text if len(text) <= 300 else f"{text[:200]} ... {text[-95:]}"
    return f"{place.lstrip('.')}: {shown}" if place else shown
