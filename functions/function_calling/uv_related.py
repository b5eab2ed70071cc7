"""Python environments of the workspace, made and used by uv.

`LIB_INSTALL_TIMEOUT` in devall's environment or the workflow's `.env` is the time limit of a step, 120 seconds by default.
What is run is closed in like execute_code (see `_child.py`); steps that install have the network.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from devall.core.errors import SetupError, ToolArguments, ToolFailed
from devall.core.messages import TextPart
from devall.sandbox import network_allowed
from devall.tools.base import ToolResult
from devall.tools.context import MORE_TIME, ToolContext
from devall.workspace import Workspace

from ._child import environment, reported, run_limited, sandbox_for
from ._run import workspace_of

_MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_VERSION = re.compile(r"[A-Za-z0-9.@+><=~!,*-]+")
# Each of them would lead uv to another project or environment than the workspace's.
_NOT_PASSED = ("VIRTUAL_ENV", "UV_PROJECT", "UV_PROJECT_ENVIRONMENT", "UV_WORKING_DIRECTORY")


async def init_python_env(
    *,
    python_version: Annotated[
        str, Field(description="The Python to use, such as 3.12; empty: the newest at hand.")
    ] = "",
    _context: ToolContext,
) -> ToolResult:
    """Make a Python project with an environment of its own in the workspace.

    execute_code and uv_run use that environment from then on.
    """
    uv = _Uv(workspace_of(_context), _context)
    version = python_version.strip()
    if version and (version.startswith("-") or not _VERSION.fullmatch(version)):
        raise ToolArguments(f"{python_version!r} is no version of Python; 3.12 would be one")
    python = ["--python", version] if version else []
    steps: list[Sequence[str]] = [] if uv.has_project else [uv.new_project(python)]
    # One that is there is kept, unless another Python is asked for.
    steps += [["venv", "--clear" if version else "--allow-existing", *python], ["lock", *python]]
    return await uv.run(steps)


async def install_python_packages(
    packages: Annotated[
        Sequence[str],
        Field(min_length=1, description="What to install, such as `requests` or `numpy>=2`."),
    ],
    *,
    upgrade: Annotated[bool, Field(description="Take newer versions of what is there.")] = False,
    _context: ToolContext,
) -> ToolResult:
    """Install Python packages into the workspace's environment, which is made if need be."""
    workspace = workspace_of(_context)
    uv = _Uv(workspace, _context)
    wanted = [_package(each, workspace) for each in packages]
    steps: list[Sequence[str]] = [] if uv.has_project else [uv.new_project(())]
    steps.append(["add", *(["--upgrade"] if upgrade else []), "--", *wanted])
    return await uv.run(steps)


async def uv_run(
    *,
    module: Annotated[
        str, Field(description="A module to run, as `python -m` does; or else name a script.")
    ] = "",
    script: Annotated[str, Field(description="A Python file, relative to the workspace.")] = "",
    args: Annotated[Sequence[str], Field(description="Arguments of the program.")] = (),
    env: Annotated[
        Mapping[str, str], Field(description="Further environment variables of the program.")
    ] = {},
    timeout_seconds: Annotated[
        float, Field(ge=0, description="Seconds after which it is stopped; 0: the default.")
    ] = 0,
    _context: ToolContext,
) -> ToolResult:
    """Run a module or a script with the workspace's Python environment."""
    workspace = workspace_of(_context)
    uv = _Uv(workspace, _context)
    module, script = module.strip(), script.strip()
    if bool(module) == bool(script):
        raise ToolArguments("give a module or a script: one of them")
    if module and not _MODULE.fullmatch(module):
        raise ToolArguments(f"{module!r} is no name of a module; `package.module` would be one")
    if script:
        place = workspace.confine(script)
        if not place.is_file():
            raise ToolFailed(f"there is no file {script!r} in the workspace")
        program = [str(place)]
    else:
        program = ["python", "-m", module]
    # Without a project here, uv would look for one in the folders above.
    alone = [] if uv.has_project else ["--no-project"]
    command = ["run", *alone, *program, *args]
    return await uv.run([command], seconds=timeout_seconds, env=env, is_code=True)


