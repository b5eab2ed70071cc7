from __future__ import annotations

from typing import Any

import pytest
from pydantic import TypeAdapter

from devall.config.prefixes import own_name, prefix_of
from devall.config.tools import ToolSource

SOURCES: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


def functions(*names: str) -> dict[str, Any]:
    return {"type": "function", "tools": [{"name": name} for name in names]}


def remote(server: str) -> dict[str, Any]:
    return {"type": "mcp_remote", "server": server}


def local(command: str, *args: str) -> dict[str, Any]:
    return {"type": "mcp_local", "command": command, "args": list(args)}


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (functions("file:All", "web:web_search"), "file"),
        (functions("my.package.tools:search"), "tools"),
        (functions("get_weather"), "functions"),
        (remote("https://mcp.deepwiki.com/mcp"), "deepwiki"),
        (remote("https://example.org/weather/mcp"), "weather"),
        (remote("http://127.0.0.1:8001/mcp"), "remote"),
        (remote("http://localhost:8001/"), "remote"),
        (remote("http://[::1]:8001/mcp"), "remote"),
        (remote("https://mcp.zapier.com/api/mcp/s/NjYzMT4secret/mcp"), "zapier"),
        (local("npx", "-y", "@modelcontextprotocol/server-filesystem", "/tmp"), "filesystem"),
        (local("npx", "-y", "@upstash/context7-mcp@latest"), "context7"),
        (local("npx", "@playwright/mcp@latest"), "playwright"),
        (local("npx", "-y", "chrome-devtools-mcp@1.2"), "chrome_devtools"),
        (local("uvx", "mcp-server-git", "--repository", "/home/me/repo"), "git"),
        (local("python", "-m", "mcp_server_time"), "time"),
        (local("/opt/venv/bin/python3.11", "weather_server.py"), "weather"),
        (local("python3", "mcp_example/mcp_server.py"), "mcp_server"),
        (local("docker", "run", "-i", "--rm", "mcp/fetch:2"), "fetch"),
        (local("/usr/local/bin/github-mcp-server", "stdio"), "github"),
        (local("python", "-c", "print('x', 1)"), "python"),
        (local("größe"), "gr_e"),
        (local("a-very-long-name-of-a-program-indeed"), "a_very_long_name_of_a_pr"),
    ],
)
def test_a_source_has_a_readable_name_of_its_own(source: dict[str, Any], name: str):
    assert own_name(SOURCES.validate_python(source)) == name


def test_the_prefix_is_that_of_the_file_its_own_name_or_none():
    source = local("uvx", "mcp-server-git")
    assert prefix_of(SOURCES.validate_python(source)) == ""
    assert prefix_of(SOURCES.validate_python({**source, "prefix": "vcs"})) == "vcs"
    assert prefix_of(SOURCES.validate_python({**source, "prefix": "auto"})) == "git"
