"""Child processes that measure, or are measured."""

from __future__ import annotations

import contextlib
import os
import statistics
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

ROOT = Path(__file__).resolve().parents[1]
RIVALS = ROOT / ".venv" / "bench" / "bin" / "python"
"""The interpreter that has the other engines (bench/setup.sh)."""


def environment(cache: Path) -> dict[str, str]:
    """The environment of measured processes: compiled modules are kept in `cache`, as they are
    wherever the package is installed.
    """
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(cache), "PYTHONPATH": str(ROOT)}


class Worker:
    """A process that does one piece of work for each line that it is sent."""

    def __init__(
        self, module: str, *arguments: object, env: Mapping[str, str], python: Path | None = None
    ) -> None:
        command = [str(python or sys.executable), "-m", module, *map(str, arguments)]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=env, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def read(self) -> str:
        """The next line that it prints."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"bench: {self._process.args} ended with {self._process.wait()}")
        return line.strip()

    def measure(self, work: str = "") -> float:
        """What one piece of work took."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{work}\n")
        self._process.stdin.flush()
        return float(self.read())


@contextlib.contextmanager
def chat_server(env: Mapping[str, str], **latencies: float) -> Generator[dict[str, str]]:
    """A chat server in a process of its own; gives the environment that leads to it."""
    models = [f"{model}={seconds}" for model, seconds in latencies.items()]
    with Worker("bench.work", "server", *models, env=env) as server:
        url, key = server.read().split()
        yield {**env, "BASE_URL": url, "API_KEY": key}


def side_by_side(
    work: Mapping[str, tuple[Worker, str]], repeat: int, *, warm: int = 1
) -> dict[str, float]:
    """Medians of pieces of work that take turns, after `warm` turns that do not count."""
    found: dict[str, list[float]] = {name: [] for name in work}
    for turn in range(warm + repeat):
        for name, (worker, piece) in work.items():
            seconds = worker.measure(piece)
            if turn >= warm:
                found[name].append(seconds)
    return {name: statistics.median(times) for name, times in found.items()}


def cpu_of(command: Sequence[str], folder: Path, env: Mapping[str, str]) -> float:
    """CPU seconds of a Python process from its start to its end.

    Raises:
        SystemExit: it failed.
    """
    process = subprocess.Popen(
        [sys.executable, *command],
        cwd=folder,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(command)} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
