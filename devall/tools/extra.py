"""Tools that are named beside a workflow: by an option, and by EX_TOOLS of the environment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import cast

from devall.config.tools import FunctionSource, FunctionSourceConfig, FunctionTool, ToolSource
from devall.core.errors import SetupError
from devall.loading.document import parse_document

VARIABLE = "EX_TOOLS"
_WRITE = f'write {VARIABLE}="[package.module:attribute, another]"'


def extra_names(given: Iterable[str], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The names of both, each once, those of the option first.

    Args:
        given: As options have them: names, or several with commas between.
        environment: `EX_TOOLS` is a YAML list of names, or one name.

    Raises:
        SetupError: `EX_TOOLS` holds something else.
    """
    names = [name.strip() for each in given for name in each.split(",")]
    names += _listed(environment.get(VARIABLE, ""))
    return tuple(dict.fromkeys(name for name in names if name))


def functions_source(names: Sequence[str]) -> FunctionSource:
    """A source of the named functions."""
    tools = tuple(FunctionTool(name=name) for name in names)
    return FunctionSource(config=FunctionSourceConfig(tools=tools))


def with_extra(own: Sequence[ToolSource], names: Sequence[str]) -> tuple[ToolSource, ...]:
    """A node's sources, and one of the named tools that it does not name itself."""
    named = {
        tool.name
        for source in own
        if isinstance(source, FunctionSource) and not source.prefix
        for tool in source.config.tools
    }
    added = [name for name in names if name not in named]
    return (*own, functions_source(added)) if added else tuple(own)


def _listed(text: str) -> list[str]:
    if not text.strip():
        return []
    document = parse_document(text, VARIABLE)
    if document.problems:
        raise SetupError(f"{VARIABLE} is no YAML: {document.problems[0]}", hint=_WRITE)
    found = document.root
    if isinstance(found, str):
        return [name.strip() for name in found.split(",")]
    names = cast("list[object]", found) if isinstance(found, list) else [found]
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise SetupError(f"{VARIABLE} holds {wrong[0]!r}, which is no name of a tool", hint=_WRITE)
    return [str(name).strip() for name in names]
