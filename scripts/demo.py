"""`make demo`: a poet draws a number from an MCP server and writes about it, a critic reads it.

`demo.py http` starts the server of mcp_example/ over HTTP, `demo.py stdio` leaves that to the
workflow. With API_KEY in the environment the model is the one at BASE_URL, without it the embedded
one. Whatever happens, the server is stopped.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
WORKFLOWS = PROJECT / "yaml_instance"
SERVER = PROJECT / "mcp_example" / "mcp_server.py"
DEVALL = [sys.executable, "-m", "devall"]
PORT = 8001
TASK = "Draw a number from 1 to 100."
"""Two numbers, the range; in a sentence, since the embedded model is too small for less."""
START_SECONDS = 60


@contextlib.contextmanager
def program(command: list[str], *, output: int | None = None) -> Iterator[subprocess.Popen[str]]:
    """A running child process that is gone when the block is left."""
    process = subprocess.Popen(command, stdout=output, text=True, cwd=PROJECT)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def first_line(process: subprocess.Popen[str]) -> str:
    """What the process says first, empty if it ends or says nothing in time."""
    assert process.stdout is not None
    with selectors.DefaultSelector() as waiting:
        waiting.register(process.stdout, selectors.EVENT_READ)
        return process.stdout.readline().strip() if waiting.select(START_SECONDS) else ""


@contextlib.contextmanager
def mcp_server() -> Iterator[str]:
    """The URL of a server that listens: on port 8001, or on a free one if that is taken."""
    for port in (PORT, 0):
        command = [sys.executable, str(SERVER), "--http", "--port", str(port)]
        with program(command, output=subprocess.PIPE) as process:
            url = first_line(process)
            if url:
                say(f"the MCP server listens on {url}")
                yield url
                return
        say(f"no server on port {PORT}, a free one instead" if port else "no server")
    sys.exit("demo: the MCP server did not start")


def model_options() -> list[str]:
    """Which model: the one that the environment has a key for, else the embedded one."""
    if os.environ.get("API_KEY"):
        say(f"the model at {os.environ.get('BASE_URL') or 'the default endpoint'}")
        return []
    say("no API_KEY: the embedded model, 135M parameters small")
    # Where the file is goes to stdout, and is of no interest here.
    pull = [*DEVALL, "models", "pull", "smollm2"]
    subprocess.run(pull, check=True, cwd=PROJECT, stdout=subprocess.DEVNULL)
    return ["--provider", "local", "--model", "smollm2"]


def run(workflow: str, options: list[str]) -> int:
    """The exit code of the workflow's run on `TASK`."""
    command = [*DEVALL, "run", str(WORKFLOWS / workflow), "--task", TASK, *options]
    with program(command) as process:
        return process.wait()


def say(text: str) -> None:
    """A line of the demo's own, on stderr."""
    print(f"demo: {text}", file=sys.stderr, flush=True)


def main(transport: str) -> int:
    """Run the demo; its exit code is that of the workflow's run."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = model_options()
    if transport == "stdio":
        return run("demo_mcp_local.yaml", [*options, "--var", f"PYTHON={sys.executable}"])
    with mcp_server() as url:
        return run("demo_mcp.yaml", [*options, "--var", f"MCP_URL={url}"])


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:2] or ["http"]))
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
