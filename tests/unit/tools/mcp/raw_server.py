"""A stdio MCP server of the handshake era by hand, with the faults that its arguments name."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

faults = set(sys.argv[1:])
out = sys.stdout.buffer
lock = threading.Lock()

TOOLS = {
    "echo": {"text": {"type": "string"}},
    "sleep": {"seconds": {"type": "number"}},
    "fail": {},
    "refuse": {},
    "die": {},
    "pid": {},
    "env": {},
    "spawn": {},
    "count": {},
    "cancelled": {},
    "odd": {},
}
counts = {"initialize": 0, "call": 0}
cancelled = []


def write(data):
    with lock:
        out.write(data)
        out.flush()


def send(message):
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def tool(name, properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": f"The {name} tool.", "inputSchema": schema}


def listing(cursor):
    tools = [tool(name, properties) for name, properties in TOOLS.items()]
    if "duplicate" in faults:
        tools.append(tool("echo", {}) | {"description": "another"})
    if "malformed" in faults:
        tools.insert(1, {"name": 5, "inputSchema": "nonsense"})
    if "pages" in faults:
        start = int(cursor or 0)
        page = {"tools": tools[start : start + 5]}
        if start + 5 < len(tools):
            page["nextCursor"] = str(start + 5)
        return page
    return {"tools": tools}


def text(value, **more):
    return {"content": [{"type": "text", "text": str(value)}], **more}


def result_of(name, arguments, token):
    counts["call"] += 1
    if name == "echo":
        return text(arguments["text"])
    if name == "sleep":
        if token is not None:
            params = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
            send({"method": "notifications/progress", "params": params})
        time.sleep(arguments["seconds"])
        return text("slept")
    if name == "fail":
        return text("disk full", isError=True)
    if name == "die":
        print("out of memory", file=sys.stderr, flush=True)
        os._exit(7)
    if name == "pid":
        return text(os.getpid())
    if name == "env":
        return text(json.dumps({"env": dict(os.environ), "cwd": str(Path.cwd())}))
    if name == "spawn":
        return text(subprocess.Popen(["sleep", "300"]).pid)
    if name == "count":
        return text(json.dumps(counts))
    if name == "cancelled":
        return text(json.dumps(cancelled))
    if name == "odd":
        write(b"a print in the middle\n\xff\xfe\x00 and bytes\n[1, 2]\n")
        return text("still here")
    return None


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if method == "notifications/cancelled":
        cancelled.append(params["requestId"])
    if "id" not in message:
        return
    if method == "initialize":
        counts["initialize"] += 1
        result = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "raw", "version": "1"},
        }
    elif method == "tools/list":
        result = listing(params.get("cursor"))
    elif method == "tools/call":
        token = (params.get("_meta") or {}).get("progressToken")
        result = result_of(params["name"], params.get("arguments") or {}, token)
    elif "exit_on_unknown" in faults:
        os._exit(4)
    elif "ignore_unknown" in faults:
        return
    else:
        result = None
    if result is None:
        error = {"code": -32601, "message": f"no {method} here"}
        send({"id": message["id"], "error": error})
    else:
        send({"id": message["id"], "result": result})


if "exit" in faults:
    print("boom: missing API key", file=sys.stderr)
    sys.exit(3)
if "deaf" in faults:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "banner" in faults:
    write(b"Server started\n\xff\xfe\n\n{not json}\n")
if "orphan" in faults:
    subprocess.Popen(["sleep", "300"])
for fault in faults:
    if fault.startswith("ready="):
        time.sleep(float(fault.partition("=")[2]))
        print("listening now", file=sys.stderr, flush=True)
for line in sys.stdin.buffer:
    if "silent" not in faults:
        threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
if "deaf" in faults:
    time.sleep(300)
