"""A stdio MCP server of the handshake era by hand, whose answers are odd in many ways.

Arguments are its faults: `flaky_list=2`, `same_cursor`, `endless`, `names`, `idempotent`, ...
"""

import base64
import json
import queue
import sys
import threading
import time
from pathlib import Path

faults = dict(each.partition("=")[::2] for each in sys.argv[1:])
out = sys.stdout.buffer
lock = threading.Lock()
answers = queue.Queue()
counts = {"list": 0, "call": 0}
state = {"extra": [], "capabilities": None}
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 3000
NAMES = [
    "a.b/c",
    "поиск",
    "get user",
    "x" * 60 + "1",
    "x" * 60 + "2",
    "y" * 70 + "1",
    "y" * 70 + "2",
]
NUMBER = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
TEXT = {"type": "object", "properties": {"kind": {"type": "string"}}}
TOOLS = [
    {"name": "weird", "inputSchema": TEXT},
    {"name": "promised", "inputSchema": TEXT, "outputSchema": NUMBER},
    {"name": "change", "inputSchema": TEXT},
    {"name": "ask", "inputSchema": {"type": "object", "properties": {"schema": {}}}},
    {"name": "visit", "inputSchema": TEXT},
    {"name": "client", "inputSchema": TEXT},
    {"name": "log", "inputSchema": TEXT},
    {"name": "beat", "inputSchema": TEXT},
    {"name": "slow", "inputSchema": TEXT},
    {"name": "die_once", "inputSchema": TEXT},
    {"name": "generic_error", "inputSchema": TEXT},
    {"name": "picture", "inputSchema": TEXT},
    {"name": "big", "inputSchema": TEXT},
    {"name": "count", "inputSchema": TEXT},
    {"name": "secret", "inputSchema": TEXT},
    {"name": "sleepless", "inputSchema": TEXT},
]
if "idempotent" in faults:
    for each in TOOLS:
        each["annotations"] = {"idempotentHint": True}


def send(message):
    with lock:
        out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        out.flush()


def text(value, **more):
    return {"content": [{"type": "text", "text": str(value)}], **more}


def ask(method, params):
    send({"id": "from-server", "method": method, "params": params})
    return answers.get(timeout=20)


WEIRD = {
    "null": {"content": None},
    "missing": {},
    "text": {"content": "bare text"},
    "block": {
        "content": [
            {"type": "hologram", "data": "QUJD" * 200, "words": "seen"},
            text("b")["content"][0],
        ]
    },
    "no_type": {"content": [{"text": "typeless"}]},
    "error_word": {"content": [{"type": "text", "text": "bad"}], "isError": "true"},
    "structured_list": {"content": [], "structuredContent": [1, 2]},
    "image_without_type": {"content": [{"type": "image", "data": base64.b64encode(PNG).decode()}]},
    "no_object": "just text",
    "number": 7,
    "other_keys": {"answer": 42},
}


