"""The schema of a function's arguments, from its signature and docstring."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, cast, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from devall.core.errors import SetupError, ToolArguments
from devall.core.messages import JsonValue
from devall.tools.context import ToolContext
from devall.tools.docstrings import read_docstring

CONTEXT = "_context"
"""The parameter that is given the call's context and hidden from the model."""


@dataclass(frozen=True, slots=True)
class Signature:
    """How a function is called: what the model is told, and what the function gets."""

    description: str
    parameters: Mapping[str, JsonValue]
    """JSON Schema of the arguments: an object."""
    _model: type[BaseModel]
    _fields: Mapping[str, str]
    """Parameter name to field name of the model."""
    _positional: tuple[str, ...]
    """Parameters that cannot be given by name."""
    _contexts: tuple[str, ...]
    _always: frozenset[str]
    """Parameters whose own default is a pydantic `Field` and no value."""

    def bind(
        self, arguments: Mapping[str, JsonValue], context: ToolContext
    ) -> tuple[list[Any], dict[str, Any]]:
        """The function's arguments, validated and of the annotated types.

        A parameter that is not given is left out, so that the function's own default holds.

        Raises:
            ToolArguments: they do not fit; every misfit is named.
        """
        try:
            valid = self._model.model_validate(dict(arguments))
        except ValidationError as error:
            raise ToolArguments(_misfits(error)) from error
        by_name = {
            name: getattr(valid, field)
            for name, field in self._fields.items()
            if field in valid.model_fields_set or name in self._always
        }
        by_name |= valid.model_extra or {}
        by_name |= dict.fromkeys(self._contexts, context)
        return [by_name.pop(name) for name in self._positional if name in by_name], by_name


def read_signature(function: Callable[..., Any], name: str) -> Signature:
    """The signature of a function that is to be a tool.

    Args:
        function: Any callable whose signature can be read.
        name: The tool's name, for errors.

    Raises:
        SetupError: an annotation cannot be resolved, or has no JSON Schema.
    """
    try:
        signature = inspect.signature(function)
        implementation = _implementation(function)
        hinted = implementation.__init__ if inspect.isclass(implementation) else implementation
        hints = get_type_hints(hinted, include_extras=True)
    except (NameError, TypeError, ValueError, AttributeError) as error:
        raise SetupError(f"tool `{name}`: its signature cannot be read: {error}") from error
    description, documented = read_docstring(inspect.getdoc(implementation) or "")
    fields: dict[str, Any] = {}
    names: dict[str, str] = {}
    positional: list[str] = []
    contexts: list[str] = []
    always: list[str] = []
    extra: Literal["forbid", "allow"] = "forbid"
    for parameter in signature.parameters.values():
        hint = hints.get(parameter.name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            extra = "allow"
        elif parameter.kind is not parameter.VAR_POSITIONAL:
            if parameter.kind is parameter.POSITIONAL_ONLY:
                positional.append(parameter.name)
            if parameter.name == CONTEXT or _is_context(hint):
                contexts.append(parameter.name)
                continue
            # Field names are made up: a parameter may be called `json` or `_x`, a field not.
            names[parameter.name] = made_up = f"p{len(fields)}"
            default = ... if parameter.default is parameter.empty else parameter.default
            if isinstance(default, FieldInfo):  # def f(x: int = Field(1, ge=0))
                hint = Annotated[hint, default]
                required = default.is_required()
                default = ... if required else default.get_default(call_default_factory=True)
                always.append(parameter.name)
            described = _description(hint) or documented.get(parameter.name)
            fields[made_up] = (
                hint,
                Field(default, alias=parameter.name, description=described),
            )
    try:
        model = create_model(
            "Arguments",
            __config__=ConfigDict(extra=extra),
            **fields,
        )
        schema = model.model_json_schema(schema_generator=_Quiet)
    except PydanticUserError as error:
        raise SetupError(
            f"tool `{name}`: an argument's type has no JSON Schema: {error.message}",
            hint="annotate arguments with plain types, dataclasses or pydantic models",
        ) from error
    return Signature(
        description=description,
        parameters=_tidied(schema),
        _model=model,
        _fields=names,
        _positional=tuple(positional),
        _contexts=tuple(contexts),
        _always=frozenset(always),
    )


def read_model(model: type[BaseModel], function: Callable[..., Any], name: str) -> Signature:
    """The signature of a function whose arguments a model describes.

    Args:
        model: Its fields are the arguments; the function gets each of them, by name.
        function: What takes them, and the call's context if it asks for it.
        name: The tool's name, for errors.

    Raises:
        SetupError: a field has no JSON Schema.
    """
    try:
        schema = model.model_json_schema(schema_generator=_Quiet)
    except PydanticUserError as error:
        raise SetupError(
            f"tool `{name}`: a field of `args_schema` has no JSON Schema: {error.message}"
        ) from error
    hints: dict[str, Any] = {}
    with contextlib.suppress(NameError, TypeError, AttributeError):
        hints = get_type_hints(_implementation(function), include_extras=True)
    parameters = inspect.signature(function).parameters
    return Signature(
        description=inspect.getdoc(model) or "",
        parameters=_tidied(schema),
        _model=model,
        _fields={field: field for field in model.model_fields},
        _positional=(),
        _contexts=tuple(n for n in parameters if n == CONTEXT or _is_context(hints.get(n))),
        _always=frozenset(model.model_fields),
    )


def _implementation(function: Callable[..., Any]) -> Any:
    """What holds a callable's annotations and docstring."""
    target: Any = inspect.unwrap(function)
    while isinstance(target, functools.partial):
        target = inspect.unwrap(cast("Callable[..., Any]", target.func))
    if inspect.isroutine(target) or inspect.isclass(target):
        return target
    return type(target).__call__


def _is_context(hint: object) -> bool:
    return hint is ToolContext or (
        get_origin(hint) is not None and any(_is_context(each) for each in get_args(hint))
    )


def _description(hint: object) -> str:
    """What an annotation's extras say, beside those that pydantic reads itself."""
    for each in get_args(hint)[1:] if get_origin(hint) is Annotated else ():
        found = each if isinstance(each, str) else getattr(each, "description", None)
        if isinstance(found, str) and found:
            return found
    return ""


class _Quiet(GenerateJsonSchema):
    """A default that JSON cannot write is left out of the schema without a word."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {  # noqa: RUF012 -- as pydantic has it
        "skipped-choice",
        "non-serializable-default",
    }


def _misfits(error: ValidationError) -> str:
    """What is wrong with the arguments, one misfit after the other."""
    lines: list[str] = []
    for each in error.errors(include_url=False, include_context=False):
        place = ".".join(str(part) for part in each["loc"]) or "arguments"
        given = "" if each["type"] == "missing" else f" (given: {str(each['input'])[:200]})"
        lines.append(f"{place}: {each['msg']}{given}")
    return "arguments do not fit: " + "; ".join(lines)


def _tidied(schema: dict[str, Any]) -> dict[str, JsonValue]:
    """The schema without the titles that pydantic makes of field names."""

    def tidy(value: Any, *, named: bool) -> Any:
        """`named`: the keys are names of the user's and no keywords of JSON Schema."""
        if isinstance(value, list):
            return [tidy(each, named=False) for each in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        return {
            key: each
            if not named and key in {"default", "enum", "const", "examples"}
            else tidy(each, named=not named and key in {"properties", "$defs"})
            for key, each in cast("dict[str, Any]", value).items()
            if named or key != "title"
        }

    tidied = tidy(schema, named=False)
    tidied.setdefault("properties", {})
    return tidied
