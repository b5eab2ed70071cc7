"""A toolset around another: what all wrappers share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.tools.base import ChangingToolset, HidingToolset, ToolResult, Toolset, ToolSpec


class WrappedToolset:
    """Passes everything on; a wrapper overrides the one thing it changes."""

    def __init__(self, inner: Toolset) -> None:
        self.inner = inner

    async def open(self) -> None:
        """Open the inner toolset."""
        await self.inner.open()

    async def specs(self) -> Sequence[ToolSpec]:
        """The inner toolset's tools."""
        return await self.inner.specs()

    async def refresh(self) -> bool:
        """Whether the inner toolset's tools are others than before."""
        inner = self.inner
        return isinstance(inner, ChangingToolset) and await inner.refresh()

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool of the inner toolset."""
        return await self.inner.call(name, arguments, scope, call_id)

    def hidden(self) -> Collection[str]:
        """The tools that the inner toolset keeps from the node."""
        inner = self.inner
        return inner.hidden() if isinstance(inner, HidingToolset) else ()

    async def aclose(self) -> None:
        """Close the inner toolset."""
        await self.inner.aclose()
