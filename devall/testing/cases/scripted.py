"""Models and tools of a case that says what they give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any
from urllib.parse import unquote

from devall.config.nodes import AgentNode
from devall.config.prefixes import prefix_of
from devall.config.tools import FunctionSource, FunctionSourceConfig, FunctionTool, ToolSource
from devall.core.errors import ModelRefused, ToolFailed
from devall.core.ids import node_of
from devall.core.messages import JsonValue, Message, to_json
from devall.journal.base import Step, StepRecord
from devall.journal.memory import MemoryJournal
from devall.loading.loader import LoadedGraph, LoadedWorkflow
from devall.models.base import ChatModel, ChatReply, ChatRequest, ModelChoice, OnText
from devall.nodes.crew import Overrides
from devall.plugins.functions import FunctionCatalog
from devall.testing.cases.case import CaseReply, ToolScript
from devall.testing.scripted_model import ScriptedModel, ScriptedModels

_PREFIX = "scripted of the case: "
"""Before the names of tools that stand in for those of MCP servers."""
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class NodeChoice(ModelChoice):
    """A choice of a model that knows whose it is."""

    node: str = ""


@dataclass(frozen=True, slots=True)
class NodeOverrides(Overrides):
    """Overrides whose choices know their node."""

    def apply(self, choice: ModelChoice, node: str) -> ModelChoice:
        """The choice for a node."""
        chosen = Overrides.apply(self, choice, node)
        known = {each.name: getattr(chosen, each.name) for each in fields(ModelChoice)}
        return NodeChoice(**known, node=node)


@dataclass(frozen=True, slots=True)
class CaseModel:
    """The model of one node, by the script of the case."""

    choice: ModelChoice
    lane: ScriptedModel | None
    """What says its replies; None: the case has none for it."""
    source: CaseModels

    @property
    def provider(self) -> str:
        """The provider's name in the workflow."""
        return self.choice.provider

    @property
    def name(self) -> str:
        """The model's name in the workflow."""
        return self.choice.name

    @property
    def url(self) -> str:
        """There is no endpoint."""
        return ""

    async def complete(self, request: ChatRequest, on_text: OnText) -> ChatReply:
        """The next reply.

        Raises:
            ModelRefused: there is none, or it is an error that stays.
            ModelUnavailable: it is an error that may pass.
        """
        if self.lane is not None:
            try:
                reply = await self.lane.complete(request, on_text)
            except AssertionError:
                pass
            else:
                return replace(reply, model=self.name)
        raise self.source.beyond(self.choice, self.lane, request)


@dataclass(slots=True)
class CaseModels:
    """The source of models that say what the case says, by node or by model."""

    replies: Mapping[str, Sequence[CaseReply]]
    missing: list[str] = field(default_factory=list[str])
    """Calls for which there was no reply, in words."""
    _scripted: ScriptedModels = field(init=False)

    def __post_init__(self) -> None:
        script = {key: [r.scripted() for r in given] for key, given in self.replies.items()}
        self._scripted = ScriptedModels({"replies": script}, strict=True)

    def model(self, choice: ModelChoice, /) -> ChatModel:
        """The model of that choice, which is a node's."""
        node = choice.node if isinstance(choice, NodeChoice) else ""
        keys = (node, node.rpartition("/")[2], choice.name)
        lane = next((key for key in keys if key in self.replies), None)
        scripted = None if lane is None else self._scripted.model(replace(choice, name=lane))
        return CaseModel(choice, scripted, self)

    def beyond(
        self, choice: ModelChoice, lane: ScriptedModel | None, request: ChatRequest
    ) -> ModelRefused:
        """Note a call for which there is no reply; the error to raise."""
        node = choice.node if isinstance(choice, NodeChoice) else ""
        asked = " ".join(request.messages[-1].text.split()) if request.messages else ""
        if len(asked) > _LONGEST:
            asked = f"{asked[: _LONGEST - 1]}…"
        if lane is None:
            text = f"the case has no replies for node {node} (nor for model {choice.name})"
        else:
            had = len(self.replies[lane.name])
            text = f"the case has no reply number {had + 1} for {lane.name}"
        text += f"; it was asked: {asked!r}"
        self.missing.append(text)
        return ModelRefused(text)

    def unused(self) -> Mapping[str, int]:
        """How many replies of each key were not asked for."""
        return self._scripted.playback.unused()

    async def aclose(self) -> None:
        """Nothing is open."""


