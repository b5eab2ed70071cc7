"""What it costs to watch a run at a terminal."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bench import graphs
from bench.figures import Row, ratio
from bench.processes import chat_server

_SIZE = 24, 80


def watching(env: Mapping[str, str]) -> Iterator[Row]:
    """A run of 1,000 agents, each behind another one, 20 of them at a time, whose model answers
    after 50 ms, and one of 1,000 nodes without a model: `devall run` at a pseudo-terminal of 80
    columns that is read as fast as it can be : the same with `--quiet`. Wall time and CPU time
    are of the whole command, its start included; of each the smallest counts.
    """
    with tempfile.TemporaryDirectory() as name, chat_server(env, m=0.05) as there:
        folder = Path(name)
        (folder / "agents.yaml").write_text(graphs.layers(50, 20), encoding="utf-8")
        (folder / "chain.yaml").write_text(graphs.chain(1000), encoding="utf-8")
        kinds = (("agents", "1,000 agents", 4), ("chain", "1,000 nodes without a model", 12))
        for file, what, turns in kinds:
            found: dict[str, list[tuple[float, float]]] = {"view": [], "quiet": []}
            for turn in range(turns):
                for how, options in (("view", ()), ("quiet", ("--quiet",))):
                    command = ("run", f"{file}.yaml", "--task", "x", *options)
                    times = _at_terminal(command, folder, there)
                    if turn:  # the first compiles the modules
                        found[how].append(times)
            wall, cpu = (
                {how: min(each[at] for each in times) for how, times in found.items()}
                for at in (0, 1)
            )
            yield ratio(f"{what}: wall time", wall["view"], wall["quiet"], 1.05)
            yield ratio(f"{what}: CPU time", cpu["view"], cpu["quiet"])


def _at_terminal(
    command: Sequence[str], folder: Path, env: Mapping[str, str]
) -> tuple[float, float]:
    """Seconds of wall time and of CPU time of a `devall` command whose terminal is read.

    Raises:
        SystemExit: it failed.
    """
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "devall", *command],
        cwd=folder,
        env={**env, "TERM": "xterm-256color"},
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    reader = threading.Thread(target=_read_all, args=(ours,))
    reader.start()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    reader.join()
    os.close(ours)
    if process.returncode:
        raise SystemExit(f"bench: {' '.join(command)} ended with {process.returncode}")
    return wall, usage.ru_utime + usage.ru_stime


def _read_all(terminal: int) -> None:
    try:
        while os.read(terminal, 65536):
            pass
    except OSError:  # nobody has it open any more
        pass


SECTIONS = {"Watching a run": watching}
