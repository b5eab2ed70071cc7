"""How messages go from node to node: conditions, processors, fan-out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeAlias, cast

from pydantic import BeforeValidator, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from devall.config.base import ConfigModel, Count, OneOrMany, Regex, Text, always_the_same
from devall.config.expressions import Expression
from devall.config.json_path import JsonPath


def _as_group(value: object) -> object:
    """A number may be written as text, and an empty text is the whole match."""
    if isinstance(value, int | str) and not isinstance(value, bool):
        is_number = isinstance(value, str) and value.isascii() and value.isdigit()
        return int(value) if is_number else value or 0
    raise PydanticCustomError("int_or_text", "a whole number or text is wanted")


Group: TypeAlias = Annotated[int | str, BeforeValidator(_as_group)]


class Always(ConfigModel):
    """A condition that does not look at the text: `condition: true` or `false`."""

    type: Literal["always"] = "always"
    """The kind of condition."""
    value: bool = True
    """Whether the edge fires."""


class FunctionName(ConfigModel):
    """Which Python function."""

    name: Text
    """Its name, or `module:function`."""


class FunctionCondition(ConfigModel):
    """A function of `functions/edge/`: text in, bool out."""

    type: Literal["function"] = "function"
    """The kind of condition."""
    config: FunctionName
    """Which function."""


class KeywordConfig(ConfigModel):
    """Words that are looked for in the text; `none` is looked at first and wins."""

    legacy = frozenset({"default"})

    any: OneOrMany[str] = ()
    """True when one of these stands in the text."""
    none: OneOrMany[str] = ()
    """False when one of these stands in the text; with nothing else given, true otherwise."""
    regex: OneOrMany[Regex] = ()
    """True when one of these is found in the text."""
    case_sensitive: bool = True
    """Whether large and small letters differ."""

    @model_validator(mode="after")
    def _has_a_list(self) -> Self:
        if not (self.any or self.none or self.regex):
            raise PydanticCustomError(
                "no_keywords", "at least one of `any`, `none` and `regex` must hold something"
            )
        return self


class KeywordCondition(ConfigModel):
    """Words that are looked for in the text."""

    type: Literal["keyword"] = "keyword"
    """The kind of condition."""
    config: KeywordConfig
    """Which words."""


class ExpressionConfig(ConfigModel):
    """What must be true of the message."""

    when: Expression
    """An expression in Python's grammar, such as `score >= 8 and 'ok' in text`.

    `text` is the message's text; `data` is the JSON that it is, or that its first fenced block is,
    and each field of that object has its own name. A field that is missing is `null`: compared by
    order or looked for with `in` it gives false, calculated with it gives `null`, `len` of it is 0.
    Values that cannot be compared otherwise (text with a number) end the run. There are `and`, `or`,
    `not`, `in`, comparisons, `+ - * / // %`, `a if b else c`, `data.a.b`, `items[0]`, lists,
    `any(i.ok for i in items)`; the functions `abs all any len lower max min number round strip sum
    upper`; and on texts `count endswith lower startswith strip upper`."""


class ExpressionCondition(ConfigModel):
    """An expression over the JSON fields and the text of the message."""

    type: Literal["expression"] = "expression"
    """The kind of condition."""
    config: ExpressionConfig
    """Which expression."""


class FunctionProcess(ConfigModel):
    """A function of `functions/edge_processor/`: text in, text out."""

    type: Literal["function"] = "function"
    """The kind of processor."""
    config: FunctionName
    """Which function."""


class RegexOptions(ConfigModel):
    """How a regular expression is applied."""

    pattern: Regex
    """A regular expression of Python's `re`."""
    group: Group | None = None
    """Number or name of the group that is taken; absent = the whole match."""
    case_sensitive: bool = True
    """Whether large and small letters differ."""
    multiline: bool = False
    """Whether `^` and `$` mean the borders of each line."""
    dotall: bool = False
    """Whether `.` also means a line break."""

    @model_validator(mode="after")
    def _has_the_group(self) -> Self:
        if self.group is None or self.group == 0:
            return self
        found = re.compile(self.pattern)
        known = [*range(1, found.groups + 1), *found.groupindex]
        if self.group not in known:
            raise PydanticCustomError(
                "unknown_group",
                "`pattern` has no group {group}",
                {"group": str(self.group), "known": ", ".join(map(str, known))},
            )
        return self


class RegexExtractConfig(RegexOptions):
    """What is taken out of the text."""

    multiple: bool = False
    """Whether all matches are taken, one a line."""
    template: str | None = None
    """Text around each match, which stands for `{match}`."""
    on_no_match: Literal["pass", "default", "drop"] = "pass"
    """Without a match: the text as it is, `default_value`, or nothing: the edge does not fire."""
    default_value: str = ""
    """The text for `on_no_match: default`."""


class RegexExtract(ConfigModel):
    """What a regular expression finds takes the text's place."""

    type: Literal["regex_extract"] = "regex_extract"
    """The kind of processor."""
    config: RegexExtractConfig
    """What is taken out."""


