"""A stdio MCP server with the tool of mcp_example, by hand: it is there at once."""

import json
import sys

NUMBER = {"type": "integer"}
TOOL = {
    "name": "rand_num",
    "description": "Draw a random whole number between a and b, both included.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": NUMBER, "b": NUMBER},
        "required": ["a", "b"],
    },
}
INITIALIZED = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "numbers", "version": "1"},
}


def answer(method, params):
    match method:
        case "initialize":
            return {"result": INITIALIZED}
        case "tools/list":
            return {"result": {"tools": [TOOL]}}
        case "tools/call":
            text = str(params["arguments"]["b"])
            return {"result": {"content": [{"type": "text", "text": text}]}}
        case _:
            return {"error": {"code": -32601, "message": f"no {method} here"}}


for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        said = {"jsonrpc": "2.0", "id": asked["id"], **answer(asked["method"], asked.get("params"))}
        print(json.dumps(said), flush=True)
