"""The command line within the test's process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from devall.cli.main import call


@dataclass(frozen=True)
class Done:
    """What a command has left behind."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def devall(
    workspace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Done]:
    """Runs `devall` with these arguments in an empty folder, without a terminal."""

    def run(
        *arguments: str | Path,
        env: Mapping[str, str] | None = None,
        stdin: str = "",
        code: int | None = None,
    ) -> Done:
        with monkeypatch.context() as changed:
            for name, value in (env or {}).items():
                changed.setenv(name, value)
            changed.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
            capsys.readouterr()
            done = Done(call(list(map(str, arguments))), *capsys.readouterr())
        if code is not None:
            assert done.returncode == code, done.stdout + done.stderr
        return done

    return run
