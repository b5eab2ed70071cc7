"""What this machine has of that which workflows may need."""

from __future__ import annotations

import importlib.util
import os
import platform
import shutil
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from devall.core.errors import SetupError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.loading.loader import LoadedGraph

_OLDEST_PYTHON = (3, 11)
_EXTRAS: Mapping[str, tuple[tuple[str, ...], str]] = {
    "anthropic": (("anthropic",), "provider anthropic"),
    "local": (("xllamacpp",), "provider local"),
    "otel": (("opentelemetry.sdk",), "traces and metrics"),
    "pictures": (("font_lato", "resvg_py"), "graphs as PNG"),
    "report": (("fpdf", "markdown_it"), "reports as PDF"),
    "web": (("ddgs", "trafilatura"), "search and reading of web pages"),
}
"""Extras of devall: their packages, and what they are for."""
_COMMANDS: Mapping[str, str] = {
    "node": "MCP servers that are started with npx",
    "uv": "MCP servers that are started with uvx, and the uv tools",
    "bwrap": "code of models in a sandbox (bubblewrap)",
    "ffmpeg": "tools for videos and sound",
}


@dataclass(frozen=True, slots=True)
class Check:
    """Something that is here, or not."""

    name: str
    state: Literal["ok", "missing", "wrong"]
    about: str
    needed: bool = False
    """Whether something does not work without it."""

    @property
    def is_bad(self) -> bool:
        """Whether it is missed."""
        return self.needed and self.state != "ok"

    def to_json(self) -> dict[str, JsonValue]:
        """The check as `--json` prints it."""
        return {
            "name": self.name,
            "state": self.state,
            "needed": self.needed,
            "about": self.about,
        }


def checks(logs: Path, graph: LoadedGraph | None) -> Iterator[Check]:
    """Everything that is looked at.

    Args:
        logs: The folder of all runs.
        graph: A workflow's graph, whose servers are looked at too.
    """
    version = platform.python_version()
    is_new = sys.version_info[:2] >= _OLDEST_PYTHON
    yield Check("python", "ok" if is_new else "wrong", f"{version}, at least 3.11", needed=True)
    yield _of_logs(logs)
    yield _of_journal(logs)
    for name, (packages, use) in _EXTRAS.items():
        missing = [each for each in packages if importlib.util.find_spec(each) is None]
        about = f"for {use}" + (f": pip install devall[{name}]" if missing else "")
        yield Check(f"extra {name}", "missing" if missing else "ok", about)
    for name, use in _COMMANDS.items():
        place = shutil.which(name)
        yield Check(name, "ok" if place else "missing", f"for {use}" + (f": {place}" * bool(place)))
    if graph is not None:
        yield from _of_servers(graph, "")


def _of_logs(folder: Path) -> Check:
    """Whether runs can be kept there; nothing is made."""
    there = folder
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir():
        return Check("logs", "wrong", f"{there} is no folder", needed=True)
    if not os.access(there, os.W_OK | os.X_OK):
        return Check("logs", "wrong", f"{there} cannot be written to", needed=True)
    made = "" if folder.exists() else ", which a run makes"
    return Check("logs", "ok", f"{folder}{made}", needed=True)


def _of_journal(folder: Path) -> Check:
    from devall.journal.reader import FILE_NAME
    from devall.journal.schema import VERSION, check

    file = folder / FILE_NAME
    if not file.is_file():
        return Check("journal", "ok", f"none yet; version {VERSION} is written", needed=True)
    try:
        with closing(sqlite3.connect(f"{file.resolve().as_uri()}?mode=ro", uri=True)) as database:
            version = check(database, str(file))
    except SetupError as error:
        return Check("journal", "wrong", f"{error}; {error.hint}", needed=True)
    except sqlite3.Error as error:
        return Check("journal", "wrong", f"{file} cannot be read: {error}", needed=True)
    newer = f", brought to {VERSION} by the next run" if version < VERSION else ""
    return Check("journal", "ok", f"{file}, version {version}{newer}", needed=True)


def _of_servers(graph: LoadedGraph, prefix: str) -> Iterator[Check]:
    """The programs of local MCP servers."""
    for node in graph.config.nodes:
        if node.type != "agent":
            continue
        for source in node.config.tooling:
            if source.type == "mcp_local":
                config = source.config
                base = graph.file.parent / (config.cwd or "")
                where = f"MCP server of {prefix}{node.id}"
                yield _of_program(config.command, config.env, base, where, needed=source.required)
    for name, child in graph.subgraphs.items():
        yield from _of_servers(child, f"{prefix}{name}/")


def _of_program(
    command: str, env: Mapping[str, str], base: Path, where: str, *, needed: bool
) -> Check:
    # As the server would be started: devall's own interpreter ends the PATH.
    path = env.get("PATH") or os.environ.get("PATH", os.defpath)
    path = os.pathsep.join((path, str(Path(sys.executable).parent)))
    is_path = os.sep in command
    found = shutil.which(str(base / command)) if is_path else shutil.which(command, path=path)
    about = f"for the {where}" + (f": {found}" if found else "")
    return Check(f"command {command}", "ok" if found else "missing", about, needed=needed)
