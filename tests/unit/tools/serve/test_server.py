from __future__ import annotations

from typing import Any

from fastmcp import Client

from devall.tools.base import ToolSpec
from devall.tools.serve.offer import Offer
from devall.tools.serve.server import Server


async def never_called(*_: Any) -> Any:
    raise AssertionError


async def test_a_schema_is_passed_on_as_it_is():
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"tree": {"type": "string"}},
        "properties": {"tree": {"$ref": "#/$defs/tree"}},
        "additionalProperties": False,
    }
    offer = Offer(ToolSpec(name="plant", description="", parameters=schema), never_called)
    async with Client(Server("s", [offer], version="1")) as client:
        (tool,) = await client.list_tools()
    assert tool.input_schema == schema
