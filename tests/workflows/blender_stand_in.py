"""Plays `uvx blender-mcp` over stdio: the tools of it that the builder uses, over a scene of names."""

from __future__ import annotations

import json
import re
import sys
from typing import Any

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
TOOLS: dict[str, dict[str, str]] = {
    "get_scene_info": {},
    "get_object_info": {"object_name": "string"},
    "get_viewport_screenshot": {"max_size": "integer"},
    "execute_blender_code": {"code": "string"},
    "download_polyhaven_asset": {"asset_id": "string"},
}
OPTIONAL = {"max_size"}

scene = ["Camera", "Light"]


def listed(name: str, properties: dict[str, str]) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind} for key, kind in properties.items()},
        "required": [key for key in properties if key not in OPTIONAL],
    }
    return {"name": name, "description": f"{name} of Blender.", "inputSchema": schema}


def called(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    if name == "get_viewport_screenshot":
        return {"type": "image", "data": PNG, "mimeType": "image/png"}
    if name == "execute_blender_code":
        made = re.findall(r'\.name = "(.*?)"', arguments["code"])
        scene.extend(made)
        return {"type": "text", "text": f"Code executed successfully: {', '.join(made)}"}
    return {"type": "text", "text": json.dumps({"objects": scene})}


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            return {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "BlenderMCP", "version": "1"},
            }
        case "tools/list":
            return {"tools": [listed(*each) for each in TOOLS.items()]}
        case "tools/call":
            return {"content": [called(params["name"], params.get("arguments") or {})]}
        case "ping":
            return {}
        case _:
            return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = result_of(message["method"], message.get("params") or {})
    answer = (
        {"result": result} if result is not None else {"error": {"code": -32601, "message": "?"}}
    )
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
