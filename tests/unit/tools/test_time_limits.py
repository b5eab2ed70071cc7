"""How long a call of a tool may take, whatever its source."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devall.core.messages import ToolCall
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

RAW = str(Path(__file__).parent / "mcp/raw_server.py")
LOCAL = {"type": "mcp_local", "command": sys.executable, "args": ["-I", "-S", RAW]}
SLOW = """
import asyncio
async def sleep(seconds: float):
    await asyncio.sleep(seconds)
"""
Managers = Callable[..., ToolManager]


def functions(**more: Any) -> dict[str, Any]:
    return {"type": "function", "config": {"tools": {"name": "sleep"}, **more}}


def call() -> ToolCall:
    return ToolCall("c", "sleep", '{"seconds": 400}')


@pytest.mark.parametrize(
    "source",
    [functions() | {"timeout": 0.2}, functions(timeout=0.2), LOCAL | {"timeout": 0.2}],
    ids=["function", "config of function", "mcp_local"],
)
async def test_a_call_that_takes_too_long_names_the_key_that_allows_more(
    manager_of: Managers, catalog_of: Any, scope: Any, source: dict[str, Any]
):
    async with (
        McpServers() as servers,
        manager_of(source, catalog=catalog_of(m=SLOW), servers=servers) as tools,
    ):
        result = await tools.call(call(), scope)
    assert result.is_error
    assert "within 0.2 s" in result.text
    assert "`timeout` of the tool's source in the workflow allows more" in result.text


@pytest.mark.parametrize("source", [functions(), LOCAL], ids=["function", "mcp_local"])
async def test_a_call_ends_after_300_seconds_where_nothing_is_said(
    manager_of: Managers,
    catalog_of: Any,
    scope: Any,
    source: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
):
    loop = asyncio.get_running_loop()
    clock, passed = loop.time, 0.0
    monkeypatch.setattr(loop, "time", lambda: clock() + passed)
    async with (
        McpServers() as servers,
        manager_of(source, catalog=catalog_of(m=SLOW), servers=servers) as tools,
    ):
        calling = asyncio.create_task(tools.call(call(), scope))
        for seconds in (298.0, 301.0):
            await asyncio.sleep(0.3)
            assert not calling.done()
            passed = seconds
        result = await calling
    assert result.is_error
    assert "within 300 s" in result.text
