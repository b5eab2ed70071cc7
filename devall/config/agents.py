"""What an agent is: its model, its words, its tools, its memories."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    SerializeAsAny,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from devall.config.base import (
    ConfigModel,
    Count,
    CountOrNone,
    Many,
    NotNegative,
    OneOrMany,
    Positive,
    SchemaOrPath,
    Text,
    always_the_same,
)
from devall.config.tools import ToolSource

Stage = Literal["pre_gen_thinking", "gen", "post_gen_thinking", "finished"]

_YAML_1_1 = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def _as_images(value: object) -> object:
    if isinstance(value, bool) or value == "auto":
        return value
    word = value.lower() if isinstance(value, str) else ""
    meant = word if word in {"true", "false"} else _YAML_1_1.get(word, "")
    raise PydanticCustomError(
        "true_false_or_auto",
        "true, false or auto is wanted{hint}",
        {"hint": f"; here it is text: write {meant} without quotes" if meant else ""},
    )


_SENT = ("temperature", "top_p", "max_tokens")


class Params(ConfigModel):
    """What is passed to the model as given, and a few settings of ours that are not passed on."""

    model_config = ConfigDict(extra="allow")

    protocol: Literal["chat", "responses"] = "chat"
    """Which API of the endpoint is spoken: Chat Completions or Responses."""
    tool_loop_limit: Count = 50
    """Rounds of tool calls in one run of the node; one more is a failure."""
    repeat_limit: CountOrNone = 3
    """The same call with the same result so often in a row: the model is told; 0 = never."""
    timeout: Positive = 300
    """Seconds for one call of the model."""
    tool_mode: Literal["native", "json_schema", "text"] | None = None
    """How tools are offered and calls read; absent = the provider's default."""
    images: Annotated[bool | Literal["auto"], BeforeValidator(_as_images)] = "auto"
    """Whether the model is sent images: true, false, or `auto`: as long as it takes them. An
    endpoint that refuses a request for its images is asked once more without them, and gets none
    afterwards. Where an image is left out, its name stands in the text. Models of provider
    `local` take none."""
    echo_reasoning: Literal["auto", "always", "never"] = "auto"
    """Whether the thoughts that came with an answer (`reasoning_content`) are sent back in the next
    turn. `auto`: yes, until the endpoint refuses them; `always`: an empty one where a call came
    without; `never`: no. Of Chat Completions only."""
    api_version: str | None = None
    """Version of Azure's API; absent = `AZURE_OPENAI_API_VERSION` or `OPENAI_API_VERSION`."""
    tool_choice_then: Literal["auto", "none"] = "auto"
    """The `tool_choice` of the turns after the first, where that one is required or named."""
    temperature: float | None = None
    """Sent when given: how freely the model chooses."""
    top_p: float | None = None
    """Sent when given: the share of likely words that are chosen from."""
    max_tokens: Count | None = None
    """Sent when given: the longest answer, in tokens."""

    @property
    def sent(self) -> dict[str, Any]:
        """What goes to the model: only what the file sets."""
        given = {name: value for name in _SENT if (value := getattr(self, name)) is not None}
        return given | (self.model_extra or {})


class MemoryAttachment(ConfigModel):
    """How an agent uses one of the graph's memory stores."""

    name: Text
    """Name of a store in `graph.memory`."""
    retrieve_stage: OneOrMany[Stage] | None = None
    """When it is looked into: before the answer (`gen`, as where it is absent; `pre_gen_thinking` is
    the same), or before the second look (`post_gen_thinking`); at `finished` nothing is read."""
    top_k: Count = 3
    """How many items are looked up."""
    similarity_threshold: float = -1
    """Items less alike than this are left out; -1 = none is."""
    read: bool = True
    """Whether the agent sees items."""
    write: bool = True
    """Whether the agent's exchange is added."""


class ReflectionConfig(ConfigModel):
    """How an agent reconsiders."""

    reflection_prompt: Text
    """What the model is asked over its role, input and first answer."""


class OwnThinkingConfig(ReflectionConfig):
    """Settings of a kind of thinking that a project brings: any mapping."""

    model_config = ConfigDict(extra="allow")

    reflection_prompt: str = ""
    """One of them, perhaps."""