class ScriptedSteps(MemoryJournal):
    """Steps that are made, but for calls of the tools whose results the case gives."""

    def __init__(self, tools: Mapping[str, ToolScript]) -> None:
        """A journal that holds nothing but these.

        Args:
            tools: By the name that the model knows.
        """
        super().__init__()
        self._tools = tools
        self._called: dict[str, int] = {}
        self._offered: dict[str, set[str]] = {}
        """By the path of an agent's run."""
        self.missing: list[str] = []
        """Calls for which there was no result, in words."""

    async def find(self, step: Step, /) -> StepRecord | None:
        """The result of a tool that the case gives; None: it is to be made.

        Raises:
            ToolFailed: the case has no more results of it.
        """
        name = str(step.request["name"]) if step.kind == "tool" else ""
        script = self._tools.get(name)
        if script is None or name not in self._offered.get(_run_of(step.key), ()):
            return await super().find(step)
        number = self._called[name] = self._called.get(name, 0) + 1
        if script.is_for_every_call:
            outcome = script.outcomes[0]
        elif number <= len(script.outcomes):
            outcome = script.outcomes[number - 1]
        else:
            text = f"the case has no result number {number} for tool {name}"
            self.missing.append(f"{text}; it was called with {step.request['arguments']}")
            raise ToolFailed(text)
        node = node_of(step.key).rpartition("/")[2]
        call_id = unquote(step.key.rpartition("/tool:")[2])
        is_error = outcome.error is not None
        value = to_json(
            Message("tool", outcome.text, node, tool_call_id=call_id, is_error=is_error)
        )
        return StepRecord(step.key, step.kind, step.fingerprint, value)

    async def append(self, record: StepRecord, /) -> None:
        """Keep a step; what agents are offered is noted, as nobody calls anything else."""
        if record.kind == "tools" and record.value:
            self._offered[_run_of(record.key)] = {spec["name"] for spec in record.value}
        await super().append(record)

    def unused(self) -> Mapping[str, int]:
        """How many results of each tool were not asked for."""
        left = {
            name: len(script.outcomes) - self._called.get(name, 0)
            for name, script in self._tools.items()
            if not script.is_for_every_call
        }
        return {name: count for name, count in left.items() if count > 0}


class ScriptedCatalog(FunctionCatalog):
    """A catalogue that also knows the tools which stand in for those of MCP servers."""

    def __init__(self, inner: FunctionCatalog) -> None:  # pyright: ignore[reportMissingSuperCall]
        """A catalogue before another one.

        Args:
            inner: Asked for all else.
        """
        self._inner = inner

    def edge(self, name: str) -> Any:
        """The condition of that name."""
        return self._inner.edge(name)

    def edge_processor(self, name: str) -> Any:
        """The processor of that name."""
        return self._inner.edge_processor(name)

    def tool(self, name: str) -> list[tuple[str, Any]]:
        """The tools that a name stands for."""
        if name.startswith(_PREFIX):
            return [(name.removeprefix(_PREFIX), _never_called)]
        return self._inner.tool(name)


def without_servers(
    loaded: LoadedWorkflow,
    tools: Mapping[str, ToolScript],
    functions: FunctionCatalog,
    ex_tools: Sequence[str] = (),
) -> LoadedWorkflow:
    """The workflow without its MCP servers, where the case gives results of one of their tools.

    In their place each agent is offered the tools of the case that are no functions.

    Args:
        loaded: The workflow.
        tools: Of the case.
        functions: The project's own functions.
        ex_tools: Tools for every agent, as the case names them.
    """
    known = _function_names(loaded.root, functions)
    known.update(name for each in ex_tools for name in functions.tool_names(each))
    names = [name for name in tools if name not in known]
    return replace(loaded, root=_without(loaded.root, names)) if names else loaded


def _without(graph: LoadedGraph, names: Sequence[str]) -> LoadedGraph:
    stand_in = FunctionSource(
        type="function",
        config=FunctionSourceConfig(
            tools=tuple(
                FunctionTool(name=_PREFIX + name, parameters={"type": "object"}) for name in names
            )
        ),
    )
    nodes = [_node_without(node, stand_in) for node in graph.config.nodes]
    return replace(
        graph,
        config=graph.config.model_copy(update={"nodes": tuple(nodes)}),
        subgraphs={name: _without(child, names) for name, child in graph.subgraphs.items()},
    )


def _node_without(node: Any, stand_in: FunctionSource) -> Any:
    if not isinstance(node, AgentNode):
        return node
    own = node.config.tooling
    kept: list[ToolSource] = [each for each in own if isinstance(each, FunctionSource)]
    if len(kept) == len(own):
        return node
    config = node.config.model_copy(update={"tooling": (*kept, stand_in)})
    return node.model_copy(update={"config": config})


def _function_names(graph: LoadedGraph, functions: FunctionCatalog) -> set[str]:
    """The names of all function tools, as models know them."""
    found: set[str] = set()
    for node in graph.config.nodes:
        if not isinstance(node, AgentNode):
            continue
        for source in node.config.tooling:
            if isinstance(source, FunctionSource):
                prefix = prefix_of(source)
                for tool in source.config.tools:
                    # An import path leads to a tool that is called like its attribute, as a rule.
                    names = functions.tool_names(tool.name) or (tool.name.rpartition(":")[2],)
                    found |= {f"{prefix}_{name}" if prefix else name for name in names}
    for child in graph.subgraphs.values():
        found |= _function_names(child, functions)
    return found


def _run_of(key: str) -> str:
    """The path of the agent's run that a step belongs to."""
    return key.rpartition("/turn:")[0]


def _never_called() -> JsonValue:
    """A tool whose results the case gives."""
    raise ToolFailed("the case gives the results of this tool")
