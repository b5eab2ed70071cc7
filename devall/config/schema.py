"""The JSON Schema of the file format, with the docstrings as descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from devall.config.base import FREE_PREFIX, ConfigModel
from devall.config.edges import SplitBase
from devall.config.tools import SourceBase
from devall.config.workflow import Workflow
from devall.core.docstrings import docstrings

Schema: TypeAlias = dict[str, Any]

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def json_schema() -> Schema:
    """The JSON Schema of a workflow file, for editors and checkers."""
    return schema_of(Workflow, "DevAll workflow")


def schema_of(model: type[ConfigModel], title: str) -> Schema:
    """The JSON Schema of a file that is written as a model has it."""
    schema = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    found: Schema = {"$schema": DIALECT} | schema | {"title": title}
    definitions: dict[str, Schema] = found.get("$defs", {})
    for source, config in _short_forms(definitions):
        source["required"] = [name for name in source["required"] if name != "config"]
        for name, value in config["properties"].items():
            source["properties"].setdefault(name, value)
    for definition in (found, *definitions.values()):
        _allow_nulls(definition)
    return found


def field_docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstring under each field of a model, the inherited ones included."""
    found: dict[str, str] = {}
    for cls in reversed(model.__mro__):
        if cls.__module__.startswith("devall.") and issubclass(cls, BaseModel):
            found |= docstrings(cls.__module__).get(cls.__name__, {})
    return found


class _Generator(GenerateJsonSchema):
    """Pydantic's generator, and what it cannot know: docstrings, and keys that are free."""

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        found = super().model_schema(schema)
        model = schema["cls"]
        if not issubclass(model, ConfigModel):
            return found
        by_name = {field.alias or name: name for name, field in model.model_fields.items()}
        texts = field_docstrings(model)
        properties: dict[str, Schema] = found.setdefault("properties", {})
        for key, value in properties.items():
            value.pop("title", None)
            text = texts.get(by_name.get(key, key))
            if text:
                value["description"] = text
        properties |= {key: {"description": "Ignored."} for key in sorted(model.legacy)}
        if issubclass(model, SplitBase):
            properties["config"] = {"type": "object", "description": "The keys beside `type`."}
            found["required"] = ["type"]
        elif "type" in properties:
            found["required"] = sorted({"type", *found.get("required", ())})
        found["patternProperties"] = {f"^{FREE_PREFIX}": {}}
        return found

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        found = super().default_schema(schema)
        if found.get("default") in ([], {}, "", None):
            found.pop("default", None)
        return found


def _short_forms(definitions: dict[str, Schema]) -> Iterator[tuple[Schema, Schema]]:
    """The sources of tools whose settings may stand beside `type`, with these settings."""
    for model in SourceBase.__subclasses__():
        if model.__name__ not in definitions:
            continue
        config: Any = model.model_fields["config"].annotation
        yield definitions[model.__name__], definitions[config.__name__]


def _allow_nulls(definition: Schema) -> None:
    """Let `null` stand for "not given" at every key that may be absent."""
    properties: dict[str, Schema] = definition.get("properties", {})
    for key in properties.keys() - set(definition.get("required", ())):
        value = dict(properties[key])
        description = value.pop("description", None)
        if not value:
            continue
        choices = value.pop("anyOf", None) if value.keys() <= {"anyOf", "default"} else None
        default = {"default": value.pop("default")} if "default" in value else {}
        null: Schema = {"type": "null"}
        allowed = [each for each in choices or [value] if each != null]
        properties[key] = {"anyOf": [*allowed, null]} | default
        if description:
            properties[key]["description"] = description