class _OrAnyMapping:
    """Says in the JSON Schema that the settings of other kinds may be any mapping."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [handler(schema), {"type": "object"}]}


PROVIDERS = ("openai", "gemini", "anthropic", "azure", "ollama", "local")
"""The providers that ship with the package."""
THINKING_KINDS = ("reflection",)
"""The kinds of thinking that ship with the package."""


class Thinking(ConfigModel):
    """A second look at the answer; the second answer stands."""

    type: Text = "reflection"
    """The kind of second look: `reflection`, or a function of `functions/thinking/`."""
    config: Annotated[SerializeAsAny[ReflectionConfig], _OrAnyMapping]
    """Its settings; those of a function are what it takes."""

    @classmethod
    def normalised(cls, data: dict[str, object]) -> dict[str, object]:
        """The block with the settings of a kind that is not our own as they stand."""
        kind, config = data.get("type"), data.get("config", {})
        is_ours = not isinstance(kind, str) or not kind or kind in THINKING_KINDS
        if is_ours or not isinstance(config, dict):
            return data
        return {**data, "config": OwnThinkingConfig.model_validate(config)}

    @property
    def settings(self) -> Mapping[str, Any]:
        """What stands in `config`."""
        return self.config.model_dump(exclude_unset=True)


class AllowedSkill(ConfigModel):
    """A skill that an agent may use."""

    name: Text
    """Name in the front matter of its SKILL.md."""


class Skills(ConfigModel):
    """Folders of instructions under `.agents/skills/` that the agent may open."""

    enabled: bool = False
    """Whether the agent is told of the skills, and gets the tools `activate_skill` and
    `read_skill_file`. The nearest `.agents/skills` upwards of the workflow file counts. The skill
    that was made active last holds to the end of the node's run: while one with `allowed-tools` is
    active, only tools that fit one of these globs may be called."""
    allow: Many[AllowedSkill] = ()
    """Only these; empty = all that are found. One that is not there is an error."""


class RetryConfig(ConfigModel):
    """When to repeat a failed model call."""

    enabled: bool = True
    """Whether calls are repeated at all."""
    max_attempts: Count = 5
    """Attempts in all, the first one included."""
    min_wait_seconds: NotNegative = 1
    """Seconds before the second attempt; later waits grow."""
    max_wait_seconds: NotNegative = 6
    """The longest wait in seconds."""
    retry_on_status_codes: Many[int] = (408, 409, 425, 429, 500, 502, 503, 504)
    """HTTP statuses after which repeating may help."""
    retry_on_exception_types: Many[str] = ()
    """Names of exception classes after which to repeat as well."""
    non_retry_exception_types: Many[str] = ()
    """Names of exception classes after which never to repeat."""
    retry_on_error_substrings: Many[str] = ()
    """Repeat as well where the error's text holds one of these."""

    @model_validator(mode="after")
    def _waits_in_order(self) -> Self:
        if self.min_wait_seconds > self.max_wait_seconds:
            raise PydanticCustomError(
                "bad_range",
                "`min_wait_seconds` ({low}) is above `max_wait_seconds` ({high})",
                {"low": f"{self.min_wait_seconds:g}", "high": f"{self.max_wait_seconds:g}"},
            )
        return self


class HistoryConfig(ConfigModel):
    """What the model sees of a conversation that is longer than its window.

    Old tool results are shortened first, then old turns are left out, never a call without its
    results; a note says so where it was. The system prompt, the first and the newest inputs and
    the newest round always stay. What cannot fit even so is not sent: the node fails. Tokens are
    estimated from the length of the text, corrected by what the model last counted.
    """

    max_tokens: Count | None = None
    """Tokens that a request may have, its tools included; absent = the model's window, where it
    is known, less `params.max_tokens`."""
    keep_first: CountOrNone = 0
    """Rounds (an answer, or calls and their results) that stay at the beginning."""
    keep_last: Count = 1
    """Rounds that stay at the end."""


class AgentConfig(ConfigModel):
    """A model with a role, tools and memories."""

    provider: Text
    """`openai` (any OpenAI-compatible endpoint), `gemini`, `anthropic`, `azure`, `ollama` or `local`
    (in process); `devall providers` lists them."""
    name: Text
    """The model's name."""
    base_url: str | None = None
    """URL of the endpoint; absent = `BASE_URL` of the environment, then the provider's own."""
    api_key: Annotated[str | None, Field(repr=False)] = None
    """Key of the endpoint; absent = `API_KEY` of the environment, then the provider's own name
    for it."""
    role: str = ""
    """The system prompt; empty = none."""
    params: Params = Field(default_factory=Params)
    """Settings of the model."""
    input_mode: Literal["messages", "prompt"] = "messages"
    """`messages`: each input is a message; `prompt`: all are put into one user message."""
    tooling: OneOrMany[ToolSource] = ()
    """Where the agent's tools come from."""
    memories: OneOrMany[MemoryAttachment] = ()
    """The memory stores that it uses."""
    thinking: Thinking | None = None
    """A second look at the answer."""
    skills: Skills = Field(default_factory=always_the_same(Skills))
    """Instructions that it may open."""
    retry: RetryConfig = Field(default_factory=always_the_same(RetryConfig))
    """When to repeat a failed model call."""
    history: HistoryConfig = Field(default_factory=always_the_same(HistoryConfig))
    """What the model sees of a conversation that is longer than its window."""
    output_schema: SchemaOrPath | None = None
    """A JSON Schema that the answer must fit, or the path of a JSON file with one, beside the
    workflow. The agent is told of it; an answer that does not fit is asked for again with what is
    wrong, at most twice, then the node fails. `$ref` leads to parts of the schema itself alone."""
    parallel_tool_calls: Count = 8
    """How many tool calls of one turn run at once."""
