"""Runs the Python code that a message holds."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from devall.config.nodes import PythonConfig
from devall.core.errors import SetupError
from devall.core.messages import Message, assistant
from devall.core.ports import NodeResult, Scope
from devall.processes import ChildResult, run_child
from devall.sandbox import Sandbox, network_allowed, sandbox_for
from devall.telemetry.redaction import without_secrets
from devall.workspace import Workspace, private_folder, write_private

FAILED = "==CODE EXECUTION FAILED=="
_FENCE = re.compile(r"^[ \t]*```[^\n`]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE)


class PythonExecutor:
    """Runs the first fenced block of its last input, or the whole text, as a child process.

    The code works in the run's workspace, closed in where that can be had: see
    `devall.sandbox`. It does not get those variables of the environment whose names say that
    they are secrets; `env` of the node gives what it needs.
    """

    def __init__(self, node: str, config: PythonConfig, workspace: Workspace) -> None:
        self._node = node
        self._config = config
        self._workspace = workspace

    async def run(self, scope: Scope, inputs: Sequence[Message], /) -> NodeResult:
        """What the code printed; a text that begins with the mark of failure if it failed.

        Raises:
            SetupError: the interpreter cannot be started.
        """
        code = code_in(inputs[-1].text if inputs else "")
        config = self._config
        request = {"code": code, "interpreter": config.interpreter, "args": list(config.args)}

        async def call() -> str:
            return await self._execute(code, scope.path)

        output: str = await scope.step("python", "run", request, call)
        return NodeResult((assistant(output, self._node),))

    async def _execute(self, code: str, path: str) -> str:
        config = self._config
        folder = private_folder(self._workspace.root / "code")
        place = folder / (re.sub(r"[^A-Za-z0-9@.-]+", "_", path).strip("_")[-100:] + ".py")
        write_private(place, code.encode(config.encoding, "replace"))
        program = config.interpreter or sys.executable
        files = self._workspace.files.resolve()
        env = _environment(config.env, config.encoding)
        found = shutil.which(program, path=env.get("PATH"))
        readable = [folder.resolve(), *_homes(found)]
        sandbox = await sandbox_for(files, network=network_allowed(), readable=readable)
        try:
            result = await run_child(
                # Without a sandbox what cannot be started is told by the system itself.
                [*(sandbox.prefix if found else ()), program, str(place.resolve()), *config.args],
                cwd=files,
                env=env | ({"TMPDIR": "/tmp"} if sandbox.prefix else {}),  # noqa: S108
                seconds=config.timeout_seconds,
            )
        except OSError as error:
            raise SetupError(
                f"interpreter {program} cannot be started: {error.strerror or error}",
                hint="name one that is installed in the node's `interpreter`",
            ) from error
        return _report(result, config, _closed_in(sandbox))


def _homes(program: str | None) -> list[Path]:
    """The folders that an interpreter is installed in: where it is found, and where it lies."""
    if program is None:
        return []
    found = Path(program).absolute()
    return [place.parents[1] for place in (found, found.resolve()) if len(place.parents) > 1]


def _closed_in(sandbox: Sandbox) -> str:
    """What may be the reason for a failure."""
    if not sandbox.prefix:
        return ""
    network = "" if network_allowed() else " and without network (DEVALL_CODE_NETWORK=1 gives it)"
    return f"\n[it ran in a sandbox{network}; DEVALL_CODE_SANDBOX=off runs it without one]"


def code_in(text: str) -> str:
    """The first fenced block of a text, else the text."""
    found = _FENCE.search(text)
    return found[1] if found else text


def _environment(extra: Mapping[str, str], encoding: str) -> dict[str, str]:
    return {
        **without_secrets(os.environ),
        "PYTHONIOENCODING": encoding,
        "PYTHONUNBUFFERED": "1",
        **extra,
    }


def _report(result: ChildResult, config: PythonConfig, closed_in: str) -> str:
    out = result.stdout.decode(config.encoding, "replace")
    err = result.stderr.decode(config.encoding, "replace")
    note = "\n[output was cut: there was more than is kept]" if result.was_cut else ""
    if result.exit_code == 0:
        return out + note
    if result.exit_code is None:
        how = f"timed out after {config.timeout_seconds:g} s"
    elif result.exit_code < 0:
        how = f"ended by signal {-result.exit_code}"
    else:
        how = f"exit code {result.exit_code}"
    parts = [FAILED, how, *(part for part in (err.strip(), out.strip()) if part)]
    return "\n".join(parts) + note + closed_in
