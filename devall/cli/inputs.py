"""What commands work on: the workflow, and the values that options and their files give."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli import options as parsing
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.config.nodes import Node
    from devall.loading.loader import LoadedGraph, LoadedWorkflow


LOGS_DIR = "logs"
"""Where runs keep their files, unless `--logs-dir` or DEVALL_LOGS_DIR says otherwise."""


def load(
    file: Path,
    variables: Mapping[str, JsonValue],
    env_file: Path | None,
    functions_dir: Path | None,
) -> LoadedWorkflow:
    """The workflow in a file.

    Raises:
        UsageError: there is no such file, or an option's file or folder is missing.
        ConfigError: the file is wrong.
    """
    # Not by devall.app: what only looks at a file need not wait for what would run it.
    from devall.graph.checked import load_workflow

    if env_file is not None and not env_file.is_file():
        raise UsageError(f"--env-file {env_file}: there is no such file")
    return load_workflow(file, variables=variables, env_file=env_file, functions_dir=functions_dir)


def logs_folder(given: Path | None) -> Path:
    """The folder of all runs: as given, else DEVALL_LOGS_DIR, else `logs`."""
    return given or Path(os.environ.get("DEVALL_LOGS_DIR") or LOGS_DIR)


def gather_variables(place: Path | None, given: Sequence[str]) -> dict[str, JsonValue]:
    """The variables of `--vars-file` and `--var`; those of `--var` stand.

    Raises:
        UsageError: one is not well written.
    """
    found: dict[str, JsonValue] = {}
    if place is not None:
        values = parsing.read_values(place, "--vars-file", _parse_yaml)
        found = parsing.check_variables(values, place)
    return found | parsing.parse_variables(given)


def gather_answers(
    place: Path | None, given: Sequence[str], humans: Sequence[str]
) -> dict[str, str | Sequence[str]]:
    """The answers of `--answers` and `--answer`; those of `--answer` stand.

    Raises:
        UsageError: one is not well written, or is for no human node.
    """
    found: dict[str, str | Sequence[str]] = {}
    if place is not None:
        values = parsing.read_values(place, "--answers", _parse_yaml)
        found = parsing.check_answers(values, place, humans)
    return found | parsing.parse_answers(given, humans)


def needs_task(graph: LoadedGraph) -> bool:
    """Whether some node that gets the task does something with it.

    A literal says the same whatever it gets, and a human node asks by itself.
    """
    config = graph.config
    starts = set(config.start)
    for node in config.nodes:
        if not config.is_majority_voting and node.id not in starts:
            continue
        if node.type == "subgraph":
            if needs_task(graph.subgraphs[node.id]):
                return True
        elif node.type not in {"literal", "human"}:
            return True
    return False


def nodes_of(loaded: LoadedWorkflow, kind: str) -> list[str]:
    """Nodes of a kind as options name them: `X`, and `S/X` and `X` in a subgraph."""
    found = [name for name, node in _walk(loaded.root) if node.type == kind]
    return list(dict.fromkeys([*found, *(name.rpartition("/")[2] for name in found)]))


def _walk(graph: LoadedGraph, prefix: str = "") -> Iterator[tuple[str, Node]]:
    for node in graph.config.nodes:
        yield prefix + node.id, node
    for name, child in graph.subgraphs.items():
        yield from _walk(child, f"{prefix}{name}/")


def answering_nodes(loaded: LoadedWorkflow) -> list[str]:
    """Nodes whose words may be the run's answer."""
    graph = loaded.root.config
    if graph.end:
        return list(graph.end)
    sources = {edge.from_ for edge in graph.edges}
    return [node.id for node in graph.nodes if node.id not in sources]


def _parse_yaml(text: str, name: str) -> JsonValue:
    from devall.loading.document import parse_document

    document = parse_document(text, name)
    if document.problems:
        raise UsageError(str(document.problems[0]))
    return document.root
