"""Python functions as tools."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from devall.config.tools import FunctionTool
from devall.core.errors import (
    AnswerNeeded,
    LimitReached,
    RunCancelled,
    SetupError,
    ToolError,
    ToolFailed,
    ToolNotFound,
    ToolTimeout,
)
from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.plugins.functions import FunctionCatalog
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.context import ToolContext
from devall.tools.results import to_result
from devall.tools.schemas import SchemaCheck
from devall.tools.signature import Signature, read_signature
from devall.tools.threads import in_thread
from devall.workspace import Workspace


@dataclass(frozen=True, slots=True)
class _Function:
    """A function that can be called as a tool."""

    spec: ToolSpec
    signature: Signature
    function: Callable[..., Any]
    own_schema: SchemaCheck | None
    """The schema that the workflow brings, which has to be checked beside the signature."""


class FunctionToolset:
    """Functions of a catalogue; sync ones run in threads, async ones in the event loop."""

    def __init__(
        self,
        tools: Sequence[FunctionTool],
        catalog: FunctionCatalog,
        workspace: Workspace | None = None,
        timeout: float | None = None,
    ) -> None:
        """Make a toolset; nothing is imported before it is opened.

        Args:
            tools: The functions, as a workflow names them.
            catalog: Where they are found.
            workspace: The run's files; functions reach it by their context.
            timeout: Seconds for one call, None = no bound.
        """
        self._tools = tools
        self._catalog = catalog
        self._workspace = workspace
        self._timeout = timeout
        self._functions: dict[str, _Function] = {}

    async def open(self) -> None:
        """Import the functions, in a thread, since a user's imports may take their time.

        Raises:
            SetupError: a function is unknown or does not import, or two have the same name.
        """
        found = await in_thread(lambda: list(self._load()), "devall-import")
        for each in found:
            known = self._functions.setdefault(each.spec.name, each)
            if known.function is not each.function:
                raise SetupError(
                    f"two functions of one source are called `{each.spec.name}`:"
                    f" {_place(known.function)} and {_place(each.function)}",
                    hint="put one of them into a source of its own, with a `prefix`",
                )

    async def specs(self) -> Sequence[ToolSpec]:
        """The tools, in the workflow's order."""
        return [each.spec for each in self._functions.values()]

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue], scope: Scope, call_id: str
    ) -> ToolResult:
        """Run one function.

        Raises:
            ToolArguments: the arguments do not fit.
            ToolFailed: the function raised.
            ToolTimeout: it did not finish in time.
        """
        tool = self._functions.get(name)
        if tool is None:
            raise ToolNotFound(f"there is no function `{name}` here")
        if tool.own_schema is not None:
            tool.own_schema.check_arguments(arguments)
        loop = asyncio.get_running_loop()
        timeout = asyncio.timeout(self._timeout)

        def start_anew() -> None:
            if self._timeout is not None and not timeout.expired():
                timeout.reschedule(loop.time() + self._timeout)

        context = ToolContext(
            tool=name,
            call_id=call_id,
            scope=scope,
            workspace=self._workspace,
            post=lambda work: cast("None", loop.call_soon_threadsafe(work)),
            alive=start_anew,
        )
        positional, named = tool.signature.bind(arguments, context)
        try:
            async with timeout:
                value = await _run(tool.function, positional, named, name)
        except (ToolError, AnswerNeeded, LimitReached, RunCancelled):
            raise
        except TimeoutError as error:
            if not timeout.expired():
                raise ToolFailed(f"{name} raised TimeoutError: {error}") from error
            still = "" if _is_async(tool.function) else "; its thread may still run"
            raise ToolTimeout(
                f"{name} did not finish within {self._timeout:g} s{still},"
                " and whether it did its work is unknown"
            ) from error
        # The boundary of a tool call: whatever a user's function raises, the model is told.
        except (Exception, SystemExit) as error:
            raise ToolFailed(f"{name} raised {type(error).__name__}: {error}") from error
        return to_result(value, self._workspace)

    async def aclose(self) -> None:
        """Nothing is held open."""

    def _load(self) -> Iterator[_Function]:
        for tool in self._tools:
            for name, function in self._catalog.tool(tool.name):
                signature = read_signature(function, name)
                spec = ToolSpec(
                    name=name,
                    description=tool.description or signature.description,
                    parameters=tool.parameters or signature.parameters,
                    metadata={"source": "function", "original_name": name},
                )
                own = None if tool.parameters is None else SchemaCheck(tool.parameters)
                yield _Function(spec, signature, function, own)


async def _run(
    function: Callable[..., Any], positional: list[Any], named: dict[str, Any], name: str
) -> object:
    """What the function returns; a generator's items as a list."""
    if _is_async(function):
        return await function(*positional, **named)

    def work() -> object:
        value = function(*positional, **named)
        return list(cast("Iterator[object]", value)) if inspect.isgenerator(value) else value

    value = await in_thread(work, f"devall-tool-{name}")
    # A sync wrapper around a coroutine function.
    return await value if inspect.isawaitable(value) else value


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 -- its kind is wanted
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
