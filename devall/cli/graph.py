"""`devall graph`: a workflow's graph as text for Mermaid or Graphviz."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from devall.cli.failures import Reporter
from devall.cli.inputs import gather_variables, load
from devall.cli.streams import write_answer

Format = Literal["mermaid", "dot"]


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphOptions:
    """The options of `devall graph`, as they were written."""

    file: Path
    format: Format = "mermaid"
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    debug: bool = False


def execute(options: GraphOptions) -> int:
    """Print the graph; the exit code."""
    return Reporter(debug=options.debug, file=str(options.file)).guard(lambda: _execute(options))


def _execute(options: GraphOptions) -> int:
    variables = gather_variables(options.vars_file, options.variables)
    loaded = load(options.file, variables, options.env_file, options.functions_dir)
    from devall.graph import draw

    match options.format:
        case "mermaid":
            write_answer(draw.mermaid(loaded.root))
        case "dot":
            write_answer(draw.dot(loaded.root))
        case _:
            assert_never(options.format)
    return 0
