"""Python functions as tools."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from devall.config.tools import DEFAULT_SECONDS, FunctionTool
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
from devall.core.ports import HumanChannel, Scope
from devall.plugins.functions import FunctionCatalog
from devall.tools.base import ToolResult, ToolSpec
from devall.tools.context import ToolContext
from devall.tools.own import OwnTool, own_tools
from devall.tools.results import to_result
from devall.tools.schemas import SchemaCheck
from devall.tools.threads import in_thread
from devall.workspace import Workspace


@dataclass(frozen=True, slots=True)
class _Function:
    """A function that can be called as a tool."""

    spec: ToolSpec
    own: OwnTool
    check: SchemaCheck | None
    """The schema that the workflow or the tool brings, which has to be checked beside the
    signature."""


class FunctionToolset:
    """Functions of a catalogue; sync ones run in threads, async ones in the event loop."""

    def __init__(
        self,
        tools: Sequence[FunctionTool],
        catalog: FunctionCatalog,
        workspace: Workspace | None = None,
        timeout: float | None = None,
        human: HumanChannel | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Make a toolset; nothing is imported before it is opened.

        Args:
            tools: The functions, as a workflow names them.
            catalog: Where they are found.
            workspace: The run's files; functions reach it by their context.
            timeout: Seconds for one call; None = what the function itself says, else 300.
            human: Whom functions ask; None = nobody.
            environment: Where functions find their settings and keys; None = that of devall.
        """
        self._tools = tools
        self._human = human
        self._catalog = catalog
        self._workspace = workspace
        self._timeout = timeout
        self._environment = os.environ if environment is None else environment
        self._functions: dict[str, _Function] = {}

    async def open(self) -> None:
        """Import the functions, in a thread, since a user's imports may take their time.

        Raises:
            SetupError: a function is unknown or does not import, or two have the same name.
        """
        found = await in_thread(lambda: list(self._load()), "devall-import")
        for each in found:
            known = self._functions.setdefault(each.spec.name, each)
            if known.own.origin is not each.own.origin:
                raise SetupError(
                    f"two functions of one source are called `{each.spec.name}`:"
                    f" {_place(known.own.function)} and {_place(each.own.function)}",
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
            ToolFailed: the function raised, is busy, or was called as often as it may be.
            ToolTimeout: it did not finish in time.
        """
        tool = self._functions.get(name)
        if tool is None:
            raise ToolNotFound(f"there is no function `{name}` here")
        if tool.check is not None:
            tool.check.check_arguments(arguments)
        own = tool.own
        limit = self._timeout or own.time_limit
        seconds = limit or DEFAULT_SECONDS
        loop = asyncio.get_running_loop()
        timeout = asyncio.timeout(seconds)

        def start_anew() -> None:
            if not timeout.expired():
                timeout.reschedule(loop.time() + seconds)

        def hold() -> None:
            if not timeout.expired():
                timeout.reschedule(None)

        context = ToolContext(
            tool=name,
            call_id=call_id,
            scope=scope,
            workspace=self._workspace,
            post=lambda work: cast("None", loop.call_soon_threadsafe(work)),
            alive=start_anew,
            number=own.calls + 1,
            human=self._human,
            hold=hold,
            limit=limit,
            environment=self._environment,
        )
        positional, named = own.signature.bind(arguments, context)
        own.count()
        if own.turn is not None:
            await own.turn.take(name, seconds)
        try:
            async with timeout:
                value = await _run(own, positional, named)
        except (ToolError, AnswerNeeded, LimitReached, RunCancelled):
            raise
        except TimeoutError as error:
            if not timeout.expired():
                raise ToolFailed(f"{name} raised TimeoutError: {error}") from error
            still = "" if _is_async(own.function) else "; its thread may still run"
            raise ToolTimeout(
                f"{name} did not finish within {seconds:g} s{still},"
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
            for name, found in self._catalog.tool(tool.name):
                for own in own_tools(tool.name, name, found):
                    spec = ToolSpec(
                        name=own.name,
                        description=tool.description or own.description,
                        parameters=tool.parameters or own.parameters,
                        metadata={"source": "function", "original_name": own.name},
                    )
                    schema = own.schema if tool.parameters is None else tool.parameters
                    yield _Function(spec, own, None if schema is None else SchemaCheck(schema))


async def _run(own: OwnTool, positional: list[Any], named: dict[str, Any]) -> object:
    """What the function returns; a generator's items as a list.

    Its turn is over when the function is, though nobody may wait for its thread any more.
    """
    function = own.function
    if inspect.isasyncgenfunction(function):
        try:
            return [item async for item in function(*positional, **named)]
        finally:
            own.leave()
    if _is_async(function):
        try:
            return await function(*positional, **named)
        finally:
            own.leave()

    def work() -> object:
        value: object = None
        try:
            value = function(*positional, **named)
            return list(cast("Iterator[object]", value)) if inspect.isgenerator(value) else value
        finally:
            if not inspect.isawaitable(value):
                own.leave()

    value = await in_thread(work, f"devall-tool-{own.name}")
    if not inspect.isawaitable(value):
        return value
    # A sync wrapper around a coroutine function.
    try:
        return await value
    finally:
        own.leave()


def _is_async(function: Callable[..., Any]) -> bool:
    call = getattr(function, "__call__", None)  # noqa: B004 -- its kind is wanted
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def _place(function: Callable[..., Any]) -> str:
    code = getattr(inspect.unwrap(function), "__code__", None)
    return f"{code.co_filename}:{code.co_firstlineno}" if code else repr(function)
