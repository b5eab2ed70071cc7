"""An MCP server with one tool, `rand_num`: over stdio, or with `--http` over streamable HTTP.

    python mcp_server.py                     speaks MCP over stdin and stdout
    python mcp_server.py --http              listens on http://127.0.0.1:8001/mcp
    python mcp_server.py --http --port 0     listens on any free port

Over HTTP the first line of stdout is the URL, printed once the port is open.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import sys
from typing import Annotated

from fastmcp import FastMCP
from pydantic import Field

server: FastMCP[None] = FastMCP("devall-example", mask_error_details=True)


@server.tool
def rand_num(
    a: Annotated[int, Field(description="One end of the range.")],
    b: Annotated[int, Field(description="The other end of the range.")],
) -> int:
    """Draw a random whole number between a and b, both included."""
    return random.randint(min(a, b), max(a, b))  # noqa: S311 - a game, not a secret


def listen(host: str, port: int) -> socket.socket:
    """A socket that accepts connections; port 0 takes any free one."""
    try:
        opened = socket.create_server((host, port))
    except OSError as error:
        sys.exit(
            f"mcp_server: {error.strerror} ({host}:{port}); "
            "name another port with --port, or 0 for any free one"
        )
    # asyncio does this for sockets of its own; without it each answer waits 40 ms for an ACK.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def main() -> None:
    """Serve until stdin ends or a signal comes."""
    options = argparse.ArgumentParser(description="An MCP server with the tool rand_num.")
    options.add_argument("--http", action="store_true", help="streamable HTTP instead of stdio")
    options.add_argument("--host", default="127.0.0.1", help="with --http (default: %(default)s)")
    options.add_argument(
        "--port", type=int, default=8001, help="with --http (default: %(default)s; 0: any)"
    )
    chosen = options.parse_args()
    with contextlib.suppress(KeyboardInterrupt):
        if not chosen.http:
            server.run("stdio", show_banner=False, log_level="WARNING")
            return
        with listen(chosen.host, chosen.port) as opened:
            host, port = opened.getsockname()[:2]
            print(f"http://{host}:{port}/mcp", flush=True)
            server.run("http", show_banner=False, log_level="WARNING", sockets=[opened])


if __name__ == "__main__":
    main()
