"""What an agent offers its model in each turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from devall.agents.calls import ChangingTools, Tools
from devall.core.events import Warned
from devall.core.messages import JsonValue, Message
from devall.core.ports import Scope
from devall.models.base import ChatModel, ToolSchema
from devall.models.tool_schemas import Profile, adapted, profile_of
from devall.tools.base import ToolSpec

Rewritten = dict[str, tuple[ToolSpec, ToolSchema]]
"""By name: a tool, and what the provider is offered of it."""


@dataclass(slots=True)
class Offers:
    """The tools of one run of an agent, as they change between its turns.

    What is offered is a step: a run that is resumed offers in each turn what it offered before,
    whatever its servers say now, and reaches no server before a call is really made.
    """

    tools: Tools | None
    model: ChatModel
    scope: Scope
    told: set[str]
    rewritten: Rewritten = field(default_factory=dict[str, tuple[ToolSpec, ToolSchema]])
    """Shared by all runs of the agent."""
    _profile: Profile = field(init=False)
    _changing: ChangingTools | None = field(default=None, init=False)
    _specs: Sequence[ToolSpec] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self._profile = profile_of(self.model.provider, self.model.url)
        # Looked at once: to ask a protocol takes a tenth of a turn.
        if self.tools is not None and isinstance(self.tools, ChangingTools):
            self._changing = self.tools

    async def of_turn(self, turn: int, messages: Sequence[Message]) -> Sequence[ToolSpec]:
        """The tools of a turn (from 1), at most as many as the provider takes.

        Args:
            turn: Number of the request.
            messages: What it will hold.

        Raises:
            SetupError: a source that is required cannot be used.
        """
        tools = self.tools
        if turn == 1 and tools is not None:
            await self._list(tools)
        beside: Sequence[ToolSpec] = ()
        if self._changing is not None:
            tools = self._changing
            if turn > 1 and tools.may_change:
                await self._refresh(turn, tools)
            beside = tools.beside(messages)
        most = self._profile.most_tools
        if most is None or len(self._specs) + len(beside) <= most:
            return (*self._specs, *beside)
        kept = self._specs[: most - len(beside)]
        self._say_left_out(self._specs[len(kept) :], most)
        return (*kept, *beside)

    def with_beside(
        self, specs: Sequence[ToolSpec], messages: Sequence[Message]
    ) -> Sequence[ToolSpec]:
        """The tools of a turn, and those that the conversation calls for as it is sent."""
        tools, most = self._changing, self._profile.most_tools
        if not specs or tools is None or len(specs) == most:
            return specs
        names = {spec.name for spec in specs}
        return (*specs, *(spec for spec in tools.beside(messages) if spec.name not in names))

    def schemas(self, specs: Sequence[ToolSpec]) -> list[ToolSchema]:
        """The tools in the words that the provider takes; the same tool is rewritten once."""
        found: list[ToolSchema] = []
        for spec in specs:
            known = self.rewritten.get(spec.name)
            if known is None or known[0] != spec:
                parameters = adapted(spec.parameters, self._profile)
                size = len(str(spec.parameters))
                known = (spec, ToolSchema(spec.name, spec.description, parameters, size))
                self.rewritten[spec.name] = known
            found.append(known[1])
        return found

    async def _list(self, tools: Tools) -> None:
        async def listed() -> JsonValue:
            await tools.ready()
            return [_to_json(spec) for spec in tools.specs()]

        found = await self.scope.step("tools", "turn:1/tools", {}, listed)
        self._specs = tuple(ToolSpec(**spec) for spec in found)

    async def _refresh(self, turn: int, tools: ChangingTools) -> None:
        async def changed() -> JsonValue:
            opened = cast("Tools", tools)
            await opened.ready()
            await tools.refresh()
            now = [_to_json(spec) for spec in opened.specs()]
            return None if now == [_to_json(spec) for spec in self._specs] else now

        found = await self.scope.step("tools", f"turn:{turn}/tools", {}, changed)
        if found is None:
            return
        before = {spec.name for spec in self._specs}
        self._specs = tuple(ToolSpec(**spec) for spec in found)
        now = {spec.name for spec in self._specs}
        added = ", ".join(sorted(now - before)) or "none"
        gone = ", ".join(sorted(before - now)) or "none"
        self._warn("tools_changed", f"the tools are others now: added {added}; gone {gone}")

    def _say_left_out(self, specs: Sequence[ToolSpec], most: int) -> None:
        names = ", ".join(spec.name for spec in specs)
        text = (
            f"{self.model.provider} takes {most} tools at most: {len(specs)} are not offered"
            f" ({names}); choose with `include` and `exclude` of the sources"
        )
        if text not in self.told:
            self.told.add(text)
            self._warn("tools_left_out", text)

    def _warn(self, code: str, text: str) -> None:
        scope = self.scope
        scope.emit(Warned(path=scope.path, code=code, message=text, node=scope.node))


def _to_json(spec: ToolSpec) -> JsonValue:
    return {
        "name": spec.name,
        "description": spec.description,
        "parameters": dict(spec.parameters),
        "metadata": dict(spec.metadata),
    }
