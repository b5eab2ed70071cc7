"""Closes code in that nobody has read: what goes before a command so that it runs in a sandbox.

Settings, by environment variables of devall:

- `DEVALL_CODE_SANDBOX`: `auto` (the default: bubblewrap where it works), `required` (no code
  runs without it), `off`.
- `DEVALL_CODE_NETWORK`: `1` gives code in the sandbox the network; without a sandbox it has it.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from devall.core.errors import SetupError
from devall.processes import run_child

PROBE_SECONDS = 10.0
"""Time for finding out whether bubblewrap works here."""


@dataclass(frozen=True, slots=True)
class Sandbox:
    """What goes before a command so that it runs closed in; nothing if that cannot be had."""

    prefix: tuple[str, ...] = ()
    note: str = ""
    """Why there is none, where one was looked for."""


def network_allowed() -> bool:
    """Whether the user gives code in the sandbox the network."""
    return os.environ.get("DEVALL_CODE_NETWORK", "").lower() in {"1", "true", "yes", "on"}


def python_for(files: Path) -> tuple[str, Path]:
    """The Python of the workspace's own environment (init_python_env makes one), or devall's.

    With it comes the folder that it is installed in.
    """
    own = files / ".venv/bin/python"
    python = str(own) if own.exists() else sys.executable
    return python, Path(os.path.realpath(python)).parents[1]


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
        SetupError: DEVALL_CODE_SANDBOX is `required`, and there is none.
    """
    wanted = os.environ.get("DEVALL_CODE_SANDBOX", "auto").lower()
    if wanted == "off":
        return Sandbox()
    program = shutil.which("bwrap")
    trouble = "bubblewrap (bwrap) is not installed"
    if program is not None:
        trouble = await _trouble_of(program)
        if not trouble:
            return Sandbox(_bwrap(program, files, writable, readable, network))
    if wanted == "required":
        raise SetupError(
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


_troubles: dict[str, str] = {}
"""What was found out, by program: it stays so while devall runs."""


async def _trouble_of(program: str) -> str:
    """Why bubblewrap does not work here; empty if it does. Many containers do not let it."""
    if program not in _troubles:
        _troubles[program] = await _tried(program)
    return _troubles[program]


async def _tried(program: str) -> str:
    root = Path("/tmp")  # noqa: S108 -- any folder will do
    command = [*_bwrap(program, root, (), (), network=False), "true"]
    try:
        done = await run_child(command, cwd=root, env=os.environ, seconds=PROBE_SECONDS)
    except OSError as error:
        return f"bubblewrap does not work here: {error}"
    if done.exit_code == 0:
        return ""
    said = done.stderr.decode("utf-8", "replace").strip().splitlines()
    how = "it does not end" if done.exit_code is None else f"exit code {done.exit_code}"
    return f"bubblewrap does not work here: {said[-1] if said else how}"
