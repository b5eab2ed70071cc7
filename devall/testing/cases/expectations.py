"""What a case may expect of a run; every part may be left out."""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias, cast

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetJsonSchemaHandler,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from devall.config.base import (
    ConfigModel,
    CountOrNone,
    Many,
    NotNegative,
    OneOrMany,
    Regex,
    SchemaOrPath,
    Text,
)
from devall.core.outcome import Status


class Or:
    """Says in the JSON Schema that something shorter may stand in a mapping's place."""

    def __init__(self, kind: str) -> None:
        self._short = {"type": kind}

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [self._short, handler(schema)]}


def _as_schema(value: object) -> object:
    if isinstance(value, dict):
        from jsonschema.exceptions import SchemaError
        from jsonschema.validators import validator_for

        kind = cast(Any, validator_for(cast("dict[str, Any]", value)))
        try:
            kind.check_schema(value)
        except SchemaError as error:
            text = error.message
            found = PydanticCustomError("bad_schema", "no JSON Schema: {text}", {"text": text})
            raise found from error
    return cast("object", value)


class TextMatch(ConfigModel):
    """What a text has to be like; all that is given has to hold. A text alone: `equals`."""

    equals: str | None = None
    """The whole text; line breaks at its end do not count."""
    contains: OneOrMany[Text] = ()
    """Texts that stand in it."""
    not_contains: OneOrMany[Text] = ()
    """Texts that do not stand in it."""
    matches: OneOrMany[Regex] = ()
    """Regular expressions of Python's `re` that are found in it."""
    json_schema: Annotated[SchemaOrPath, AfterValidator(_as_schema)] = None
    """A JSON Schema, or the path of a file with one, that it fits as JSON; a fenced block in it is
    taken for the whole."""


def _as_match(value: object) -> object:
    return {"equals": value} if isinstance(value, str) else value


Match: TypeAlias = Annotated[TextMatch, BeforeValidator(_as_match), Or("string")]


class Times(ConfigModel):
    """How often something happens. A number alone: exactly so often."""

    min: CountOrNone = 0
    """At least."""
    max: CountOrNone | None = None
    """At most; absent: any number."""

    @model_validator(mode="after")
    def _in_order(self) -> Times:
        if self.max is not None and self.max < self.min:
            raise PydanticCustomError("bad_times", "`max` is less than `min`")
        return self

    def holds(self, number: int) -> bool:
        """Whether so often is right."""
        return self.min <= number and (self.max is None or number <= self.max)

    def __str__(self) -> str:
        if self.max == self.min:
            return str(self.min)
        return f"at least {self.min}" if self.max is None else f"{self.min} to {self.max}"


def _as_times(value: object) -> object:
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return {"min": value, "max": value} if is_number else value


TimesLike: TypeAlias = Annotated[Times, BeforeValidator(_as_times), Or("integer")]


class NodeExpectation(ConfigModel):
    """What is expected of a node. A number alone: `runs`."""

    runs: TimesLike | None = None
    """How often it runs; 0: not at all. Each unit of a dynamic edge counts."""
    output: Match | None = None
    """What its last run says."""


def _as_node(value: object) -> object:
    return {"runs": value} if isinstance(value, int) and not isinstance(value, bool) else value


NodeLike: TypeAlias = Annotated[NodeExpectation, BeforeValidator(_as_node), Or("integer")]

_MATCH_KEYS = frozenset(TextMatch.model_fields)


def _as_arguments(value: object) -> object:
    """Arguments as they are, but what is written like a `TextMatch` becomes one."""
    if not isinstance(value, dict):
        return value
    mapping = cast("dict[str, object]", value)
    return {name: _as_argument(given) for name, given in mapping.items()}


def _as_argument(given: object) -> object:
    if isinstance(given, dict):
        mapping = cast("dict[str, object]", given)
        if mapping and mapping.keys() <= _MATCH_KEYS:
            equals = mapping.get("equals")
            if equals is not None and not isinstance(equals, str):
                return equals
            return TextMatch.model_validate(mapping)
    return cast("object", given)


class ToolExpectation(ConfigModel):
    """A tool that is called."""

    name: Text
    """The tool, as the model calls it."""
    node: Text | None = None
    """The node that calls it, `S/X` in a subgraph; absent: any."""
    arguments: Annotated[dict[str, Any], BeforeValidator(_as_arguments)] = Field(
        default_factory=dict
    )
    """Arguments that a call has, others aside: values, or `{contains: ...}`, `{matches: ...}` and
    so on for texts."""
    times: TimesLike = Field(default_factory=lambda: Times(min=1))
    """How many calls are like that; absent: at least one."""


class AtMost(ConfigModel):
    """Bounds of what a run uses; a recorded run uses what was recorded."""

    model_calls: CountOrNone | None = None
    """Calls of models, failed ones included."""
    tool_calls: CountOrNone | None = None
    """Calls of tools."""
    tokens: CountOrNone | None = None
    """Input and output tokens together."""
    seconds: NotNegative | None = None
    """Seconds that the case takes, which is next to nothing for a recording."""
    usd: NotNegative | None = None
    """US dollars, by the prices that are known."""


class ErrorExpectation(ConfigModel):
    """How a run fails."""

    code: Text | None = None
    """The stable name of the kind of failure, such as `model_refused`."""
    message: OneOrMany[Text] = ()
    """Texts that stand in the message."""
    node: Text | None = None
    """The node that fails, `S/X` in a subgraph."""


class Expectations(ConfigModel):
    """What has to come of the run; without `status`, `exit_code` and `error` it has to complete."""

    status: Status | None = None
    """How it ends."""
    exit_code: CountOrNone | None = None
    """What `devall run` would end with."""
    answer: Match | None = None
    """The answer."""
    nodes: dict[str, NodeLike] = Field(default_factory=dict)
    """By node id, `S/X` in a subgraph."""
    tools: Many[ToolExpectation] = ()
    """Calls of tools, in any order."""
    at_most: AtMost = Field(default_factory=AtMost)
    """What it may use."""
    error: ErrorExpectation | None = None
    """How it fails."""

    @property
    def wanted_status(self) -> Status | None:
        """The status that is expected; None: any that goes with the rest."""
        if self.status is not None:
            return self.status
        return "completed" if self.exit_code is None and self.error is None else None
