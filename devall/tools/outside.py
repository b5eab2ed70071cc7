"""Tools outside of any run: the scope of their calls, their workspace, sources as plain values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from devall.config.tools import FunctionSource, McpLocalSource, McpRemoteSource, ToolSource
from devall.core.errors import UsageError
from devall.core.events import Event, Sink
from devall.core.messages import JsonValue
from devall.core.ports import CallKind, StepKind
from devall.core.usage import Estimate
from devall.workspace import Workspace, private_folder

SourceLike = ToolSource | Mapping[str, JsonValue]
"""A source as its configuration, or as the mapping that a workflow would have."""

_SOURCE: TypeAdapter[ToolSource] = TypeAdapter(ToolSource)


@dataclass(frozen=True, slots=True)
class Outside:
    """The scope of a call that no run makes: nothing is journaled, nothing is bounded."""

    node: str = ""
    path: str = ""
    sink: Sink | None = None

    def emit(self, event: Event, /) -> None:
        """Tell whoever listens."""
        if self.sink is not None:
            self.sink(event)

    async def step(
        self,
        kind: StepKind,  # noqa: ARG002 -- the shape of a scope
        name: str,  # noqa: ARG002
        request: JsonValue,  # noqa: ARG002
        call: Callable[[], Awaitable[JsonValue]],
        in_doubt: Callable[[], Awaitable[JsonValue]] | None = None,  # noqa: ARG002 - the port's
    ) -> JsonValue:
        """The value of the call, which is made each time."""
        return await call()

    def allow(self, kind: CallKind, estimate: Estimate | None = None) -> None:
        """Everything is allowed."""


class FolderWorkspace(Workspace):
    """A folder of the user's to work in; attachments are kept in its `.devall`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / ".devall")
        self._folder = folder

    @property
    def files(self) -> Path:
        """The folder itself."""
        return private_folder(self._folder)


def read_sources(given: SourceLike | Sequence[SourceLike]) -> tuple[ToolSource, ...]:
    """Sources in their one form.

    Args:
        given: One, or several in order.

    Raises:
        UsageError: a mapping is no source; every misfit is named.
    """
    if isinstance(given, Mapping | FunctionSource | McpRemoteSource | McpLocalSource):
        return (_read(given, "the source"),)
    return tuple(_read(source, f"source {i}") for i, source in enumerate(given, 1))


def _read(source: SourceLike, place: str) -> ToolSource:
    if not isinstance(source, Mapping):
        return source
    try:
        return _SOURCE.validate_python(dict(source))
    except ValidationError as error:
        found = error.errors(include_url=False, include_context=False, include_input=False)
        misfits = [
            f"{'.'.join(str(step) for step in each['loc'])}: {each['msg']}".removeprefix(": ")
            for each in found
        ]
        raise UsageError(
            f"{place} is no source of tools: {'; '.join(misfits)}",
            hint="write it as under `tooling` in a workflow: `type` function, mcp_remote or"
            " mcp_local, and its `config`",
        ) from error
