"""Code that a message holds, saved as files and run on its way along an edge."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from devall.core.errors import ToolFailed
from devall.processes import ChildResult, run_child
from devall.sandbox import network_allowed, python_for, sandbox_for
from devall.telemetry.redaction import without_secrets
from devall.workspace import Workspace

MAIN = "main.py"
SECONDS = 3.0
"""A window, a game or a server does not end by itself: what still runs then without having
complained has started well."""
PASSED = "The software run successfully without errors."
"""The words that workflows look for."""

_FILE = re.compile(
    r"^(?P<name>[^\n]+)\n[ \t]*(?P<fence>`{3,})[^\n`]*\n(?P<code>.*?)^[ \t]*(?P=fence)[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
_SAVED = ".saved_from_messages"
"""Names of the files that the last message left, a line each."""


async def code_save_and_run(text: str, _context: Mapping[str, Any]) -> str:
    """The files of a message, and what came of running its main.py.

    A file is a line with its name and a fenced block below it. They are saved in the run's
    workspace, in the place of those of the message before. A text without files stays as it is.
    """
    files = dict(_files(text))
    if not files:
        return text
    workspace: Workspace = _context["workspace"]
    blocks, problems = _saved(workspace, files)
    result = await _result(workspace) if MAIN in files else f"there is no {MAIN} to run"
    return "\n\n".join(["\n".join(blocks), *problems, result])


def _files(text: str) -> Iterator[tuple[str, str]]:
    """Names and contents, in order; marks around a name (`**main.py**`) are no part of it."""
    for found in _FILE.finditer(text):
        name = found["name"].strip().strip("*#`: \t")
        if name:
            yield name, found["code"]


def _saved(workspace: Workspace, files: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Put the files into the workspace; them as text, and what went wrong."""
    saved: list[str] = []
    blocks: list[str] = []
    problems: list[str] = []
    for name in _left(workspace) - files.keys():
        # The list of names lies where programs of the model can write: none may lead out.
        with suppress(ToolFailed), workspace.at(name, follow=False) as place:
            os.unlink(place.name, dir_fd=place.folder)
    for name, code in files.items():
        blocks.append(f"{name}\n```python\n{code}```")
        try:
            with workspace.at(name, make_parents=True) as place:
                place.write(code.encode("utf-8", "backslashreplace"))
            saved.append(name)
        except ToolFailed as error:
            problems.append(f"{name} was not saved: {error}")
    with workspace.at(_SAVED) as place:
        place.write("\n".join(saved).encode())
    return blocks, problems


def _left(workspace: Workspace) -> set[str]:
    """The files that the message before left."""
    with workspace.at(_SAVED) as place:
        if place.stat() is None:
            return set()
        with place.open() as file:
            return set(filter(None, file.read().decode("utf-8", "replace").split("\n")))


async def _result(workspace: Workspace) -> str:
    """What running main.py gave, in words."""
    root = workspace.files.resolve()
    python, home = python_for(root)
    sandbox = await sandbox_for(root, network=network_allowed(), readable=[home])
    own = {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    if sandbox.prefix:
        own["TMPDIR"] = "/tmp"  # noqa: S108
    ended = await run_child(
        [*sandbox.prefix, python, MAIN],
        cwd=root,
        env=without_secrets(os.environ) | own,
        seconds=SECONDS,
        max_output=256 << 10,
        keep_end=True,
    )
    return _told(ended, root)


def _told(ended: ChildResult, root: Path) -> str:
    out, err = (data.decode("utf-8", "replace").strip() for data in (ended.stdout, ended.stderr))
    if ended.exit_code == 0 or (ended.exit_code is None and not err):
        lasting = f"(it still ran after {SECONDS:g} s, and was stopped)"
        notes = [lasting] if ended.exit_code is None else []
        return "\n\n".join([*([out] if out else []), *notes, PASSED])
    how = "" if ended.exit_code is None else f"exit code {ended.exit_code}"
    shown = err.replace(f"{root}{os.sep}", "")
    return "\n\n".join(part for part in (how, shown, out) if part)
