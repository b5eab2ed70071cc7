"""A node's run in memory, tools that are plain functions, and agents made of a script."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from devall.agents.answers import AnswerSchema
from devall.agents.recall import Attached
from devall.agents.turns import Agent
from devall.config.agents import AgentConfig
from devall.core.errors import LimitReached, ToolError
from devall.core.events import Event
from devall.core.messages import JsonValue, Message, Part, TextPart, ToolCall, user
from devall.core.ports import CallKind, NodeResult, Scope, StepKind
from devall.core.usage import Estimate
from devall.models.base import ChatRequest, ModelChoice
from devall.testing.recorder import Recorder
from devall.testing.script import Answer, ReplyLike
from devall.testing.scripted_model import ScriptedModels
from devall.tools.arguments import parse_arguments
from devall.tools.base import ToolResult, ToolSpec

Journal = dict[str, tuple[str, str]]
"""Steps by key: the request and the value as JSON texts."""


@dataclass
class MemoryScope:
    """A node's run whose steps stand in a dict; what goes in must be JSON."""

    journal: Journal = field(default_factory=dict)
    bounds: dict[CallKind, int] = field(default_factory=dict)
    node: str = "A"
    path: str = "/A@1"
    recorder: Recorder = field(default_factory=Recorder)
    allowed: dict[CallKind, int] = field(default_factory=dict)
    estimates: list[Estimate] = field(default_factory=list)
    made: list[str] = field(default_factory=list)
    kinds: dict[str, StepKind] = field(default_factory=dict)

    def emit(self, event: Event, /) -> None:
        self.recorder(event)

    async def step(
        self,
        kind: StepKind,
        name: str,
        request: JsonValue,
        call: Callable[[], Awaitable[JsonValue]],
        in_doubt: Callable[[], Awaitable[JsonValue]] | None = None,
    ) -> JsonValue:
        assert name not in self.kinds, f"step {name} twice"
        self.kinds[name] = kind
        asked = json.dumps(request, sort_keys=True)
        if name in self.journal and self.journal[name][0] == asked:
            return json.loads(self.journal[name][1])
        self.made.append(name)
        value = json.dumps(await call())
        self.journal[name] = (asked, value)
        return json.loads(value)

    def allow(self, kind: CallKind, estimate: Estimate | None = None) -> None:
        if kind in self.bounds and self.allowed.get(kind, 0) >= self.bounds[kind]:
            raise LimitReached(f"max_{kind}s", self.bounds[kind])
        self.allowed[kind] = self.allowed.get(kind, 0) + 1
        if estimate is not None:
            self.estimates.append(estimate)


class FunctionTools:
    """Tools that are plain functions; parameters without a default are required."""

    def __init__(self, functions: Mapping[str, Callable[..., Any]]) -> None:
        self._functions = functions

    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(ToolSpec(n, "", self._schema(f)) for n, f in self._functions.items())

    async def ready(self) -> None:
        pass

    async def settle(self, call: ToolCall, spec: ToolSpec, scope: Scope) -> ToolResult | None:
        return None

    async def call(self, call: ToolCall, scope: Scope) -> ToolResult:
        function = self._functions.get(call.name)
        try:
            if function is None:
                raise ToolError(f"there is no tool {call.name}")  # noqa: TRY301
            value = function(**parse_arguments(call.arguments, self._schema(function)))
            if inspect.isawaitable(value):
                value = await value
        except ToolError as error:
            return ToolResult((TextPart(str(error)),), is_error=True)
        parts: tuple[Part, ...] = value if isinstance(value, tuple) else (TextPart(str(value)),)
        return ToolResult(parts)

    def _schema(self, function: Callable[..., Any]) -> JsonValue:
        parameters = inspect.signature(function).parameters.values()
        required = [p.name for p in parameters if p.default is p.empty]
        return {
            "type": "object",
            "properties": {p.name: {} for p in parameters},
            "required": required,
        }


@dataclass
class Played:
    """An agent with a script for its model `m`."""

    replies: Sequence[ReplyLike | Answer]
    tools: Mapping[str, Callable[..., Any]] | None = None
    memories: Sequence[Attached] = ()
    schema: AnswerSchema | None = None
    config: Mapping[str, JsonValue] = field(default_factory=dict)
    models: ScriptedModels = field(init=False)

    def __post_init__(self) -> None:
        self.models = ScriptedModels({"m": self.replies}, strict=True)

    async def run(self, scope: MemoryScope, *inputs: Message | str) -> NodeResult:
        written = {"provider": "openai", "name": "m"}
        config = AgentConfig.model_validate(written | dict(self.config))
        agent = Agent(
            "A",
            config,
            self.models.model(ModelChoice("openai", "m")),
            tools=None if self.tools is None else FunctionTools(self.tools),
            memories=self.memories,
            schema=self.schema,
        )
        return await agent.run(scope, [user(i) if isinstance(i, str) else i for i in inputs])

    @property
    def requests(self) -> list[ChatRequest]:
        return self.models.requests.get("m", [])


@pytest.fixture
def scope() -> MemoryScope:
    """A node's run with an empty journal."""
    return MemoryScope()


@pytest.fixture
def new_scope() -> type[MemoryScope]:
    """Makes a node's run."""
    return MemoryScope


@pytest.fixture
def played() -> type[Played]:
    """Makes an agent."""
    return Played
