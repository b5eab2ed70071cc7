from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from devall.core.errors import SetupError, ToolArguments
from devall.tools.context import ToolContext
from devall.tools.signature import read_signature

CONTEXT: Any = object()


class Unit(enum.Enum):
    C = "celsius"
    F = "fahrenheit"


class Place(BaseModel):
    title: str
    size: int = 1


@dataclass
class Point:
    x: int
    y: int = 0


def test_types_defaults_and_descriptions_make_the_schema():
    def find(
        city: str,
        count: Annotated[int, Field(ge=1, description="How many.")] = 3,
        unit: Literal["C", "F"] = "C",
        note: str | None = None,
    ) -> str:
        """Find the weather.

        More of it.

        Args:
            city: Where,
                in words.
            count: Overruled by the annotation.
            note (str, optional): A note.

        Returns:
            The weather.
        """

    signature = read_signature(find, "find")
    assert signature.description == "Find the weather.\n\nMore of it."
    assert signature.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["city"],
        "properties": {
            "city": {"type": "string", "description": "Where, in words."},
            "count": {"type": "integer", "minimum": 1, "default": 3, "description": "How many."},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "note": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "A note.",
            },
        },
    }


def test_the_context_is_given_and_hidden():
    def one(x: int, _context=None): ...
    def two(ctx: ToolContext, x: int): ...
    def three(x: int, *, ctx: ToolContext | None = None): ...

    for function, name in ((one, "_context"), (two, "ctx"), (three, "ctx")):
        signature = read_signature(function, "f")
        assert list(signature.parameters["properties"]) == ["x"]
        assert signature.bind({"x": 1}, CONTEXT) == ([], {"x": 1, name: CONTEXT})


def test_arguments_become_the_annotated_types():
    def f(unit: Unit, place: Place, point: Point, many: set[int], n: int = 5): ...

    _, found = read_signature(f, "f").bind(
        {
            "unit": "celsius",
            "place": {"title": "here"},
            "point": {"x": 1},
            "many": [1, 1],
            "n": "7",
        },
        CONTEXT,
    )
    assert found == {
        "unit": Unit.C,
        "place": Place(title="here"),
        "point": Point(1),
        "many": {1},
        "n": 7,
    }


def test_every_misfit_is_named_by_its_argument():
    def f(city: str, n: int): ...

    with pytest.raises(ToolArguments) as caught:
        read_signature(f, "f").bind({"n": "many", "other": 1}, CONTEXT)
    text = str(caught.value)
    assert "city: Field required" in text
    assert "n: " in text
    assert "many" in text
    assert "other: " in text


def test_titles_of_pydantic_go_and_a_users_own_field_of_that_name_stays():
    def f(place: Place, title: str = "x"): ...

    schema = read_signature(f, "f").parameters
    assert set(schema["properties"]) == {"place", "title"}
    assert set(schema["$defs"]["Place"]["properties"]) == {"title", "size"}
    assert "title" not in schema
    assert "title" not in schema["properties"]["title"]


def test_a_default_that_is_not_given_is_left_to_the_function():
    marker = object()

    def f(x: int = 1, y: Any = marker): ...

    assert read_signature(f, "f").bind({}, CONTEXT) == ([], {})


def test_a_field_as_default_gives_its_value():
    def f(x: int = Field(2, ge=0, description="An x.")): ...

    signature = read_signature(f, "f")
    assert signature.parameters["properties"]["x"] == {
        "type": "integer",
        "minimum": 0,
        "default": 2,
        "description": "An x.",
    }
    assert signature.bind({}, CONTEXT) == ([], {"x": 2})


def test_names_that_a_model_class_would_not_take_are_fine():
    def f(json: int, _hidden: int, model_x: int, schema: int, self_: int): ...

    given = {"json": 1, "_hidden": 2, "model_x": 3, "schema": 4, "self_": 5}
    assert read_signature(f, "f").bind(given, CONTEXT) == ([], given)


def test_positional_and_open_signatures_are_called_right():
    def f(a: int, b: int = 2, /, *rest: int, **more: str): ...

    signature = read_signature(f, "f")
    assert signature.bind({"a": 1, "z": "q"}, CONTEXT) == ([1], {"z": "q"})
    assert signature.parameters["additionalProperties"] is True


def test_words_in_an_annotation_describe_the_argument():
    def f(x: Annotated[int, "the x"]): ...

    assert read_signature(f, "f").parameters["properties"]["x"]["description"] == "the x"


def test_a_function_without_parameters_has_empty_properties():
    def f(): ...

    assert read_signature(f, "f").parameters["properties"] == {}


def test_partials_and_callable_objects_are_read():
    def add(a: int, b: int) -> int:
        """Add up."""

    class Adder:
        def __call__(self, a: int) -> int:
            """Add one."""

    assert read_signature(functools.partial(add, b=1), "f").description == "Add up."
    assert read_signature(Adder(), "f").description == "Add one."
    assert list(read_signature(Adder(), "f").parameters["properties"]) == ["a"]


def test_an_annotation_that_cannot_be_resolved_names_the_tool():
    def f(x: NoSuchThing): ...  # noqa: F821

    with pytest.raises(SetupError, match=r"`mytool`.*NoSuchThing"):
        read_signature(f, "mytool")


def test_a_type_without_schema_names_the_tool():
    def f(x: ToolArguments): ...

    with pytest.raises(SetupError, match="`mytool`"):
        read_signature(f, "mytool")
