"""Serves clients over HTTP: on loopback, or with a token anywhere."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Generator, Sequence

import uvicorn

from devall.core.errors import SetupError
from devall.tools.serve.addresses import is_loopback
from devall.tools.serve.server import Server

PATH = "/mcp"
GRACE = 1
"""Seconds that open requests get when the server ends."""


def listen(host: str, port: int) -> socket.socket:
    """A socket at which clients may arrive from now on.

    Args:
        host: Name or address.
        port: 0 takes any free one.

    Raises:
        SetupError: the address is taken, or none of this machine.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        opened = socket.create_server((host.strip("[]"), port), family=family, backlog=128)
    except (OSError, OverflowError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise SetupError(
            f"{host}:{port} cannot be listened at: {str(why).lower()}",
            hint="choose another --port, or 0 for any free one; --host must be of this machine",
        ) from error
    # asyncio does this for sockets of its own; without it each answer waits 40 ms for an ACK.
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return opened


def url_of(opened: socket.socket, host: str) -> str:
    """The URL of a server that listens at a socket."""
    port = opened.getsockname()[1]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}{PATH}"


async def serve_http(
    server: Server, opened: socket.socket, host: str, allowed_hosts: Sequence[str] = ()
) -> None:
    """Serve until the task is cancelled.

    A browser that was led here by a name of somebody else's (DNS rebinding) is refused: `Host`
    must be loopback, the host that is listened at, or an allowed one, and so must `Origin`.

    Args:
        server: What is served.
        opened: Where it listens; it is closed at the end.
        host: The host as it was named.
        allowed_hosts: Further names by which clients may call the server.
    """
    is_local = is_loopback(host)
    app = server.http_app(
        path=PATH,
        host_origin_protection=True if is_local or allowed_hosts else "auto",
        allowed_hosts=[*allowed_hosts, host] if is_local or allowed_hosts else None,
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        ws="none",
        timeout_graceful_shutdown=GRACE,
    )
    running = _Uvicorn(config)
    task = asyncio.create_task(running.serve(sockets=[opened]))
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        running.should_exit = True
        with contextlib.suppress(Exception):
            await task
        raise
    finally:
        opened.close()


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Signals are whose who runs the server."""
        yield
