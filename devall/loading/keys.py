"""Which keys are legal where, by the models of the format."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from functools import cache
from types import UnionType
from typing import Annotated, Any, TypeAlias, Union, cast, get_args, get_origin

from pydantic import BaseModel

from devall.config import agents, edges, limits, memory, nodes, tools
from devall.config.base import ConfigModel
from devall.config.workflow import Workflow

Model: TypeAlias = type[ConfigModel]

_SAID: dict[Model, str] = {
    Workflow: "the file's root",
    nodes.Graph: "`graph`",
    agents.AgentConfig: "the `config` of an agent",
    agents.Params: "an agent's `params`",
    agents.MemoryAttachment: "an item of an agent's `memories`",
    agents.Thinking: "an agent's `thinking`",
    agents.ReflectionConfig: "the `config` of `thinking`",
    agents.Skills: "an agent's `skills`",
    agents.AllowedSkill: "an item of `skills.allow`",
    agents.RetryConfig: "an agent's `retry`",
    tools.FunctionSource: "a source of `tooling`",
    tools.McpRemoteSource: "a source of `tooling`",
    tools.McpLocalSource: "a source of `tooling`",
    tools.FunctionSourceConfig: "the `config` of a `function` source",
    tools.McpRemoteConfig: "the `config` of an `mcp_remote` source",
    tools.McpLocalConfig: "the `config` of an `mcp_local` source",
    tools.FunctionTool: "an item of `tools`",
    tools.ErrorWhen: "an `error_when`",
    edges.Edge: "an edge",
    edges.Always: "a condition",
    edges.FunctionCondition: "a condition",
    edges.KeywordCondition: "a condition",
    edges.ExpressionCondition: "a condition",
    edges.ExpressionConfig: "the `config` of an `expression` condition",
    edges.KeywordConfig: "the `config` of a `keyword` condition",
    edges.FunctionName: "the `config` of a function",
    edges.FunctionProcess: "a `process`",
    edges.RegexExtract: "a `process`",
    edges.RegexExtractConfig: "the `config` of `regex_extract`",
    edges.Dynamic: "an edge's `dynamic`",
    edges.DynamicConfig: "the `config` of `dynamic`",
    edges.MessageSplit: "a `split`",
    edges.RegexSplit: "a `split`",
    edges.JsonPathSplit: "a `split`",
    limits.Limits: "`limits`",
    memory.EmbeddingConfig: "a store's `embedding`",
    memory.FileSource: "an item of `file_sources`",
    nodes.SubgraphFile: "the `config` of a subgraph",
    nodes.SubgraphInline: "the `config` of a subgraph",
    nodes.SubgraphPath: "the inner `config` of a subgraph",
}

SENT_PARAMS = frozenset(
    {
        "extra_body",
        "frequency_penalty",
        "logit_bias",
        "logprobs",
        "max_completion_tokens",
        "max_tokens",
        "n",
        "presence_penalty",
        "reasoning_effort",
        "response_format",
        "seed",
        "stop",
        "temperature",
        "tool_choice",
        "top_p",
        "user",
        "verbosity",
    }
)
"""Well-known settings of models, which belong into `params`."""


def said(model: Model) -> str:
    """A mapping of the format in words: `an edge`, `the config of an agent`."""
    if issubclass(model, nodes.NodeBase):
        return f"a node of type {kind(model)}"
    if issubclass(model, memory.StoreBase):
        return f"a memory store of type {kind(model)}"
    if model in _SAID:
        return _SAID[model]
    for holder in (*_members(nodes.Node), *_members(memory.MemoryStore)):
        field = holder.model_fields.get("config")
        if field is not None and field.annotation is model:
            what = "node" if issubclass(holder, nodes.NodeBase) else "memory store"
            return f"the `config` of a {what} of type {kind(holder)}"
    return f"a {model.__name__}"


def kind(model: Model) -> str:
    """The `type` that a model of a union has."""
    return str(get_args(model.model_fields["type"].annotation)[0])


@cache
def legal_keys(model: Model) -> tuple[str, ...]:
    """The keys of a mapping, in the order of the format."""
    names = [field.alias or name for name, field in model.model_fields.items()]
    if issubclass(model, tools.SourceBase):
        config = cast("Any", model.model_fields["config"].annotation)
        names += [name for name in legal_keys(config) if name not in names]
    return tuple(names)


def model_at(loc: Sequence[str | int]) -> Model | None:
    """The mapping that pydantic's location of a finding stands in; its last step is the key."""
    current = _annotation_at(loc[:-1])
    return cast("Model", current) if _is_model(current) else None


