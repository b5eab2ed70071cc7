"""Graphviz' way of laying out a graph: its `dot` program, and what that answers.

The program comes as the package `graphviz-pure` (a port to Rust, the same on every platform); an
installed Graphviz does as well. It sees made-up ids and sizes only, no text of a workflow.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

from devall.core.errors import DevallError, SetupError

PACKAGE = "graphviz-pure"
PATIENCE = 60
"""Seconds after which a layout is given up; a thousand nodes take one or two."""


def find_program() -> str | None:
    """The program that lays out, if there is one."""
    try:
        listed = files(PACKAGE) or []
    except PackageNotFoundError:
        listed = []
    for each in listed:
        if Path(each.name).stem == PACKAGE:
            path = Path(str(each.locate()))
            if path.is_file():
                return str(path)
    return shutil.which(PACKAGE) or shutil.which("dot")


def laid_out(text: str) -> dict[str, Any]:
    """A graph in Graphviz' language, and where everything of it is, as `dot -Tjson` says it.

    Raises:
        SetupError: there is no program for it, or it does not work.
    """
    program = find_program()
    if program is None:
        raise SetupError(
            "nothing is installed that lays out a picture",
            hint="pip install graphviz-pure, or install Graphviz; mermaid, dot and ascii need nothing",
        )
    return json.loads(_run([program, "-Tjson"], text))


def _run(command: Sequence[str], text: str) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - our own text, a program of this environment
            command, input=text, capture_output=True, encoding="utf-8", timeout=PATIENCE, check=True
        )
    except subprocess.TimeoutExpired as error:
        raise DevallError(
            f"the picture could not be laid out within {PATIENCE} seconds",
            hint="mermaid, dot and ascii need no layout",
        ) from error
    except subprocess.CalledProcessError as error:
        told = str(error.stderr).strip().splitlines() or [f"exit code {error.returncode}"]
        raise DevallError(
            f"the picture could not be laid out: {command[0]} says: {told[-1]}",
            hint="mermaid, dot and ascii need no layout",
        ) from error
    except OSError as error:
        raise SetupError(
            f"{command[0]} cannot be started: {error.strerror or error}",
            hint="pip install graphviz-pure, or install Graphviz; mermaid, dot and ascii need nothing",
        ) from error
    return done.stdout
