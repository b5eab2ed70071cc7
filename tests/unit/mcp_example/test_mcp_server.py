from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError

from devall.plugins.shipped import shipped_workflows

SERVER = shipped_workflows().parent / "mcp_example" / "mcp_server.py"


@contextmanager
def http_server(*options: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    command = [sys.executable, str(SERVER), "--http", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as it:
        try:
            assert it.stdout is not None
            yield it.stdout.readline().strip(), it
        finally:
            it.terminate()


def stdio_client(tmp_path: Path) -> Client[StdioTransport]:
    log = tmp_path / "stderr.txt"
    return Client(
        StdioTransport(sys.executable, [str(SERVER)], keep_alive=False, log_file=log),
        init_timeout=30,
    )


async def test_over_http_it_draws_from_the_range(tmp_path: Path):
    with http_server("--port", "0") as (url, _):
        async with Client(url, init_timeout=30) as client:
            [tool] = await client.list_tools()
            drawn = {(await client.call_tool("rand_num", {"a": 1, "b": 3})).data for _ in range(20)}
    assert tool.name == "rand_num"
    assert set(tool.input_schema["properties"]) == {"a", "b"}
    assert drawn <= {1, 2, 3}


async def test_over_stdio_it_says_nothing_but_the_protocol(tmp_path: Path):
    async with stdio_client(tmp_path) as client:
        result = await client.call_tool("rand_num", {"a": 7, "b": 7})
    assert result.data == 7
    assert (tmp_path / "stderr.txt").read_text(encoding="utf-8") == ""


async def test_the_ends_of_the_range_may_come_in_either_order(tmp_path: Path):
    async with stdio_client(tmp_path) as client:
        result = await client.call_tool("rand_num", {"a": 9, "b": 8})
    assert result.data in {8, 9}


async def test_arguments_that_are_no_numbers_are_refused(tmp_path: Path):
    async with stdio_client(tmp_path) as client:
        with pytest.raises(ToolError):
            await client.call_tool("rand_num", {"a": "one", "b": 2})


def test_over_stdio_it_ends_with_its_input():
    done = subprocess.run(
        [sys.executable, SERVER], stdin=subprocess.DEVNULL, capture_output=True, timeout=30
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
async def test_over_http_it_ends_on_a_signal_after_a_client_was_there(ending: signal.Signals):
    with http_server("--port", "0") as (url, process):
        client = Client(url, mode="legacy", init_timeout=30)
        async with client:
            await client.list_tools()
        process.send_signal(ending)
        _, errors = process.communicate(timeout=10)
    assert "Traceback" not in errors


def test_a_port_that_is_taken_is_named_with_the_way_out():
    with http_server("--port", "0") as (url, _):
        port = url.rpartition(":")[2].partition("/")[0]
        with http_server("--port", port) as (second, process):
            assert second == ""
            assert process.wait(30) == 1
            assert process.stderr is not None
            message = process.stderr.read()
    assert f"127.0.0.1:{port}" in message
    assert "--port" in message
    assert "Traceback" not in message
