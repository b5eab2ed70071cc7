"""Logging in to the servers of a workflow beforehand, at a terminal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from devall.config.tools import McpRemoteConfig, McpRemoteSource, ToolSource
from devall.tools.mcp.logins import LoginPage, Logins
from devall.tools.mcp.pool import McpServers


def wants_login(sources: Sequence[ToolSource]) -> list[McpRemoteConfig]:
    """The servers among the sources that are logged in to (`auth: oauth`), each URL once."""
    found: dict[str, McpRemoteConfig] = {}
    for source in sources:
        if isinstance(source, McpRemoteSource) and source.config.auth == "oauth":
            found.setdefault(source.config.server.rstrip("/"), source.config)
    return list(found.values())


async def login(
    config: McpRemoteConfig,
    show: Callable[[LoginPage], None],
    *,
    folder: Path | None = None,
    by_code: bool = False,
) -> int:
    """Log in to a server anew and keep the token; how many tools it then lists.

    Args:
        config: The server, with `auth: oauth`.
        show: Shows a person the page to log in at; a browser is opened beside where there is a
            screen. The page leads back to a port of this machine.
        folder: Where tokens are kept; None = in the user's folder for configuration.
        by_code: Whether the person logs in on another device, with a code; done also where no
            browser can be opened here. A server that gives no codes is logged in to by the page.

    Raises:
        SetupError: the server cannot be reached, or the login did not succeed.
    """
    logins = Logins(show, folder, anew=True, by_code=by_code)
    async with McpServers(logins=logins) as servers:
        return len(await servers.remote(config).tools())
