"""A case as its file says it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias, cast

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator
from pydantic_core import PydanticCustomError

from devall.config.base import (
    ConfigModel,
    Count,
    JsonObject,
    Many,
    NotNegative,
    OneOrMany,
    Text,
    TextMap,
)
from devall.config.limits import Limits
from devall.core.messages import JsonValue
from devall.testing.cases.expectations import Expectations, Or
from devall.testing.script import Reply, ScriptedCall

_Arguments: TypeAlias = Annotated[
    Any, WithJsonSchema({"anyOf": [{"type": "object"}, {"type": "string"}]})
]


class CaseCall(ConfigModel):
    """A tool call in a reply."""

    name: Text
    """The tool, as the model is offered it."""
    arguments: _Arguments = Field(default_factory=dict)
    """An object; or a text, given as it is (for arguments that are no JSON)."""
    id: str = ""
    """Empty: made up."""


class CaseReply(ConfigModel):
    """One reply of a model. A text alone: `text`."""

    text: str = ""
    """What it says."""
    tool_calls: Many[CaseCall] = ()
    """Tools that it asks for."""
    error: str = ""
    """Code of an error, such as `rate_limit_exceeded`, `insufficient_quota` or
    `context_length_exceeded`; it brings its own status."""
    status: Count | None = None
    """HTTP status of an error."""
    retry_after: NotNegative | None = None
    """Seconds that an error asks to wait."""
    delay: NotNegative = 0
    """Seconds until it comes."""
    finish_reason: str = ""
    """Empty: `tool_calls` where there are any, else `stop`; `length`: it was cut off."""
    usage: JsonObject | None = None
    """`{prompt_tokens: N, completion_tokens: N}`; absent: words are counted; empty: unknown."""
    fault: Literal["silence", "close"] | None = None
    """`silence`: it never comes; `close`: the connection breaks."""

    def scripted(self) -> Reply:
        """The reply as scripts of tests have it."""
        return Reply(
            self.text,
            tuple(ScriptedCall(each.name, each.arguments, each.id) for each in self.tool_calls),
            delay=self.delay,
            status=self.status or 200,
            retry_after=self.retry_after,
            error=self.error,
            finish_reason=self.finish_reason,
            usage=self.usage,
            fault=self.fault,
        )


def _as_reply(value: object) -> object:
    return {"text": value} if isinstance(value, str) else value


ReplyLike: TypeAlias = Annotated[CaseReply, BeforeValidator(_as_reply), Or("string")]


class ToolOutcome(ConfigModel):
    """What a tool gives. A text, a number, true or false alone: `result`."""

    result: Any = None
    """A text as it is; anything else as JSON."""
    error: Text | None = None
    """The tool fails with these words."""

    @model_validator(mode="after")
    def _one_of_both(self) -> ToolOutcome:
        if self.error is not None and self.result is not None:
            raise PydanticCustomError("both", "either `result` or `error`, not both")
        return self

    @property
    def text(self) -> str:
        """What the model is told."""
        if self.error is not None:
            return self.error
        is_text = isinstance(self.result, str)
        return self.result if is_text else json.dumps(self.result, ensure_ascii=False)


def _as_outcome(value: object) -> object:
    return cast("object", value) if isinstance(value, Mapping) else {"result": value}


OutcomeLike: TypeAlias = Annotated[ToolOutcome, BeforeValidator(_as_outcome)]


class ToolScript(ConfigModel):
    """What a tool gives, time after time."""

    outcomes: Many[OutcomeLike]
    """In order."""
    is_for_every_call: bool = False
    """Whether there is one, for however many calls."""


def _as_script(value: object) -> object:
    if isinstance(value, list):
        return {"outcomes": cast("object", value)}
    return {"outcomes": [value], "is_for_every_call": True}


def _as_answers(value: object) -> object:
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        items = cast("list[object]", value)
        if all(isinstance(item, str) for item in items):
            return tuple(items)
    raise PydanticCustomError("answers", "a text, or a list of texts in order, is wanted")


_OUTCOME: dict[str, Any] = {
    "anyOf": [
        {"type": ["string", "number", "boolean"]},
        {"type": "object", "required": ["result"], "properties": {"result": {}}},
        {"type": "object", "required": ["error"], "properties": {"error": {"type": "string"}}},
    ]
}
AnswersOf: TypeAlias = Annotated[
    Any,
    BeforeValidator(_as_answers),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]
ScriptOf: TypeAlias = Annotated[
    ToolScript,
    BeforeValidator(_as_script),
    WithJsonSchema({"anyOf": [*_OUTCOME["anyOf"], {"type": "array", "items": _OUTCOME}]}),
]
RepliesOf: TypeAlias = OneOrMany[ReplyLike]


class CaseFile(ConfigModel):
    """A test of a workflow; paths are relative to the case's folder."""

    description: str = ""
    """What it is about."""
    workflow: Text
    """The workflow's file."""
    task: str | None = None
    """What the start nodes get."""
    task_file: Text | None = None
    """A file with the task, in place of `task`."""
    vars: JsonObject = Field(default_factory=dict)
    """Values for the variables of the file, before its own."""
    env: TextMap = Field(default_factory=dict)
    """Variables of the environment, before those of the machine; `***`: a secret, which only
    recording anew needs."""
    answers: dict[str, AnswersOf] = Field(default_factory=dict)
    """What humans say, by node id: a text for every time, or a list in order."""
    models: TextMap = Field(default_factory=dict)
    """Model names by node id; `*`: all nodes."""
    providers: TextMap = Field(default_factory=dict)
    """Providers by node id; `*`: all nodes."""
    functions_dir: Text | None = None
    """The project's own functions, if they are not found upwards of the workflow."""
    ex_tools: Many[str] = ()
    """Tools for every agent beside those of the file."""
    limits: Limits | None = None
    """Bounds of the run beside those of the file."""
    recording: Text | None = None
    """The steps of a run, as `devall test add` writes them: nothing is called."""
    replies: dict[str, RepliesOf] = Field(default_factory=dict)
    """What models say: replies in order, by node id (`S/X` in a subgraph) or by model name."""
    tools: dict[str, ScriptOf] = Field(default_factory=dict)
    """What tools give, by the name that the model knows: one result for every call, or a list in
    order. Other tools are really called; where a tool of an MCP server stands here, no MCP server
    is started."""
    expect: Expectations = Field(default_factory=Expectations)
    """What has to come of the run; absent: it completes."""

    @model_validator(mode="after")
    def _no_contradiction(self) -> CaseFile:
        pairs = (("task", "task_file"), ("recording", "replies"), ("recording", "tools"))
        for first, second in pairs:
            if getattr(self, first) and getattr(self, second):
                text = f"`{first}` and `{second}` exclude each other"
                raise PydanticCustomError("both", "{text}", {"text": text})
        return self


def case_schema() -> dict[str, JsonValue]:
    """The JSON Schema of a case's file, for editors."""
    from devall.config.schema import schema_of

    return schema_of(CaseFile, "DevAll test case")
