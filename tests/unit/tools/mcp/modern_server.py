"""A stdio MCP server of the 2026-07-28 revision by hand: it knows no handshake."""

import json
import sys
import threading
import time

faults = dict(each.partition("=")[::2] for each in sys.argv[1:])
out = sys.stdout.buffer
lock = threading.Lock()
VERSION = "2026-07-28"
META = "io.modelcontextprotocol/"
TEXT = {"type": "object", "properties": {}}
counts = {"discover": 0, "list": 0, "initialize": 0}
extra = []
subscription = []


def send(message):
    with lock:
        out.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        out.flush()


def complete(**result):
    return {"resultType": "complete", **result}


def text(value):
    return complete(content=[{"type": "text", "text": str(value)}])


def notify_subscriber(method, **params):
    meta = {META + "subscriptionId": subscription[-1]}
    send({"method": method, "params": {**params, "_meta": meta}})


def call(name, params):
    if name == "change":
        extra.append({"name": "new", "inputSchema": TEXT})
        for _ in range(10):
            notify_subscriber("notifications/tools/list_changed")
        return text("changed")
    if name == "who":
        answers = params.get("inputResponses")
        if not answers:
            schema = {"type": "object", "properties": {"value": {"type": "string"}}}
            asked = {"mode": "form", "message": "Who are you?", "requestedSchema": schema}
            request = {"method": "elicitation/create", "params": asked}
            return {
                "resultType": "input_required",
                "inputRequests": {"who": request},
                "requestState": "opaque",
            }
        return text(json.dumps([answers["who"], params.get("requestState")]))
    if name == "log":
        level = params["_meta"].get(META + "logLevel")
        message = {"level": "info", "data": f"asked for {level}"}
        send({"method": "notifications/message", "params": message})
        return text("logged")
    if name == "capabilities":
        return text(json.dumps(params["_meta"][META + "clientCapabilities"]))
    if name == "count":
        return text(json.dumps(counts))
    return text(f"{name} called")


def answer(message):
    method, params = message["method"], message.get("params") or {}
    if "id" not in message:
        return
    ttl = {"ttlMs": int(faults.get("ttl", 0)), "cacheScope": "private"}
    if method == "server/discover":
        counts["discover"] += 1
        capabilities = {"tools": {"listChanged": True}}
        result = complete(supportedVersions=[VERSION], capabilities=capabilities, **ttl)
    elif method == "tools/list":
        counts["list"] += 1
        names = ["change", "who", "log", "capabilities", "count"]
        tools = [{"name": name, "inputSchema": TEXT} for name in names]
        result = complete(tools=tools + extra, **ttl)
    elif method == "tools/call":
        result = call(params["name"], params)
    elif method == "subscriptions/listen":
        if "early" in faults:  # a change that nobody is told of
            time.sleep(float(faults["early"]))
            extra.append({"name": "early", "inputSchema": TEXT})
        subscription.append(message["id"])
        notify_subscriber(
            "notifications/subscriptions/acknowledged", notifications={"toolsListChanged": True}
        )
        if "ends" not in faults or len(subscription) > 1:
            return
        extra.append({"name": "late", "inputSchema": TEXT})
        result = complete()
    else:
        counts["initialize"] += method == "initialize"
        send({"id": message["id"], "error": {"code": -32601, "message": f"no {method} here"}})
        return
    send({"id": message["id"], "result": result})


for line in sys.stdin.buffer:
    threading.Thread(target=answer, args=(json.loads(line),), daemon=True).start()
