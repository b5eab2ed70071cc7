"""Child processes of the tools: without devall's secrets, within limits, in a sandbox if it can be.

Settings, by environment variables of devall:

- `DEVALL_CODE_SANDBOX`: `auto` (the default: bubblewrap where it works), `required` (no code
  runs without it), `off`.
- `DEVALL_CODE_NETWORK`: `1` gives code in the sandbox the network; without a sandbox it has it.
- `DEVALL_CODE_MEMORY_MB`: address space of each process, 4096 by default; 0 = no bound.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from devall.core.errors import SetupError, ToolFailed
from devall.core.messages import TextPart
from devall.processes import ChildResult, run_child
from devall.telemetry.redaction import without_secrets
from devall.tools.base import ToolResult
from devall.tools.threads import in_thread

MAX_OUTPUT = 256 << 10
"""Bytes that are kept of each stream, half from its beginning and half from its end."""
MAX_FILE = 2 << 30
"""Bytes of a file that a child may write."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What goes before a command so that it runs closed in; nothing if that cannot be had."""

    prefix: tuple[str, ...] = ()
    note: str = ""
    """Why there is none."""


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


def network_allowed() -> bool:
    """Whether the user gives code in the sandbox the network."""
    return os.environ.get("DEVALL_CODE_NETWORK", "").lower() in {"1", "true", "yes", "on"}


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
    """How code that works in the folder `files` is closed in.

    Only `files` and what `writable` names can be written, `/tmp` and `/run` are its own, and
    other processes are not to be seen.

    Args:
        files: The workspace's folder.
        network: Whether it has the network.
        writable: Further folders to write in, if they are there.
        readable: What it needs to see even in `/tmp`.

    Raises:
        ToolFailed: DEVALL_CODE_SANDBOX is `required`, and there is none.
    """
    wanted = os.environ.get("DEVALL_CODE_SANDBOX", "auto").lower()
    if wanted == "off":
        return Sandbox()
    program = shutil.which("bwrap")
    trouble = "bubblewrap (bwrap) is not installed"
    if program is not None:
        trouble = await in_thread(lambda: _trouble_of(program), "devall-sandbox")
        if not trouble:
            return Sandbox(_bwrap(program, files, writable, readable, network))
    if wanted == "required":
        raise ToolFailed(
            f"code runs only in a sandbox here, and there is none: {trouble}",
            hint="this is for the user: install bubblewrap, or set DEVALL_CODE_SANDBOX=auto",
        )
    return Sandbox(note=f"not in a sandbox: {trouble}")


def _bwrap(
    program: str,
    files: Path,
    writable: Sequence[Path],
    readable: Sequence[Path],
    network: bool,
) -> tuple[str, ...]:
    # What /tmp and /run would hide: the interpreter, and how names are looked up.
    needed = {sys.prefix, sys.base_prefix, os.path.realpath("/etc/resolv.conf")}
    needed |= {str(path) for path in readable}
    shown = [p for p in sorted(needed) if p.startswith(("/tmp/", "/run/"))]  # noqa: S108
    binds = [arg for path in shown for arg in ("--ro-bind-try", path, path)]
    opened = [arg for path in (*writable, files) for arg in ("--bind-try", str(path), str(path))]
    return (
        *(program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"),
        *("--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/dev/shm"),  # noqa: S108
        *binds,
        *opened,
        *("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts"),
        *("--unshare-cgroup-try", "--die-with-parent", "--chdir", str(files)),
        *(() if network else ("--unshare-net",)),
        *("--cap-drop", "ALL", "--"),
    )


@functools.cache
def _trouble_of(program: str) -> str:
    """Why bubblewrap does not work here; empty if it does. Many containers do not let it."""
    command = [*_bwrap(program, Path("/tmp"), (), (), network=False), "true"]  # noqa: S108
    try:
        done = subprocess.run(  # noqa: S603 -- a program of the machine with our own arguments
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=10,
            check=False,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not work here: {error}"
    if done.returncode:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"bubblewrap does not work here: {said[-1]}"
    return ""


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
