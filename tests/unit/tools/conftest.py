"""Real parts for the tests of tools: a scope, a workspace, folders of functions."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from devall.config.tools import ToolSource
from devall.core.events import Event
from devall.core.messages import ToolCall
from devall.core.ports import HumanChannel
from devall.plugins.functions import FunctionCatalog
from devall.testing.scope import PlainScope
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers
from devall.workspace import Workspace


def read_source(data: Mapping[str, Any]) -> ToolSource:
    return TypeAdapter(ToolSource).validate_python(data)


def make_call(name: str, arguments: str = "{}", call_id: str = "c1") -> ToolCall:
    return ToolCall(call_id, name, arguments)


@pytest.fixture
def scope() -> PlainScope:
    return PlainScope()


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "run")


@pytest.fixture
def catalog_of(tmp_path: Path) -> Callable[..., FunctionCatalog]:
    """Makes a catalogue of tool files: `catalog_of(weather="def f(): ...")`."""

    def make(**files: str) -> FunctionCatalog:
        folder = tmp_path / "functions" / "function_calling"
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.py").write_text(textwrap.dedent(text), encoding="utf-8")
        return FunctionCatalog(None, tmp_path / "functions")

    return make


@pytest.fixture
def manager_of(
    tmp_path: Path, workspace: Workspace, catalog_of: Callable[..., FunctionCatalog]
) -> Callable[..., ToolManager]:
    """Makes a manager of sources as a workflow has them."""

    def make(
        *sources: Mapping[str, Any],
        catalog: FunctionCatalog | None = None,
        servers: McpServers | None = None,
        emit: Callable[[Event], None] | None = None,
        human: HumanChannel | None = None,
    ) -> ToolManager:
        return ToolManager(
            [read_source(each) for each in sources],
            functions=catalog or catalog_of(),
            servers=servers or McpServers(),
            workspace=workspace,
            base=tmp_path,
            emit=emit,
            human=human,
            node="A",
        )

    return make
