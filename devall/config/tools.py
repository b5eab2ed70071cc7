"""Where an agent's tools come from."""

from __future__ import annotations

from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from devall.config.base import (
    ConfigModel,
    Count,
    JsonObject,
    Many,
    NotNegative,
    OneOrMany,
    Positive,
    Regex,
    Text,
    TextMap,
)
from devall.config.json_path import JsonPath


def _as_url(text: str) -> str:
    if not text.startswith(("http://", "https://")):
        # The text may hold a secret: it is not repeated.
        raise PydanticCustomError("bad_url", "no URL: it must begin with http:// or https://")
    return text


def _as_globs(value: object) -> object:
    """`true` for all tools, `false` for none."""
    if isinstance(value, bool):
        return ["*"] if value else []
    return value


InDoubt: TypeAlias = Literal["retry", "fail", "ask"]
"""What is done with a tool call that was under way when a run was interrupted."""

Url: TypeAlias = Annotated[str, AfterValidator(_as_url)]

AUTO_PREFIX = "auto"
"""The `prefix` that stands for the source's own name."""
DEFAULT_SECONDS = 300.0
"""The time limit of a call where neither the file nor the tool sets one."""


class FunctionTool(ConfigModel):
    """One function that is offered as a tool, or all of a file."""

    legacy = frozenset({"auto_fill"})

    name: Text
    """A function of `functions/function_calling/`, `module:function`, `module:All` for all of a
    file, or an import path `package.module:attribute`."""
    description: str = ""
    """What the model is told, in place of the docstring."""
    parameters: JsonObject | None = None
    """JSON Schema of the arguments, in place of the one read from the signature."""


class FunctionSourceConfig(ConfigModel):
    """Which functions are offered."""

    legacy = frozenset({"schema_version"})

    tools: OneOrMany[FunctionTool]
    """The functions."""
    timeout: Positive | None = None
    """Seconds for one call; the source's own `timeout` stands before it."""
    auto_load: bool = True
    """Accepted from old files: functions are always found."""


class McpConfig(ConfigModel):
    """What both kinds of MCP server share."""

    cache_ttl: NotNegative = 0
    """Seconds for which a list of tools is used again; 0 = list anew for each run."""
    tool_sources: OneOrMany[str] | None = None
    """Only tools whose `meta.source` is in this list; absent: those marked `mcp_tools` and all
    that are not marked."""
    protocol: Literal["auto", "legacy", "modern"] = "auto"
    """The generation of the MCP protocol that is spoken."""


class McpRemoteConfig(McpConfig):
    """An MCP server that is reached by HTTP."""

    server: Url
    """URL, used exactly as written."""
    headers: TextMap = Field(default_factory=dict)
    """HTTP headers of every request."""
    timeout: Positive = 10
    """Seconds for one call; progress that the server reports starts them anew."""
    auth: Literal["oauth"] | None = None
    """`oauth`: the server is logged in to, as the MCP specification has it; see
    `devall mcp login`."""
    transport: Literal["auto", "http", "sse"] = "auto"
    """How the URL is spoken to: streamable HTTP, or server-sent events."""


class McpLocalConfig(McpConfig):
    """An MCP server that is started here and spoken to over its stdin and stdout."""

    command: Text
    """The program."""
    args: Many[str] = ()
    """Its arguments, one entry each."""
    cwd: str = ""
    """Its working directory; empty = that of the run."""
    env: TextMap = Field(default_factory=dict)
    """Environment variables that are added."""
    inherit_env: bool = True
    """Whether it sees the environment of devall as well."""
    startup_timeout: Positive = 10
    """Seconds until it must be ready."""
    wait_for_log: Regex | None = None
    """It is ready when this is found in a line of its stderr, or of its stdout that is no
    protocol."""
    shutdown_grace: NotNegative = 2
    """Seconds between asking it to stop and ending it."""
    max_concurrency: Count | None = None
    """How many calls it gets at once; absent = any number."""


