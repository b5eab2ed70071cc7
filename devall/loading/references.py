"""Files that a workflow names: where they are looked for."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

LIBRARY = "yaml_instance"
"""Folder of workflows that others may name; looked for upwards, and in the working directory."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file that is there."""

    path: Path
    """For opening."""
    real: Path
    """The same with links followed: two names of one file are equal here."""


@dataclass(frozen=True, slots=True)
class NotFound:
    """A file that is nowhere."""

    tried: tuple[Path, ...]


def find_file(written: str, including: Path, known: Collection[Path] = ()) -> Found | NotFound:
    """The file that a workflow names: beside the workflow, then in a library.

    Args:
        written: The path as the workflow has it.
        including: The workflow's own path.
        known: Files that count as being there, links followed.
    """
    tried: list[Path] = []
    for folder in _folders(including):
        candidate = folder / written
        if candidate.is_file() or candidate.resolve() in known:
            return Found(candidate, candidate.resolve())
        tried.append(candidate)
    return NotFound(tuple(tried))


def shown(path: Path) -> str:
    """A path as messages name it: from the working directory, where it lies below."""
    text = os.path.normpath(path)
    here = os.getcwd()  # noqa: PTH109 -- compared as text
    return os.path.relpath(text, here) if text.startswith(here + os.sep) else text


def _folders(including: Path) -> list[Path]:
    beside = including.parent
    absolute = beside.resolve()
    upwards = [each / LIBRARY for each in (absolute, *absolute.parents)]
    libraries = [each for each in (*upwards, Path.cwd() / LIBRARY) if each.is_dir()]
    return [beside, *dict.fromkeys(libraries)]
