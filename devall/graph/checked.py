"""A workflow file that was read, and whose graphs were looked at by every rule."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from devall.core.messages import JsonValue
from devall.graph.rules import check
from devall.loading import loader
from devall.loading.loader import LoadedWorkflow, Recorded
from devall.plugins.project import functions_for


def load_workflow(
    path: str | Path,
    *,
    variables: Mapping[str, JsonValue] | None = None,
    env_file: Path | None = None,
    functions_dir: Path | None = None,
    recorded: Recorded | None = None,
) -> LoadedWorkflow:
    """A workflow that was read and checked; nothing has run, no server was asked.

    Args:
        path: The file.
        variables: Override the `vars` of the file.
        env_file: Read instead of the `.env` beside the file or in the working directory.
        functions_dir: The project's own functions, if they are not found upwards of the file.
        recorded: What the files and the environment were at another time.

    Raises:
        UsageError: there is no such file.
        ConfigError: the file is wrong; all that was found is in it.
    """
    functions = functions_for(Path(path), functions_dir)
    return loader.load_workflow(
        path,
        variables=variables,
        env_file=env_file,
        check=lambda graph: check(graph, functions, has_files=recorded is None),
        recorded=recorded,
    )
