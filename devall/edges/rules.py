"""The rule of one edge: its condition, then its processing."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, assert_never

from devall.config.edges import (
    Always,
    ExpressionCondition,
    FunctionCondition,
    FunctionProcess,
    KeywordCondition,
    RegexExtract,
)
from devall.core.errors import FunctionError
from devall.core.messages import Message
from devall.edges.conditions import Test, expression_test, keyword_test
from devall.edges.transforms import Transform, regex_extract
from devall.engine.context import EdgeRule
from devall.graph.model import PlanEdge


class EdgeFunctions(Protocol):
    """Where the functions of edges come from."""

    def edge(self, name: str, /) -> Callable[..., Any]:
        """A function of `functions/edge/`."""
        ...

    def edge_processor(self, name: str, /) -> Callable[..., Any]:
        """A function of `functions/edge_processor/`."""
        ...


CONTEXT = "_context"
"""The parameter by which a function asks for more than the text."""


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A user's function of a text; a plain one runs in a thread."""

    kind: str
    name: str
    where: str
    """The edge and its place in the file."""
    function: Callable[..., Any]

    context: Callable[[], dict[str, Any]] | None = None
    """What it is given beside the text, made anew for each call; None = nothing."""

    async def __call__(self, text: str) -> Any:
        """What the function returns.

        Raises:
            FunctionError: it raised.
        """
        more = {} if self.context is None else {CONTEXT: self.context()}
        try:
            if inspect.iscoroutinefunction(self.function):
                return await self.function(text, **more)
            return await asyncio.to_thread(self.function, text, **more)
        except Exception as error:
            raise FunctionError(self.kind, self.name, self.where, error) from error


@dataclass(frozen=True, slots=True)
class Rule:
    """A condition and a processing; None: always, unchanged."""

    test: Test | UserFunction | None
    transform: Transform | UserFunction | None
    immediate: bool = True

    async def __call__(self, message: Message) -> Message | None:
        """The message as it goes along the edge; None: the edge does not fire."""
        test, transform = self.test, self.transform
        if test is not None:
            verdict = test(message.text)
            if not (verdict if isinstance(verdict, bool) else await verdict):
                return None
        if transform is None:
            return message
        text = (
            await transform(message.text)
            if isinstance(transform, UserFunction)
            else transform(message.text)
        )
        return None if text is None else message.with_text(str(text))


def rule_of(
    edge: PlanEdge,
    place: str,
    functions: EdgeFunctions,
    context: Callable[[], dict[str, Any]] = dict,
) -> EdgeRule | None:
    """The rule of an edge; None: it always fires and changes nothing.

    Args:
        edge: The edge.
        place: `file:line:column`, for errors.
        functions: Where user functions come from.
        context: What a function gets that has a parameter `_context`.

    Raises:
        SetupError: a function cannot be found or loaded.
    """
    test: Test | UserFunction | None
    match edge.config.condition:
        case Always(value=value):
            test = None if value else _never
        case KeywordCondition(config=config):
            test = keyword_test(config)
        case ExpressionCondition(config=config):
            test = expression_test(config, _where(edge, place))
        case FunctionCondition(config=config):
            function = functions.edge(config.name)
            test = _user_function("condition", config.name, _where(edge, place), function, context)
        case _:
            assert_never(edge.config.condition)
    transform: Transform | UserFunction | None
    match edge.config.process:
        case None:
            transform = None
        case RegexExtract(config=config):
            transform = regex_extract(config)
        case FunctionProcess(config=config):
            function = functions.edge_processor(config.name)
            where = _where(edge, place)
            transform = _user_function("processor", config.name, where, function, context)
        case _:
            assert_never(edge.config.process)
    if test is None and transform is None:
        return None
    return Rule(
        test, transform, not any(isinstance(each, UserFunction) for each in (test, transform))
    )


def _where(edge: PlanEdge, place: str) -> str:
    return f"edge {edge.name} ({place})"


def _user_function(
    kind: str,
    name: str,
    where: str,
    function: Callable[..., Any],
    context: Callable[[], dict[str, Any]],
) -> UserFunction:
    try:
        takes_context = CONTEXT in inspect.signature(function).parameters
    except (TypeError, ValueError):  # written in C
        takes_context = False
    return UserFunction(kind, name, where, function, context if takes_context else None)


def _never(_: str) -> bool:
    return False
