"""The tools that ship, called as an agent calls them: by name, with arguments as JSON has them."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from devall.config.tools import FunctionTool
from devall.core.events import Event
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.tools.base import ToolResult
from devall.tools.functions import FunctionToolset
from devall.workspace import Workspace


class PlainScope:
    """A node's run that journals nothing and keeps its events."""

    node = "A"
    path = "/A@1"

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    async def step(
        self, kind: str, name: str, request: Any, call: Callable[[], Awaitable[Any]]
    ) -> Any:
        return await call()

    def allow(self, kind: str, tokens: int = 0) -> None: ...


class Tools:
    """The tools of one module."""

    def __init__(
        self, module: str, workspace: Workspace | None, timeout: float | None = None
    ) -> None:
        self.scope = PlainScope()
        self._set = FunctionToolset(
            (FunctionTool(name=f"{module}:All"),),
            FunctionCatalog(None, shipped_functions()),
            workspace,
            timeout,
        )
        self._opened = False

    async def result(self, name: str, **arguments: Any) -> ToolResult:
        if not self._opened:
            await self._set.open()
            self._opened = True
        sent = json.loads(json.dumps(arguments))
        return await self._set.call(name, sent, self.scope, "c1")

    async def text(self, name: str, **arguments: Any) -> str:
        return (await self.result(name, **arguments)).text

    async def json(self, name: str, **arguments: Any) -> Any:
        return json.loads(await self.text(name, **arguments))


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "run")


@pytest.fixture
def files(workspace: Workspace) -> Path:
    """The workspace's folder."""
    return workspace.files


@pytest.fixture
def tools_of(workspace: Workspace) -> Callable[..., Tools]:
    """Makes the tools of a module, with the run's workspace."""

    def make(module: str, *, timeout: float | None = None, outside: bool = False) -> Tools:
        return Tools(module, None if outside else workspace, timeout)

    return make
