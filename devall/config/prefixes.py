"""The names that sources of tools have by themselves, and the prefixes that come of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath
from typing import assert_never
from urllib.parse import urlsplit

from devall.config.tools import (
    AUTO_PREFIX,
    FunctionSource,
    McpLocalSource,
    McpRemoteSource,
    ToolSource,
)

LONGEST = 24
"""Characters of a source's own name: 40 are left for a tool's."""

_RUNNERS = re.compile(
    r"(python[\d.]*|node|npx|npm|pnpm|yarn|bunx?|deno|uvx?|pipx|docker|podman|env|(ba|z)?sh)(\.exe)?"
)
_SUBCOMMANDS = frozenset({"run", "exec", "x", "dlx", "tool", "start"})
_READABLE = re.compile(r"[\w@./:+-]+")
_SAID_BY_ALL = frozenset({"mcp", "sse", "http", "stream", "streamable", "api", "www", "server"})
_SEGMENT = re.compile(r"[a-z][a-z_-]{1,19}")
"""A piece of a URL's path that is a word: a key that stands there has digits or capitals."""


def prefix_of(source: ToolSource) -> str:
    """The prefix of a source's tools; empty where they keep their own names."""
    return own_name(source) if source.prefix == AUTO_PREFIX else source.prefix


def own_name(source: ToolSource) -> str:
    """What a source is called by itself: a short word, the same in every process.

    - `function`: the file or module of its first tool, where the workflow writes one
      (`file:All`, `package.module:attribute`); else `functions`.
    - `mcp_remote`: the last word of the URL's path that says more than `mcp` or `api`; else the
      first such label of its host; else `remote`.
    - `mcp_local`: the program; the first argument that is no option where the command only runs
      it (`npx`, `uvx`, `python`, `docker run`, ...). What all servers are called, `mcp-server-`
      and the like, is left out.
    """
    match source:
        case FunctionSource():
            named = (tool.name.partition(":") for tool in source.config.tools[:1])
            words = [module.rpartition(".")[2] for module, colon, _ in named if colon]
            return _first(words, "functions")
        case McpRemoteSource():
            return _first(_words_of(source.config.server), "remote")
        case McpLocalSource():
            config = source.config
            return _first(_programs(config.command, config.args), "local")
        case _:
            assert_never(source)


def _first(words: Iterable[str], otherwise: str) -> str:
    """The first word of which something is left that may stand in a tool's name."""
    cleaned = (re.sub(r"[^A-Za-z0-9]+", "_", word).strip("_")[:LONGEST] for word in words)
    return next((word.rstrip("_") for word in cleaned if word), otherwise)


def _words_of(url: str) -> Iterator[str]:
    parts = urlsplit(url)
    for segment in reversed(parts.path.split("/")):
        if _SEGMENT.fullmatch(segment) and segment not in _SAID_BY_ALL:
            yield segment
    host = parts.hostname or ""
    if host != "localhost" and ":" not in host and not host.replace(".", "").isdecimal():
        labels = host.split(".")
        yield from (label for label in labels[:-1] or labels if label not in _SAID_BY_ALL)


def _programs(command: str, args: Iterable[str]) -> Iterator[str]:
    name = PurePosixPath(command.replace("\\", "/")).name
    if _RUNNERS.fullmatch(name):
        for word in args:
            is_option = word.startswith("-") or word in _SUBCOMMANDS or "=" in word
            if not is_option and _READABLE.fullmatch(word):
                yield _program(word)
    yield _program(name)


def _program(word: str) -> str:
    """A program's own name: without its folder, its version, and what all servers are called."""
    scope, _, last = word.rstrip("/").rpartition("/")
    last = last.partition("@")[0] or last.lstrip("@")
    stem = re.sub(r"\.(py|js|mjs|cjs|ts|sh|exe|jar)$", "", last.partition(":")[0])
    short = re.sub(r"^(mcp[_-])?(server|mcp)[_-]|[_-](mcp)?([_-]?server|mcp)$", "", stem)
    if short not in {"", "mcp", "server"}:
        return short
    return scope.lstrip("@") if scope.startswith("@") else stem