class ErrorWhen(ConfigModel):
    """What makes a result an error that the tool itself does not call one.

    Either of `regex` and `json_path` is enough where both are given.
    """

    regex: Regex | None = None
    """Found anywhere in the result's text."""
    json_path: JsonPath | None = None
    """A path into the result, which is JSON then: `status`, or `$.errors[*]`. Something has to
    be there that is not null, false, 0 or empty; or what `equals` says."""
    equals: Any = None
    """What has to stand there: text, a number, true or false."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.equals is not None and self.json_path is None:
            raise PydanticCustomError(
                "no_condition", "`equals` needs a `json_path`, which says where to look"
            )
        if self.regex is None and self.json_path is None:
            raise PydanticCustomError("no_condition", "one of `regex` and `json_path` is needed")
        return self


class SourceBase(ConfigModel):
    """What every source of tools has."""

    prefix: str = ""
    """The tools are offered as `prefix_tool`; `auto`: the prefix is the source's own name (the
    file of the functions, the last word of the URL, the program that is started)."""
    include: OneOrMany[str] = ()
    """Globs over the tools' own names: only these are offered; empty = all."""
    exclude: OneOrMany[str] = ()
    """Globs over the tools' own names: these are not offered."""
    required: bool = True
    """Whether a source that cannot be reached fails the node before its first model call."""
    max_result_chars: Count = 40_000
    """Characters of a result that are kept."""
    timeout: Positive | None = None
    """Seconds for one call, whatever the kind of source; progress that the tool reports starts
    them anew, and they stand still while a human is asked. Absent: what the source's `config` or
    the tool itself says, else 300."""
    error_when: OneOrMany[ErrorWhen] = ()
    """Results that count as errors though the tool says otherwise; any one is enough."""
    idempotent: Annotated[OneOrMany[str], BeforeValidator(_as_globs)] = ()
    """Globs over the tools' own names, or `true` for all: a call of these whose outcome is
    unknown (no answer in time, a server that died, a run that was killed) is made once more.
    Tools that an MCP server itself marks as idempotent or read-only need not be named."""
    in_doubt: InDoubt = "fail"
    """What is done when a run goes on that was interrupted during a call: `fail` stops it with
    an error that names the call, `retry` makes it again, `ask` asks a human."""

    @classmethod
    def normalised(cls, data: dict[str, object]) -> dict[str, object]:
        """The source with its `config` block, also where its keys stand beside `type`."""
        if "config" in data:
            return data
        model = _CONFIGS.get(str(data.get("type")))
        if model is None:
            return data
        own = cls.model_fields
        names = model.model_fields.keys() | model.legacy
        config = {key: value for key, value in data.items() if key in names and key not in own}
        rest = {key: value for key, value in data.items() if key not in config}
        return rest | {"config": config}


class FunctionSource(SourceBase):
    """Python functions as tools."""

    type: Literal["function"] = "function"
    """The kind of source."""
    config: FunctionSourceConfig
    """Which functions."""


class McpRemoteSource(SourceBase):
    """The tools of an MCP server behind a URL."""

    type: Literal["mcp_remote"] = "mcp_remote"
    """The kind of source."""
    config: McpRemoteConfig
    """Which server."""


class McpLocalSource(SourceBase):
    """The tools of an MCP server that is started here."""

    type: Literal["mcp_local"] = "mcp_local"
    """The kind of source."""
    config: McpLocalConfig
    """Which program."""


_CONFIGS: dict[str, type[ConfigModel]] = {
    "function": FunctionSourceConfig,
    "mcp_remote": McpRemoteConfig,
    "mcp_local": McpLocalConfig,
}

ToolSource: TypeAlias = Annotated[
    FunctionSource | McpRemoteSource | McpLocalSource, Field(discriminator="type")
]
"""A source of tools, by its `type`."""
