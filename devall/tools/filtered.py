"""A toolset of which only some tools are offered."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
        self._hidden: tuple[str, ...] = ()

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools that are offered."""
        found = await self.inner.specs()
        self._hidden = tuple(each.name for each in found if not self._offers(each.name))
        return [each for each in found if self._offers(each.name)]

    def hidden(self) -> Collection[str]:
        """The tools that are left out."""
        return (*self._hidden, *super().hidden())

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run a tool that is offered.

        Raises:
            ToolNotFound: the tool is not for this node.
        """
        if not self._offers(name):
            raise ToolNotFound(not_available(name))
        return await self.inner.call(name, arguments, scope, call_id)

    def _offers(self, name: str) -> bool:
        wanted = not self._include or any(fnmatchcase(name, glob) for glob in self._include)
        return wanted and not any(fnmatchcase(name, glob) for glob in self._exclude)


def not_available(name: str) -> str:
    """What a model is told that calls a tool which is there and not for its node."""
    return f"tool `{name}` is not available to this node: do without it"
