"""Templates in Jinja's language: read before anything runs, filled in without reaching further."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from devall.core.errors import SetupError, TemplateError
from devall.core.messages import JsonValue

Fill = Callable[[Mapping[str, JsonValue]], str]
"""The text that a template makes of values by name.

Raises:
    TemplateError: a value is not there, or not of a kind that the template takes.
"""


def template_of(source: str) -> Fill:
    """The template that a text holds.

    It sees the values that it is given and nothing of Python: attributes that lead to code, and
    loops of more than 100,000 steps, are refused. A name that has no value is an error and not
    an empty text.

    Raises:
        SetupError: it is no template; the text names the line.
    """
    from jinja2 import StrictUndefined, TemplateSyntaxError
    from jinja2 import TemplateError as JinjaError
    from jinja2.sandbox import SandboxedEnvironment

    environment: Any = SandboxedEnvironment(undefined=StrictUndefined, keep_trailing_newline=False)
    environment.filters["fromjson"] = json.loads
    environment.filters["tojson"] = _to_json
    try:
        template = environment.from_string(source)
    except TemplateSyntaxError as error:
        raise SetupError(f"line {error.lineno} of the template: {error.message}") from error
    except JinjaError as error:  # an unknown filter
        raise SetupError(f"the template: {error.message}") from error

    def fill(values: Mapping[str, JsonValue]) -> str:
        try:
            return template.render(values)
        except json.JSONDecodeError as error:
            raise TemplateError(f"`fromjson` got a text that is no JSON: {error}") from error
        except (JinjaError, TypeError, ValueError, ArithmeticError, OverflowError) as error:
            raise TemplateError(str(error)) from error

    return fill


def _to_json(value: JsonValue, indent: int | None = None) -> str:
    return json.dumps(value, ensure_ascii=False, indent=indent)
