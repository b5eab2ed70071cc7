"""Names and values from outside of the file: the environment, and `.env`."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import UsageError
from devall.loading.references import shown

_SECRET_WORDS = ("KEY", "TOKEN", "SECRET", "PASSWORD")


def is_secret_name(name: str) -> bool:
    """Whether a variable of that name holds something that must never be shown."""
    upper = name.upper()
    return any(word in upper for word in _SECRET_WORDS)


@dataclass(frozen=True, slots=True)
class Environment:
    """What is known outside of the file."""

    values: Mapping[str, str] = field(repr=False)
    """The environment, and below it what the `.env` files add."""
    files: Mapping[str, str] = field(default_factory=dict[str, str])
    """For each name that came from a `.env` file: which one."""
    warnings: tuple[Diagnostic, ...] = ()
    """Lines of the `.env` files that say nothing."""

    def origin(self, name: str) -> str:
        """Where a name's value came from, in words."""
        return self.files.get(name, "the environment")


def read_environment(folder: Path | None, env_file: Path | None = None) -> Environment:
    """The environment, and the names that `.env` adds; it never replaces one.

    Args:
        folder: Where the workflow is; its `.env` comes first, then that of the working directory.
        env_file: A file to read in place of these two.

    Raises:
        UsageError: `env_file` cannot be read, or a `.env` is no UTF-8.
    """
    if env_file is not None:
        paths = [env_file]
    else:
        folders = [] if folder is None else [folder]
        paths = [each / ".env" for each in (*folders, Path.cwd())]
        paths = [path for path in dict.fromkeys(path.resolve() for path in paths) if path.is_file()]
    values: dict[str, str] = {}
    files: dict[str, str] = {}
    warnings: list[Diagnostic] = []
    for path in paths:
        for name, value in _read(path, warnings).items():
            if name not in values and name not in os.environ:
                values[name] = value
                files[name] = shown(path)
    return Environment(values | dict(os.environ), files, tuple(warnings))


def _read(path: Path, warnings: list[Diagnostic]) -> dict[str, str]:
    """The names and values of one file; lines that cannot be read become warnings."""
    from dotenv import dotenv_values
    from dotenv.parser import parse_stream

    try:
        text = path.read_text("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is no UTF-8 text") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from error
    good: list[str] = []
    for binding in parse_stream(io.StringIO(text)):
        if binding.error:
            # What stands there may be half a secret: it is not repeated.
            lines = binding.original.string.split("\n")
            line = binding.original.line + next((i for i, s in enumerate(lines) if s.strip()), 0)
            position = Position(shown(path), line, 1)
            hint = "write NAME=value; quotes must be closed"
            warnings.append(
                Diagnostic("bad-env-line", "this line cannot be read", position, hint, "warning")
            )
        else:
            good.append(binding.original.string)
    found = dotenv_values(stream=io.StringIO("".join(good)))
    return {name: value for name, value in found.items() if value is not None}
