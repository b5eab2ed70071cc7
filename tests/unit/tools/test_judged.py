from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from devall.config.tools import ErrorWhen
from devall.core.messages import ToolCall
from devall.tools.manager import ToolManager
from devall.tools.mcp.pool import McpServers

CATALOG = """
def say(text: str): return text
def give(status, data: dict = {}): return {"status": status, "data": data}
def fail(): raise RuntimeError("bad")
"""


@pytest.fixture
def judged(manager_of: Callable[..., ToolManager], catalog_of: Any) -> Callable[..., ToolManager]:
    def make(error_when: Any, **more: Any) -> ToolManager:
        source = {"type": "function", "tools": {"name": "m:All"}, "error_when": error_when}
        return manager_of({**source, **more}, catalog=catalog_of(m=CATALOG))

    return make


async def outcome(tools: ToolManager, scope: Any, name: str, arguments: str) -> tuple[bool, str]:
    result = await tools.call(ToolCall("c", name, arguments), scope)
    return result.is_error, result.text


async def test_a_text_that_fits_the_pattern_is_an_error_and_stays_as_it_is(judged: Any, scope: Any):
    async with judged({"regex": r"(?i)^error\b"}) as tools:
        assert await outcome(tools, scope, "say", '{"text": "Error: disk full"}') == (
            True,
            "Error: disk full",
        )
        assert await outcome(tools, scope, "say", '{"text": "no Error"}') == (False, "no Error")


@pytest.mark.parametrize(
    ("condition", "status", "is_error"),
    [
        ({"json_path": "status", "equals": "error"}, '"error"', True),
        ({"json_path": "$.status", "equals": "error"}, '"ok"', False),
        ({"json_path": "status", "equals": 1}, "1", True),
        ({"json_path": "status", "equals": 1}, "true", False),
        ({"json_path": "status", "equals": False}, "false", True),
        ({"json_path": "status", "equals": False}, "0", False),
        ({"json_path": "status"}, '"some words"', True),
        ({"json_path": "status"}, "null", False),
        ({"json_path": "status"}, "[]", False),
        ({"json_path": "status"}, "0", False),
        ({"json_path": "status[*].ok", "equals": False}, '[{"ok": true}, {"ok": false}]', True),
        ({"json_path": "nothing.there"}, '"error"', False),
        ({"json_path": "status", "equals": "error", "regex": "disk"}, '"disk"', True),
    ],
)
async def test_a_value_in_a_result_makes_it_an_error(
    judged: Any, scope: Any, condition: dict[str, Any], status: str, is_error: bool
):
    async with judged(condition) as tools:
        found = await outcome(tools, scope, "give", f'{{"status": {status}}}')
        assert found[0] is is_error


async def test_one_condition_of_several_is_enough_and_text_that_is_no_json_meets_no_path(
    judged: Any, scope: Any
):
    conditions = [{"regex": "^ERR"}, {"json_path": "ok", "equals": False}]
    async with judged(conditions) as tools:
        assert (await outcome(tools, scope, "say", '{"text": "ERR 7"}'))[0]
        assert (await outcome(tools, scope, "say", r'{"text": "{\"ok\": false}"}'))[0]
        assert not (await outcome(tools, scope, "say", '{"text": "{broken"}'))[0]
        assert (await outcome(tools, scope, "fail", ""))[0]


async def test_the_whole_of_a_long_result_is_looked_at(judged: Any, scope: Any):
    async with judged({"regex": "needle"}, max_result_chars=100) as tools:
        text = "x" * 5000 + "needle" + "x" * 5000
        is_error, said = await outcome(tools, scope, "say", f'{{"text": "{text}"}}')
        assert is_error
        assert "needle" not in said


SERVER = """
import fastmcp
mcp = fastmcp.FastMCP("careless")
@mcp.tool
def save() -> dict:
    return {"status": "error", "reason": "disk full"}
mcp.run(show_banner=False)
"""


# A5
async def test_a_server_that_gives_its_errors_as_results_is_not_believed(
    manager_of: Callable[..., ToolManager], scope: Any
):
    config = {"command": sys.executable, "args": ["-c", SERVER], "startup_timeout": 50}
    condition = {"json_path": "status", "equals": "error"}
    source = {"type": "mcp_local", "config": config, "error_when": condition}
    async with McpServers() as servers, manager_of(source, servers=servers) as tools:
        is_error, said = await outcome(tools, scope, "save", "")
    assert is_error
    assert "disk full" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({"regex": "("}, "no regular expression"),
        ({"json_path": "$..x"}, "no path"),
        ({}, "one of `regex` and `json_path`"),
        ({"equals": 1}, "`equals` needs a `json_path`"),
    ],
)
def test_a_condition_that_cannot_be_one_is_refused(data: dict[str, Any], said: str):
    with pytest.raises(ValidationError, match=said):
        TypeAdapter(ErrorWhen).validate_python(data)