class SplitBase(ConfigModel):
    """What all splits have in common: settings beside `type`, or in a `config` block."""

    @classmethod
    def normalised(cls, data: dict[str, object]) -> dict[str, object]:
        """The split with its settings beside `type`."""
        config = data.get("config", {})
        if "config" not in data or not isinstance(config, dict):
            return data
        rest = {key: value for key, value in data.items() if key != "config"}
        return cast("dict[str, object]", config) | rest


class MessageSplit(SplitBase):
    """Each message is a unit."""

    type: Literal["message"] = "message"
    """The kind of split."""


class RegexSplit(SplitBase, RegexOptions):
    """Each match in a message's text is a unit."""

    type: Literal["regex"] = "regex"
    """The kind of split."""
    on_no_match: Literal["pass", "empty"] = "pass"
    """Without a match: the whole text is one unit, or there is none."""


class JsonPathSplit(SplitBase):
    """Each element of an array in a message's JSON is a unit; text that is no JSON is one."""

    type: Literal["json_path"] = "json_path"
    """The kind of split."""
    json_path: JsonPath
    """A dotted path (`data.items`) or JSONPath (`$.items[*]`) to the array."""


def _as_split(value: object) -> object:
    """A split that says no type is by message, as none at all is."""
    if isinstance(value, dict):
        split = cast("dict[str, object]", value)
        given = {key for key, each in split.items() if each not in (None, "", {})}
        return split if given else {"type": "message"}
    return value


Split: TypeAlias = Annotated[
    Annotated[MessageSplit | RegexSplit | JsonPathSplit, Field(discriminator="type")],
    BeforeValidator(_as_split),
]
"""How messages become units, by its `type`."""


class DynamicConfig(ConfigModel):
    """How units are worked on."""

    max_parallel: Count = 10
    """How many units run at once."""
    group_size: Annotated[int, Field(ge=2)] = 3
    """For `tree`: how many units are reduced to one."""
    on_unit_error: Literal["fail", "skip"] = "fail"
    """What a unit's failure does: `fail`: the node fails and the other units are cancelled;
    `skip`: the unit's output is left out, with a warning. Where all units fail, the node fails.
    Limits of the run, missing keys and calls in doubt are never skipped."""


class Dynamic(ConfigModel):
    """The target runs once for each unit of what the edge carries."""

    type: Literal["map", "tree"]
    """`map`: each unit's outputs, in order; `tree`: units are reduced in groups to one."""
    split: Split = Field(default_factory=MessageSplit)
    """How messages become units."""
    config: DynamicConfig = Field(default_factory=DynamicConfig)
    """How units are worked on."""


def _as_condition(value: object) -> object:
    """The block that a word stands for: `true`, a boolean, a function's name."""
    if isinstance(value, bool):
        return {"type": "always", "value": value}
    if isinstance(value, str):
        return _ALWAYS.get(value, {"type": "function", "config": {"name": value}})
    if isinstance(value, Mapping):
        block = cast("Mapping[str, Any]", value)
        config: Any = block.get("config")
        if block.get("type") == "function" and isinstance(config, Mapping):
            name = cast("Mapping[str, object]", config).get("name")
            if isinstance(name, str):
                return _ALWAYS.get(name, block)
        return block
    return value


_ALWAYS = {
    "true": {"type": "always", "value": True},
    "false": {"type": "always", "value": False},
}


class _OrWord:
    """Says in the JSON Schema that a word or a boolean may stand in the block's place."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": ["string", "boolean"]}, handler(schema)]}


Condition: TypeAlias = Annotated[
    Annotated[
        Always | FunctionCondition | KeywordCondition | ExpressionCondition,
        Field(discriminator="type"),
    ],
    BeforeValidator(_as_condition),
    _OrWord,
]
"""When an edge fires."""

Process: TypeAlias = Annotated[FunctionProcess | RegexExtract, Field(discriminator="type")]
"""What is done to the text on its way."""


class Edge(ConfigModel):
    """A way from one node to another; more than one between the same two is legal."""

    model_config = ConfigDict(validate_by_name=True, validate_by_alias=True)

    legacy = frozenset({"description"})

    from_: Annotated[Text, Field(alias="from")]
    """Id of the node that messages come from."""
    to: Text
    """Id of the node that messages go to."""
    trigger: bool = True
    """Whether it makes its target run; without, it only orders and delivers."""
    condition: Condition = Field(default_factory=always_the_same(Always))
    """When it fires: `true`, `false`, a function's name, or a block."""
    carry_data: bool = True
    """Whether it delivers the message."""
    keep_message: bool = False
    """Whether the message is never dropped by its target's context window."""
    clear_context: bool = False
    """Whether the target first forgets what is not kept."""
    clear_kept_context: bool = False
    """Whether the target first forgets what is kept."""
    process: Process | None = None
    """What is done to the text on its way."""
    dynamic: Dynamic | None = None
    """The target runs once for each unit of what the edge carries."""
