"""A toolset whose tools are called `prefix_tool`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.tools.base import ToolResult, Toolset, ToolSpec
from devall.tools.wrapped import WrappedToolset


class PrefixedToolset(WrappedToolset):
    """Adds a prefix to every name, and takes it away before a call."""

    def __init__(self, inner: Toolset, prefix: str) -> None:
        super().__init__(inner)
        self._head = f"{prefix}_"

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools under their new names."""
        return [replace(s, name=self._head + s.name) for s in await self.inner.specs()]

    def hidden(self) -> Collection[str]:
        """The tools that are kept from the node, under the names they would have."""
        return [self._head + name for name in super().hidden()]

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool by its new name."""
        return await self.inner.call(name.removeprefix(self._head), arguments, scope, call_id)
