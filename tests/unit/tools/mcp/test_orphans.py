from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

import pytest

OWNER = """
import asyncio, json, sys
from pathlib import Path
from devall.config.tools import McpLocalConfig
from devall.tools.mcp.pool import McpServers

async def main():
    async with McpServers() as servers:
        for config in json.loads(sys.argv[1]):
            server = servers.local(McpLocalConfig(**config), Path("."))
            await server.tools()
        print("up", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
async def test_however_the_owner_ends_no_server_is_left(
    raw_source: Callable[..., dict[str, Any]], watch: Any, how: signal.Signals
):
    configs = [
        raw_source("deaf", "orphan", shutdown_grace=0.3, startup_timeout=30)["config"],
        raw_source(startup_timeout=30)["config"],
    ]
    owner = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        OWNER,
        json.dumps(configs),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"up\n"
    children = watch.children_of(owner.pid)
    assert len(children) == 4  # two servers, a sleep, the watchdog
    os.kill(owner.pid, how)
    await owner.wait()
    assert await watch.until(lambda: not [p for p in children if watch.is_alive(p)])
