"""`devall graph`: a workflow's graph as text for Mermaid or Graphviz."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, assert_never

from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import gather_variables, load
from devall.cli.streams import write_answer
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.loading.loader import LoadedGraph

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
    as_json: bool = False
    debug: bool = False


def execute(options: GraphOptions) -> int:
    """Print the graph; the exit code."""
    reporter = Reporter(options.as_json, options.debug, str(options.file))
    return reporter.guard(lambda: _execute(options))


def _execute(options: GraphOptions) -> int:
    variables = gather_variables(options.vars_file, options.variables)
    loaded = load(options.file, variables, options.env_file, options.functions_dir)
    drawing = _drawing(loaded.root, options.format)
    if not options.as_json:
        write_answer(drawing)
        return 0
    told = {
        "workflow": str(options.file),
        "format": options.format,
        "drawing": drawing,
        "nodes": list(_nodes(loaded.root)),
        "edges": list(_edges(loaded.root)),
    }
    write_answer(to_line(told))
    return 0


def _drawing(graph: LoadedGraph, language: Format) -> str:
    match language:
        case "mermaid":
            from devall.pictures.mermaid import mermaid

            return mermaid(graph)
        case "dot":
            from devall.pictures.dot import dot

            return dot(graph)
        case _:
            assert_never(language)


def _nodes(graph: LoadedGraph, prefix: str = "") -> Iterator[dict[str, JsonValue]]:
    config = graph.config
    for index, node in enumerate(config.nodes):
        place = graph.locate(("nodes", index))
        yield {
            "node": prefix + node.id,
            "type": node.type,
            "start": config.is_majority_voting or node.id in config.start,
            "end": node.id in config.end,
            "file": place.file,
            "line": place.line,
            "column": place.column,
        }
        if node.id in graph.subgraphs:
            yield from _nodes(graph.subgraphs[node.id], f"{prefix}{node.id}/")


def _edges(graph: LoadedGraph, prefix: str = "") -> Iterator[dict[str, JsonValue]]:
    for edge in graph.config.edges:
        condition = edge.condition
        yield {
            "from": prefix + edge.from_,
            "to": prefix + edge.to,
            "trigger": edge.trigger,
            "carry_data": edge.carry_data,
            "conditional": not (condition.type == "always" and condition.value),
            "dynamic": edge.dynamic.type if edge.dynamic is not None else None,
        }
    for name, child in graph.subgraphs.items():
        yield from _edges(child, f"{prefix}{name}/")
