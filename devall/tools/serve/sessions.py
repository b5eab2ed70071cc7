"""The tools of a manager as offers, with a manager and a workspace for each session."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from functools import partial

from devall.core.messages import JsonValue, ToolCall
from devall.core.ports import Scope
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.manager import ToolManager
from devall.tools.serve.offer import Offer, Reply
from devall.workspace import Workspace

MOST = 256
"""Sessions whose tools are kept open; of one that comes back later the files are still there."""

Make = Callable[[Workspace], ToolManager]
"""A manager of always the same sources, not yet entered."""


class Sessions:
    """`async with Sessions(...) as sessions`: the tools, and who may share a workspace."""

    def __init__(self, make: Make, workspace_of: Callable[[str], Workspace]) -> None:
        """Take over how managers are made; none is made yet.

        Args:
            make: Makes the manager of one session.
            workspace_of: The workspace of a session, `''` for clients without one.
        """
        self._make = make
        self._workspace_of = workspace_of
        self._opened: OrderedDict[str, tuple[ToolManager, Workspace]] = OrderedDict()
        self._opening = asyncio.Lock()
        self._calls = 0

    async def offers(self) -> list[Offer]:
        """The tools; the sources are opened for it.

        Raises:
            SetupError: a required source cannot be used, or two tools have the same name.
        """
        manager, _ = await self._session("")
        return [Offer(spec, partial(self._call, spec)) for spec in manager.specs()]

    async def aclose(self) -> None:
        """Close what is open."""
        while self._opened:
            _, (manager, _) = self._opened.popitem()
            await manager.__aexit__(None, None, None)

    async def _call(
        self,
        spec: ToolSpec,
        arguments: Mapping[str, JsonValue],
        scope: Scope,
        session: str,
    ) -> Reply:
        manager, workspace = await self._session(session)
        self._calls += 1
        call = ToolCall(f"call-{self._calls}", spec.name, json.dumps(dict(arguments)))
        result: ToolResult = await manager.call(call, scope)
        return Reply(result, workspace.read_attachment)

    async def _session(self, key: str) -> tuple[ToolManager, Workspace]:
        async with self._opening:
            found = self._opened.get(key)
            if found is None:
                workspace = self._workspace_of(key)
                manager = self._make(workspace)
                await manager.__aenter__()
                found = self._opened[key] = manager, workspace
                while len(self._opened) > MOST:
                    oldest = next(k for k in self._opened if k)
                    closed, _ = self._opened.pop(oldest)
                    await closed.__aexit__(None, None, None)
            self._opened.move_to_end(key)
            return found
