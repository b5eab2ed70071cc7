"""The tools that ship, called as an agent calls them: by name, with arguments as JSON has them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devall.config.tools import FunctionTool
from devall.plugins.functions import FunctionCatalog
from devall.plugins.shipped import shipped_functions
from devall.testing.scope import PlainScope
from devall.tools.base import ToolResult
from devall.tools.functions import FunctionToolset
from devall.workspace import Workspace


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
