"""What a workflow and its options choose for a run, checked before anything runs."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

from devall.core.errors import UsageError
from devall.graph.compile import compile_graph
from devall.graph.model import Plan
from devall.loading.loader import LoadedWorkflow
from devall.models.base import ModelSource
from devall.models.providers import Models
from devall.nodes.crew import Overrides, check_models
from devall.nodes.memories import check_memories
from devall.plugins.functions import FunctionCatalog
from devall.plugins.project import functions_for
from devall.runs.session import undisturbed
from devall.tools.extra import extra_names, functions_source


@dataclass(slots=True)
class Parts:
    """A workflow's plan, and what it is run with."""

    loaded: LoadedWorkflow
    overrides: Overrides
    functions_dir: Path | None = None
    ex_tools: Sequence[str] = ()
    """Tools for every agent, as the caller names them."""
    plan: Plan = field(init=False)
    functions: FunctionCatalog = field(init=False)
    extra: Sequence[str] = field(init=False)
    """Tools for every agent, those of the environment included."""

    def __post_init__(self) -> None:
        self.plan = compile_graph(self.loaded.root)
        self.functions = functions_for(self.loaded.path, self.functions_dir)
        self.extra = extra_names(self.ex_tools, self.loaded.environment.values)

    async def checked(
        self, stack: AsyncExitStack, models: ModelSource | None, named: Iterable[str]
    ) -> ModelSource:
        """The source of models; everything that is named is there.

        Args:
            stack: Closes the source, unless it is the caller's.
            models: The caller's own source.
            named: Nodes that options name.

        Raises:
            UsageError: there is no such node.
            SetupError: a key, an extra, weights or a tool is missing.
        """
        self.check_names({*self.overrides.models, *self.overrides.providers, *named} - {""})
        source = models or Models(self.loaded.environment.values)
        if models is None:
            stack.push_async_callback(undisturbed, source.aclose)
        check_models(self.plan, self.loaded.root, source, self.overrides)
        check_memories(self.plan, source, self.loaded.environment.values)
        if self.extra:
            await _check_extra(self.extra, self.functions)
        return source

    def check_names(self, named: Iterable[str]) -> None:
        """Make sure that the nodes an option names are there.

        Raises:
            UsageError: one is not.
        """
        for name in named:
            self.full_names(name)

    def full_names(self, name: str) -> list[str]:
        """The nodes of a name: `S/X`, or `X` wherever it is.

        Raises:
            UsageError: there is none.
        """
        known = list(_names(self.plan))
        found = [name] if name in known else [n for n in known if n.rpartition("/")[2] == name]
        if not found:
            near = difflib.get_close_matches(name, known, 1)
            raise UsageError(
                f"there is no node {name}",
                hint=f"did you mean {near[0]}?" if near else f"nodes: {', '.join(known)}",
            )
        return found


def _names(plan: Plan, prefix: str = "") -> Iterator[str]:
    for node in plan.nodes:
        yield prefix + node.id
    for name, child in plan.subplans.items():
        yield from _names(child, f"{prefix}{name}/")


async def _check_extra(names: Sequence[str], functions: FunctionCatalog) -> None:
    """Make sure, before anything runs, that the tools beside those of the file are there.

    Raises:
        SetupError: one is unknown or does not import, or two have the same name.
    """
    from devall.tools.manager import ToolManager

    async with ToolManager([functions_source(names)], functions=functions):
        pass