def result_of(name, arguments, meta):  # noqa: C901, PLR0912 -- a table of answers
    counts["call"] += 1
    kind = arguments.get("kind", "")
    if name == "weird":
        return WEIRD[kind]
    if name == "promised":
        more = {
            "none": {},
            "wrong": {"structuredContent": {"n": "many"}},
            "right": {"structuredContent": {"n": 1}},
        }
        return text("said", **more[kind])
    if name == "change":
        state["extra"] = [{"name": f"new_{kind}", "inputSchema": TEXT}]
        if kind == "remove":
            TOOLS[:] = [each for each in TOOLS if each["name"] != "weird"]
        for _ in range(10):
            send({"method": "notifications/tools/list_changed"})
        return text("changed")
    if name.startswith("new_"):
        return text(f"{name} called")
    if name == "ask":
        params = {"message": "Who are you?", "requestedSchema": arguments["schema"]}
        return text(json.dumps(ask("elicitation/create", params)))
    if name == "visit":
        if not state.get("visited"):
            state["visited"] = True
            visits = [
                {
                    "mode": "url",
                    "message": "Log in",
                    "url": "https://x.test/login",
                    "elicitationId": "1",
                }
            ]
            return {
                "error": {
                    "code": -32042,
                    "message": "open the page",
                    "data": {"elicitations": visits},
                }
            }
        return text("welcome")
    if name == "client":
        sampling = {"messages": [], "maxTokens": 5}
        found = {
            "capabilities": state["capabilities"],
            "sampling": ask("sampling/createMessage", sampling),
            "roots": ask("roots/list", {}),
        }
        return text(json.dumps(found))
    if name == "log":
        send(
            {
                "method": "notifications/message",
                "params": {"level": "warning", "logger": "db", "data": {"rows": 3}},
            }
        )
        return text("logged")
    if name == "beat":
        for n in range(8):
            time.sleep(0.15)
            params = {"progressToken": meta.get("progressToken"), "progress": n + 1}
            send({"method": "notifications/progress", "params": params})
        return text("done")
    if name == "sleepless" and kind:  # it tells a lie
        time.sleep(float(kind))
        return text("slept")
    if name in {"slow", "die_once"}:
        done = Path(faults["done"])
        times = len(done.read_text()) if done.exists() else 0
        done.write_text("x" * (times + 1))
        if times == 0 and name == "slow":
            time.sleep(3)
        if times == 0 and name == "die_once":
            sys.stderr.write("killed by the tool\n")
            sys.stderr.flush()
            import os

            os._exit(9)
        return text(f"time {times + 1}")
    if name == "generic_error":
        return {"error": {"code": -32000, "message": "the database is away"}}
    if name == "picture":
        return {
            "content": [
                {"type": "image", "data": base64.b64encode(PNG).decode(), "mimeType": "image/png"}
            ]
        }
    if name == "big":
        sizes = {"lines": "\n".join(f"line {n}" for n in range(500_000)), "line": "z" * 2_000_000}
        records = [{"id": n, "name": f"record {n}"} for n in range(1000)]
        return text(sizes.get(kind) or json.dumps(records))
    if name == "count":
        return text(json.dumps(counts))
    if name == "secret":
        return text(f"cannot log in with {faults['secret']}", isError=True)
    return text(f"{name} called")


def listing(cursor):
    counts["list"] += 1
    if "restless" in faults:
        state["extra"] = [{"name": f"new_{counts['list']}", "inputSchema": TEXT}]
        send({"method": "notifications/tools/list_changed"})
    if counts["list"] <= int(faults.get("flaky_list", 0)):
        return {"error": {"code": int(faults.get("list_code", -32603)), "message": "warming up"}}
    tools = TOOLS + state["extra"]
    if "names" in faults:
        tools = tools + [{"name": name, "inputSchema": TEXT} for name in NAMES]
    if "many" in faults:
        tools = [{"name": f"tool_{n}", "inputSchema": TEXT} for n in range(int(faults["many"]))]
    page = {"tools": tools}
    if "same_cursor" in faults:
        page["nextCursor"] = "again"
    if "endless" in faults:
        page = {
            "tools": [{"name": f"page_{counts['list']}", "inputSchema": TEXT}],
            "nextCursor": str(counts["list"]),
        }
    if "number_cursor" in faults and cursor is None:
        page = {"tools": tools[:3], "nextCursor": 3}
    elif "number_cursor" in faults:
        page = {"tools": tools[3:]}
    return page


def answer(message):
    method, params = message.get("method"), message.get("params") or {}
    if method is None:
        answers.put({key: message[key] for key in ("result", "error") if key in message})
        return
    if "id" not in message:
        return
    if method == "initialize":
        state["capabilities"] = params["capabilities"]
        result = {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {"listChanged": True}, "logging": {}},
            "serverInfo": {"name": "odd", "version": "1"},
        }
    elif method == "tools/list":
        result = listing(params.get("cursor"))
    elif method == "tools/call":
        result = result_of(params["name"], params.get("arguments") or {}, params.get("_meta") or {})
    else:
        result = {"error": {"code": -32601, "message": f"no {method} here"}}
    if isinstance(result, dict) and set(result) == {"error"}:
        send({"id": message["id"], "error": result["error"]})
    else:
        send({"id": message["id"], "result": result})


for line in sys.stdin.buffer:
    threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
