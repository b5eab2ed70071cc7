"""What every model of the file format has in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar, cast

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    WithJsonSchema,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

FREE_PREFIX = "x-"
"""Keys that begin with this are the user's own, everywhere."""

T = TypeVar("T")


def _as_list(value: object) -> object:
    return cast("object", value) if isinstance(value, list | tuple) else [value]


def _without_nulls(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    mapping = cast("Mapping[str, object]", value)
    return {key: each for key, each in mapping.items() if each is not None}


def _as_regex(text: str) -> str:
    try:
        re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        reason = str(error)
        raise PydanticCustomError(
            "bad_regex", "no regular expression: {reason}", {"reason": reason}
        ) from error
    return text


def _as_schema(value: object) -> object:
    if isinstance(value, Mapping) or (isinstance(value, str) and value):
        return cast("object", value)
    raise PydanticCustomError(
        "schema_or_path", "a JSON Schema (a mapping), or the path of a file with one, is wanted"
    )


class _OrOneItem:
    """Says in the JSON Schema that one item may stand in the list's place."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        found = handler(schema)
        return {"anyOf": [found["items"], found]}


Many: TypeAlias = Annotated[tuple[T, ...], Field(strict=False)]
"""A list."""
OneOrMany: TypeAlias = Annotated[
    tuple[T, ...], Field(strict=False), BeforeValidator(_as_list), _OrOneItem
]
"""A list, or one item in its place."""
Text: TypeAlias = Annotated[str, Field(min_length=1)]
"""Text that is not empty."""
Regex: TypeAlias = Annotated[str, AfterValidator(_as_regex)]
"""A regular expression of Python's `re`."""
TextMap: TypeAlias = Annotated[dict[str, str], BeforeValidator(_without_nulls)]
"""Names to text; a name with `null` is not given."""
JsonObject: TypeAlias = dict[str, Any]
"""Any mapping, taken as it stands."""
SchemaOrPath: TypeAlias = Annotated[
    Any,
    BeforeValidator(_as_schema),
    WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string", "minLength": 1}]}),
]
"""A JSON Schema, or the path of a file with one."""
Positive: TypeAlias = Annotated[float, Field(gt=0)]
"""A number above zero."""
NotNegative: TypeAlias = Annotated[float, Field(ge=0)]
"""A number from zero."""
Count: TypeAlias = Annotated[int, Field(ge=1)]
"""A whole number from one."""
CountOrNone: TypeAlias = Annotated[int, Field(ge=0)]
"""A whole number from zero."""


M = TypeVar("M", bound=BaseModel)


def always_the_same(model: type[M]) -> Callable[[], M]:
    """A `default_factory` that gives one instance to all: models are frozen.

    A graph of 10,000 nodes would hold three objects more for each default of each node, which
    every full run of the garbage collector looks through.
    """
    return cache(model)


class ConfigModel(BaseModel):
    """A mapping of the file: unknown keys and wrong types are errors, and nothing is coerced.

    `null` means that a key is not given; keys that begin with `x-` are the user's own.
    """

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        allow_inf_nan=False,
        # Each model would be built again inside of every other that holds it.
        defer_build=True,
        # Docstrings of fields are read by schema.py when the schema is asked for: pydantic's
        # use_attribute_docstrings reads and parses the source at every start (0.1 s).
        hide_input_in_errors=True,
    )

    legacy: ClassVar[frozenset[str]] = frozenset()
    """Keys that old files carry and that mean nothing."""

    @model_validator(mode="before")
    @classmethod
    def _without_what_means_nothing(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        mapping = cast("dict[str, object]", data)
        legacy = cls.legacy
        return cls.normalised(
            {
                key: value
                for key, value in mapping.items()
                if value is not None and not key.startswith(FREE_PREFIX) and key not in legacy
            }
        )

    @classmethod
    def normalised(cls, data: dict[str, object]) -> dict[str, object]:
        """The mapping in its one form, where a model accepts several."""
        return data