class _Uv:
    """uv, at work in a workspace."""

    def __init__(self, workspace: Workspace, context: ToolContext) -> None:
        program = shutil.which("uv")
        if program is None:
            raise ToolFailed(
                "uv is not installed here, and this tool works by it",
                hint="this is for the user: `pip install uv`, or see uv's own installer",
            )
        self._program = program
        self._files = workspace.files.resolve()
        self._context = context

    @property
    def has_project(self) -> bool:
        return (self._files / "pyproject.toml").is_file()

    def new_project(self, python: Sequence[str]) -> list[str]:
        return ["init", "--bare", "--no-workspace", "--name", "workspace", *python]

    async def run(
        self,
        steps: Sequence[Sequence[str]],
        *,
        seconds: float = 0,
        env: Mapping[str, str] | None = None,
        is_code: bool = False,
    ) -> ToolResult:
        """Take the steps, one after the other, up to the first that fails.

        Args:
            steps: Arguments of uv.
            seconds: The time limit of each; 0 = the default. All together have that of the
                tool's source.
            env: Further variables.
            is_code: Whether code of the model runs, which has the network only if the user
                has said so.
        """
        limit = seconds or _default_seconds(self._context.environment)
        end = time.monotonic() + self._context.take_time(math.inf)
        kept = {k: v for k, v in environment().items() if k not in _NOT_PASSED}
        stores = [_folder("UV_CACHE_DIR", "XDG_CACHE_HOME", ".cache")]
        stores.append(_folder("UV_PYTHON_INSTALL_DIR", "XDG_DATA_HOME", ".local/share"))
        for each in stores:
            each.mkdir(parents=True, exist_ok=True)
        sandbox = await sandbox_for(
            self._files,
            network=not is_code or network_allowed(),
            writable=stores,
            readable=[Path(self._program).parent],
        )
        if sandbox.prefix:
            # Its stores lie behind another mount, where no hard links lead.
            kept |= {"UV_LINK_MODE": "copy", "TMPDIR": "/tmp"}  # noqa: S108
        texts: list[str] = []
        is_error = False
        for step in steps:
            left = round(min(limit, max(end - time.monotonic(), 0)), 1)
            result = await run_limited(
                [*sandbox.prefix, self._program, *step],
                cwd=self._files,
                env=kept | dict(env or {}),
                seconds=left,
            )
            notes = [MORE_TIME] if result.exit_code is None and left < limit else []
            told = reported(result, left, notes, title=f"uv {step[0]}")
            texts.append(told.text)
            if told.is_error:
                is_error = True
                break
        if sandbox.note and is_code:
            texts.append(f"[{sandbox.note}]")
        return ToolResult((TextPart("\n".join(texts)),), is_error=is_error)


def _package(text: str, workspace: Workspace) -> str:
    """A requirement that is none of uv's options and no file outside of the workspace.

    Raises:
        ToolArguments: it is no requirement.
        ToolFailed: it leads out.
    """
    name = text.strip()
    if not name or name.startswith("-") or not name.isprintable():
        raise ToolArguments(f"{text!r} is no package; `requests` or `numpy>=2` would be one")
    if "file:" in name.lower():
        raise ToolFailed(
            f"{text!r} names a file outside of the workspace",
            hint="copy it into the workspace, and give its path, such as `./lib.whl`",
        )
    if "/" in name and "://" not in name:
        return str(workspace.confine(name))
    return name


def _folder(own: str, base: str, default: str) -> Path:
    """One of uv's folders, by uv's own rules."""
    if place := os.environ.get(own):
        return Path(place).absolute()
    home = os.environ.get(base)
    return (Path(home) if home else Path.home() / default) / "uv"


def _default_seconds(settings: Mapping[str, str]) -> float:
    text = settings.get("LIB_INSTALL_TIMEOUT", "120")
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not seconds > 0 or math.isinf(seconds):
        raise SetupError(f"LIB_INSTALL_TIMEOUT is {text!r}", hint="write a number of seconds")
    return seconds