def is_free(loc: Sequence[str | int]) -> bool:
    """Whether the last step of a location is a key of the user's own, such as a variable's."""
    return get_origin(_annotation_at(loc[:-1])) is dict


def kinds_at(loc: Sequence[str | int]) -> list[str]:
    """The values of `type` that are known at a location."""
    found = [kind(model) for model in _members(_annotation_at(loc))]
    return [each for each in found if each != "always"]  # files write a boolean


def _annotation_at(loc: Sequence[str | int]) -> Any:
    current: Any = Workflow
    for step in loc:
        current = _step(_plain(current), step)
        if current is None:
            return None
    return _plain(current)


def where_else(key: str, model: Model, loc: Sequence[str | int]) -> list[str]:
    """Where a key would be legal, in words: nearest to where it stands first, at most two."""
    above = [found for end in range(len(loc) - 1, 0, -1) if (found := model_at(loc[:end]))]
    around = [*_children(model), *above]
    if key in SENT_PARAMS and (agents.Params in around or model is nodes.AgentNode):
        return [_SAID[agents.Params]]
    for models in (around, [inner for each in around for inner in _children(each)]):
        found = [each for each in models if _has(each, key) and each is not model]
        if found and issubclass(found[0], nodes.NodeBase):
            return ["the node itself, beside `id` and `type`"]
        if found:
            return [said(found[0])]
    if key in SENT_PARAMS:
        return [_SAID[agents.Params]]
    found = [said(each) for each in _all_models() if _has(each, key)]
    return list(dict.fromkeys(found))[:2]


def is_legal_near(key: str, model: Model, loc: Sequence[str | int]) -> bool:
    """Whether a key is legal above or below a mapping, at most two steps down.

    Args:
        key: A key that is not legal in the mapping itself.
        model: The mapping.
        loc: Pydantic's location of the key.
    """
    above = [found for end in range(len(loc) - 1, 0, -1) if (found := model_at(loc[:end]))]
    below = [*_children(model), *(inner for each in _children(model) for inner in _children(each))]
    return any(_has(each, key) for each in (*above, *below) if each is not model)


def nearest(word: str, known: Iterable[str], count: int = 1) -> list[str]:
    """The known words that a mistyped one is like."""
    names = list(known)
    lower = {name.lower(): name for name in reversed(names)}
    asked = word.lower().replace("-", "_").strip()
    if asked in lower:
        return [lower[asked]]
    found = difflib.get_close_matches(asked, list(lower), count, 0.7)
    return [lower[each] for each in found]


def _has(model: Model, key: str) -> bool:
    """Whether a key is a mapping's own, the short form of tool sources aside."""
    return any(key == (field.alias or name) for name, field in model.model_fields.items())


def _step(current: Any, step: str | int) -> Any:
    if _is_model(current):
        model = cast("Model", current)
        for name, field in model.model_fields.items():
            if step in {name, field.alias}:
                return field.annotation
        return None
    origin, args = get_origin(current), get_args(current)
    if origin is tuple:
        return args[0] if isinstance(step, int) else None
    if origin in {Union, UnionType}:
        return next((each for each in args if _is_model(each) and kind(each) == step), None)
    return None


def _plain(annotation: Any) -> Any:
    """An annotation without `Annotated` and `| None`; the one forward reference is resolved."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in {Union, UnionType}:
        given = [each for each in get_args(annotation) if each is not type(None)]
        if len(given) == 1:
            return _plain(given[0])
    if annotation == "Graph" or getattr(annotation, "__forward_arg__", "") == "Graph":
        return nodes.Graph
    return annotation


def _is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _members(annotation: Any) -> tuple[Model, ...]:
    """The models that a value of that type may be."""
    plain = _plain(annotation)
    if _is_model(plain):
        return (plain,)
    inner = get_args(plain)
    return tuple(each for arg in inner for each in _members(arg))


@cache
def _children(model: Model) -> tuple[Model, ...]:
    found = [m for f in model.model_fields.values() for m in _members(f.annotation)]
    return tuple(dict.fromkeys(found))


@cache
def _all_models() -> tuple[Model, ...]:
    found: dict[Model, None] = {Workflow: None}
    queue: list[Model] = [Workflow]
    for model in queue:  # it grows
        new = [each for each in _children(model) if each not in found]
        found |= dict.fromkeys(new)
        queue += new
    return tuple(found)
