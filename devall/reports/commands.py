"""Workflow commands of GitHub Actions: findings that show beside the lines of a change."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace

from devall.core.diagnostics import Diagnostic
from devall.loading.reports import render_github


def workflow_commands(diagnostics: Iterable[Diagnostic], environment: Mapping[str, str]) -> str:
    """The findings as workflow commands, one a line; files as the repository names them."""
    root = environment.get("GITHUB_WORKSPACE", "")
    return render_github(
        replace(each, position=replace(each.position, file=in_repository(each.position.file, root)))
        for each in diagnostics
    )


def in_repository(file: str, root: str) -> str:
    """A file's path from the root of the repository; as it stands where it lies elsewhere."""
    if not root or not file:
        return file
    place, top = os.path.realpath(file), os.path.realpath(root)
    return os.path.relpath(place, top) if place.startswith(top + os.sep) else file
