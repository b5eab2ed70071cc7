"""Rules over a loaded graph: what would go wrong, or do nothing, when it runs."""

from __future__ import annotations

from devall.core.diagnostics import Diagnostic
from devall.graph.checks.loops import check_loops
from devall.graph.checks.names import (
    FunctionNames,
    check_functions,
    check_memory,
    check_params,
    check_providers,
    check_thinking,
    check_tools,
)
from devall.graph.checks.schemas import check_schemas, check_templates
from devall.graph.checks.shape import Shape
from devall.graph.checks.skills import check_skills
from devall.graph.checks.structure import check_structure
from devall.loading.loader import LoadedGraph

__all__ = ["FunctionNames", "check"]


def check(
    loaded: LoadedGraph, functions: FunctionNames, *, has_files: bool = True
) -> list[Diagnostic]:
    """All findings about a graph and the graphs within its nodes.

    `has_files` says whether the files beside the workflow are those of its run: a replay of an
    earlier run needs none of them.

    An error is what cannot run; a warning what can hardly be meant. Nothing is said about parts
    that stand in for something broken.
    """
    found: list[Diagnostic] = []
    seen: set[int] = set()
    queue = [loaded]
    for graph in queue:  # it grows
        if id(graph) in seen:
            continue
        seen.add(id(graph))
        queue += graph.subgraphs.values()
        shape = Shape(graph)
        found += shape.problems
        found += check_structure(shape)
        if shape.is_whole:
            found += check_loops(shape)
        found += check_functions(shape, functions)
        found += check_memory(shape)
        found += check_thinking(shape, functions)
        found += check_providers(shape)
        found += check_params(shape)
        found += check_templates(shape)
        found += check_tools(shape, functions)
        if has_files:
            found += check_skills(shape, functions)
            found += check_schemas(shape)
    return found
