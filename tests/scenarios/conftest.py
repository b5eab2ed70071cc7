"""The command line as a child process, for scenarios."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

Devall = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def devall(workspace: Path) -> Devall:
    """Runs `devall` with these arguments in an empty folder, without a terminal."""

    def run(
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: str | None = None,
        code: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            command(arguments),
            cwd=workspace,
            env=os.environ | dict(env or {}),
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            encoding="utf-8",
            timeout=30,
            check=False,
        )
        if code is not None:
            assert done.returncode == code, done.stdout + done.stderr
        return done

    return run


def command(arguments: Sequence[str | Path]) -> list[str]:
    """The command line that runs `devall` from this checkout."""
    return [sys.executable, "-m", "devall", *map(str, arguments)]
