"""A toolset of which only some tools are offered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from devall.core.errors import ToolNotFound
from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.tools.base import ToolResult, Toolset, ToolSpec
from devall.tools.wrapped import WrappedToolset


class FilteredToolset(WrappedToolset):
    """Offers the tools whose own name fits a glob of `include` and none of `exclude`."""

    def __init__(
        self, inner: Toolset, include: Sequence[str] = (), exclude: Sequence[str] = ()
    ) -> None:
        super().__init__(inner)
        self._include = include
        self._exclude = exclude

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools that are offered."""
        return [each for each in await self.inner.specs() if self._offers(each.name)]

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool that is offered.

        Raises:
            ToolNotFound: the tool exists and is not for this node.
        """
        if not self._offers(name):
            raise ToolNotFound(f"tool `{name}` is not available to this node")
        return await self.inner.call(name, arguments, scope, call_id)

    def _offers(self, name: str) -> bool:
        wanted = not self._include or any(fnmatchcase(name, glob) for glob in self._include)
        return wanted and not any(fnmatchcase(name, glob) for glob in self._exclude)
