"""Child processes of the tools: without devall's secrets, within limits, in a sandbox if it can be.

Settings, by environment variables of devall:

- `DEVALL_CODE_SANDBOX` and `DEVALL_CODE_NETWORK`: see `devall.sandbox`.
- `DEVALL_CODE_MEMORY_MB`: address space of each process, 4096 by default; 0 = no bound.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devall import sandbox
from devall.core.errors import SetupError, ToolFailed
from devall.core.messages import TextPart
from devall.processes import ChildResult, run_child
from devall.sandbox import Sandbox
from devall.telemetry.redaction import without_secrets
from devall.tools.base import ToolResult

MAX_OUTPUT = 256 << 10
"""Bytes that are kept of each stream, half from its beginning and half from its end."""
MAX_FILE = 2 << 30
"""Bytes of a file that a child may write."""


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment for a child: devall's without what is named like a secret, and `extra`."""
    kept = without_secrets(os.environ)
    return kept | {"PYTHONIOENCODING": "utf-8", "PYTHONUNBUFFERED": "1"} | dict(extra or {})


def code_limits() -> dict[str, int]:
    """The bounds for code that a model wrote.

    Raises:
        SetupError: DEVALL_CODE_MEMORY_MB is no number.
    """
    text = os.environ.get("DEVALL_CODE_MEMORY_MB", "4096")
    if not text.isdecimal():
        raise SetupError(
            f"DEVALL_CODE_MEMORY_MB is {text!r}", hint="write a number of megabytes, such as 4096"
        )
    memory = {"RLIMIT_AS": int(text) << 20} if int(text) else {}
    return {"RLIMIT_CORE": 0, "RLIMIT_FSIZE": MAX_FILE, **memory}


async def run_limited(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    seconds: float,
    limits: Mapping[str, int] | None = None,
) -> ChildResult:
    """Run a command by the launcher: nothing that it has started is left when this returns."""
    launcher = str(Path(__file__).with_name("_launch.py"))
    return await run_child(
        [sys.executable, "-I", "-S", launcher, json.dumps(limits or {}), *command],
        cwd=cwd,
        env=env,
        seconds=seconds,
        max_output=MAX_OUTPUT,
        keep_end=True,
    )


async def sandbox_for(
    files: Path, *, network: bool, writable: Sequence[Path] = (), readable: Sequence[Path] = ()
) -> Sandbox:
    """How code that works in the folder `files` is closed in; see `devall.sandbox`.

    Raises:
        ToolFailed: DEVALL_CODE_SANDBOX is `required`, and there is none.
    """
    try:
        return await sandbox.sandbox_for(
            files, network=network, writable=writable, readable=readable
        )
    except SetupError as error:
        raise ToolFailed(str(error), hint=error.hint) from error


def reported(
    result: ChildResult,
    seconds: float,
    notes: Sequence[str] = (),
    *,
    title: str = "",
    shown_as: tuple[str, str] = ("", ""),
) -> ToolResult:
    """How a child ended and what it said, for a model to read; an error if it failed.

    Args:
        result: How it ended.
        seconds: Its time limit.
        notes: What else is to be known, each in a line of its own.
        title: What it was, for the first line.
        shown_as: A text, and what is shown in its place: a name that is another one each time
            would make equal results look different.
    """
    parts = [(f"{title}: " if title else "") + _ending(result.exit_code, seconds)]
    for name, data in (("stdout", result.stdout), ("stderr", result.stderr)):
        if text := data.decode("utf-8", "replace").rstrip("\n"):
            parts.append(f"--- {name} ---\n{text}")
    if len(parts) == 1:
        parts.append("(it printed nothing)")
    parts.extend(f"[{note}]" for note in notes if note)
    text = "\n".join(parts)
    if shown_as[0]:
        text = text.replace(*shown_as)
    return ToolResult((TextPart(text),), is_error=result.exit_code != 0)


def _ending(exit_code: int | None, seconds: float) -> str:
    if exit_code is None:
        return f"stopped: it did not end within {seconds:g} s"
    number = -exit_code if exit_code < 0 else exit_code - 128 if exit_code > 128 else 0
    try:
        name = f" (ended by {signal.Signals(number).name})" if number else ""
    except ValueError:
        name = ""
    return f"exit code: {exit_code}{name}"
