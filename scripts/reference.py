"""Writes docs/reference.md: every key of the format, from the docstrings of the config models."""

from __future__ import annotations

import inspect
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from pydantic import BaseModel

from devall.config.base import ConfigModel
from devall.config.schema import field_docstrings, json_schema
from devall.config.workflow import Workflow

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"
SECTIONS = {
    "devall.config.workflow": "The file",
    "devall.config.nodes": "Graph and nodes",
    "devall.config.agents": "Agents",
    "devall.config.tools": "Tools",
    "devall.config.edges": "Edges",
    "devall.config.memory": "Memory",
    "devall.config.limits": "Limits",
}
"""Titles by the module that holds the models, in the order of the page."""
HEAD = """\
# Reference of the format

<!-- Written by `make reference` from the docstrings in devall/config: change those. -->

Every key of a workflow file. One without a default that is marked **needed** has to be there;
`null` is the same as leaving a key out, and keys that begin with `x-` are yours. `${NAME}` may
stand in any text ([variables.md](variables.md)). `devall schema` prints the same as a JSON Schema.
"""
_PLAIN = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
}
_BOUNDS = {"minimum": "≥", "exclusiveMinimum": ">"}

Schema = Mapping[str, Any]


def page() -> str:
    """The whole page."""
    reference = Reference()
    parts = [HEAD]
    for module, title in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts += [reference.entry(m) for m in reference.models if m.__module__ == module]
    return "\n".join(parts)


class Reference:
    """The models of the format, and their schemas."""

    def __init__(self) -> None:
        schema = json_schema()
        self._shapes: dict[str, Schema] = schema["$defs"] | {Workflow.__name__: schema}
        self.models: list[type[ConfigModel]] = []
        """In the order in which the file leads to them, each base before what has its keys too."""
        self._add(Workflow.__name__)

    def entry(self, model: type[ConfigModel]) -> str:
        """Title, text and table of a model."""
        about = [f"### {model.__name__}"]
        kind = self._properties(model).get("type", {})
        if "const" in kind:
            about.append(f"`type: {kind['const']}`")
        text, inner = inspect.getdoc(model) or "", self._inner(model)
        if inner is not None and "\n" in (longer := inspect.getdoc(inner) or ""):
            text = longer
        about.append(text)
        if base := _base(model):
            about.append(f"Has the keys of [{base.__name__}](#{base.__name__.lower()}) too.")
        if rows := list(self._rows(model)):
            head = ["| key | type | default | |", "| --- | --- | --- | --- |"]
            about.append("\n".join([*head, *rows]))
        return "\n\n".join(about) + "\n"

    def _add(self, name: str) -> None:
        """Take in a model, its base, and what its keys lead to."""
        model = _named(name)
        if model in self.models:
            return
        if base := _base(model):
            if base not in self.models:
                self.models.append(base)
            for value in self._properties(base).values():
                self._follow(value)
        self.models.append(model)
        inner = self._inner(model)
        for key, value in self._properties(model).items():
            if inner is None or key != "config":
                self._follow(value)
        if inner is not None:
            for value in self._properties(inner).values():
                self._follow(value)

    def _follow(self, value: Schema) -> None:
        for name in re.findall(r"#/\$defs/(\w+)", json.dumps({**value, "discriminator": None})):
            self._add(name)

    def _properties(self, model: type[ConfigModel]) -> dict[str, Schema]:
        """The schemas of the keys that a model has beside those of its base."""
        shape = self._shapes.get(model.__name__)
        if shape is None:  # a base: its keys stand in whatever has them too
            heirs = (name for name in self._shapes if issubclass(_named(name), model))
            shape = self._shapes[next(heirs)]
        base = _base(model)
        above: set[str] = set() if base is None else set(base.model_fields)
        own = model.model_fields.keys() - (above - set(model.__annotations__))
        names = [f.alias or n for n, f in model.model_fields.items() if n in own]
        return {key: shape["properties"][key] for key in names}

    def _inner(self, model: type[ConfigModel]) -> type[ConfigModel] | None:
        """The model whose keys stand under `config`, where only that key leads to it."""
        value = self._properties(model).get("config", {})
        links = re.fullmatch(r"\[(\w+)\]\(.*\)", _type(value)) if value else None
        if links is None or not links[1].endswith(("Config", "Path", "Name")):
            return None
        return _named(links[1])

    def _rows(self, model: type[ConfigModel], prefix: str = "") -> Iterator[str]:
        texts = field_docstrings(model)
        inner = self._inner(model)
        fields = {field.alias or name: (name, field) for name, field in model.model_fields.items()}
        for key, value in self._properties(model).items():
            if key == "type" and "const" in value:
                continue
            if key == "config" and inner is not None:
                yield from self._rows(inner, f"{prefix}config.")
                if base := _base(inner):
                    yield from self._rows(base, f"{prefix}config.")
                continue
            name, field = fields[key]
            default = field.get_default(call_default_factory=True)
            shown = "**needed**" if field.is_required() else _literal(default)
            yield f"| `{prefix}{key}` | {_cell(_type(value))} | {shown} | {_cell(texts[name])} |"


def _named(name: str) -> type[ConfigModel]:
    """The model of that name."""
    homes = (vars(sys.modules[module]) for module in SECTIONS)
    return next(home[name] for home in homes if name in home)


def _base(model: type[ConfigModel]) -> type[ConfigModel] | None:
    """The model whose keys another one has too."""
    for base in model.__bases__:
        if issubclass(base, ConfigModel) and base.model_fields:
            return base
    return None


def _literal(value: object) -> str:
    """A default as the file would have it; nothing where it stands for "not given"."""
    if isinstance(value, BaseModel) or value is None or value in ("", (), {}):
        return ""
    return f"`{json.dumps(value)}`" if not isinstance(value, str) else f"`{value}`"


def _type(value: Schema) -> str:
    """What may stand at a key, in words."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "const" in value:
        return f"`{value['const']}`"
    if "enum" in value:
        return ", ".join(f"`{each}`" for each in value["enum"])
    choices = value.get("anyOf") or value.get("oneOf")
    if choices:
        given = [each for each in choices if each != {"type": "null"}]
        match given:
            case [one, {"type": "array", "items": items}] if one == items:
                return f"{_type(one)}; or a list of such"
            case _:
                return ", ".join(dict.fromkeys(map(_type, given)))
    kind = value.get("type")
    if isinstance(kind, list):
        return ", ".join(_PLAIN[str(each)] for each in cast("list[object]", kind))
    if kind == "array" and "items" in value:
        return f"list of {_type(value['items'])}"
    if kind == "object" and value.get("additionalProperties", True) is not True:
        return f"mapping to {_type(value['additionalProperties'])}"
    bounds = "".join(f" {sign} {value[at]}" for at, sign in _BOUNDS.items() if at in value)
    return _PLAIN.get(str(kind), "anything") + bounds


def _cell(text: str) -> str:
    """A text on one line, with nothing in it that ends a cell."""
    return re.sub(r"\s+", " ", text).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
    print(f"wrote {PAGE.name}")
