"""An MCP server with trivial tools, over stdio or with `--http`, which counts what it is asked."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
from collections import Counter
from typing import Any

from fastmcp import FastMCP
from fastmcp.server.middleware import Middleware, MiddlewareContext

asked: Counter[str] = Counter()


class Counting(Middleware):
    """Counts requests by their method."""

    async def on_request(self, context: MiddlewareContext[Any], call_next: Any) -> Any:
        """The answer to a request, which is counted."""
        asked[context.method or ""] += 1
        return await call_next(context)


server: FastMCP[None] = FastMCP("bench", middleware=[Counting()])


@server.tool
def echo(text: str) -> str:
    """Says it again."""
    return text


@server.tool
async def wait(seconds: float) -> str:
    """Takes its time."""
    await asyncio.sleep(seconds)
    return "done"


@server.tool
def requests() -> str:
    """What was asked for since it was asked this, and how often."""
    told = json.dumps(asked)
    asked.clear()
    return told


def main() -> None:
    if "--http" not in sys.argv:
        server.run("stdio", show_banner=False, log_level="ERROR")
        return
    with socket.create_server(("127.0.0.1", 0)) as opened:
        # asyncio does this for sockets of its own; without it each answer waits 40 ms for an ACK.
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"http://127.0.0.1:{opened.getsockname()[1]}/mcp", flush=True)
        server.run("http", show_banner=False, log_level="ERROR", sockets=[opened])


if __name__ == "__main__":
    main()
