"""Runs Python code that a model wrote, in a child process that is closed in."""

from __future__ import annotations

import os
import secrets
from typing import Annotated

from pydantic import Field

from devall.sandbox import network_allowed, python_for
from devall.tools.base import ToolResult
from devall.tools.context import MORE_TIME, ToolContext
from devall.workspace import Workspace

from ._child import code_limits, environment, reported, run_limited, sandbox_for
from ._run import workspace_of
from ._tree import entries, open_folder

_MAX_LISTED = 5000
_MAX_NAMED = 30


async def execute_code(
    code: Annotated[
        str,
        Field(
            description="The whole Python program. What it prints is what you get to see; it works"
            " in the workspace's folder, and files that it writes there stay."
        ),
    ],
    time_out: Annotated[
        float, Field(gt=0, le=3600, description="Seconds after which it is stopped.")
    ] = 60,
    *,
    _context: ToolContext,
) -> ToolResult:
    """Run Python code and get its exit code, output and error output.

    Each call is a new program: variables of earlier calls are gone, files are not. There is no
    keyboard to answer input().
    """
    workspace = workspace_of(_context)
    seconds = _context.take_time(time_out)
    files = workspace.files.resolve()
    name = f".code_{secrets.token_hex(6)}.py"
    before = _seen(workspace)
    with workspace.at(name) as place:
        place.write(code.encode("utf-8", "backslashreplace"))
    try:
        python, home = python_for(files)
        sandbox = await sandbox_for(files, network=network_allowed(), readable=[home])
        result = await run_limited(
            [*sandbox.prefix, python, str(files / name)],
            cwd=files,
            env=environment({"TMPDIR": "/tmp"} if sandbox.prefix else None),  # noqa: S108
            seconds=seconds,
            limits=code_limits(),
        )
    finally:
        (files / name).unlink(missing_ok=True)
    notes = [_changes(before, _seen(workspace)), sandbox.note]
    if result.exit_code is None and seconds < time_out:
        notes.append(MORE_TIME)
    return reported(result, seconds, notes, shown_as=(str(files / name), "code.py"))


def _seen(workspace: Workspace) -> dict[str, tuple[float, int | None]]:
    """The files of the workspace, those of hidden folders left out."""
    found: dict[str, tuple[float, int | None]] = {}
    with workspace.at(".") as place:
        folder = open_folder(place)
        try:
            for entry in entries(folder, max_depth=8, hidden=False):
                if entry.type == "file" and "__pycache__" not in entry.path:
                    found[entry.path] = (entry.modified, entry.size)
                if len(found) >= _MAX_LISTED:
                    break
        finally:
            os.close(folder)
    return found


def _changes(
    before: dict[str, tuple[float, int | None]], after: dict[str, tuple[float, int | None]]
) -> str:
    """The files that are new or different, for people."""
    changed = [path for path, state in after.items() if before.get(path) != state]
    if not changed:
        return ""
    more = f" and {len(changed) - _MAX_NAMED} more" if len(changed) > _MAX_NAMED else ""
    return "files made or changed: " + ", ".join(changed[:_MAX_NAMED]) + more
