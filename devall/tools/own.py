"""Tools of a user's own: functions, classes of a tool's shape, their instances, and factories.

A class has the shape of a tool with `name`, `description`, `_run` or `_arun`, and perhaps
`args_schema`: a pydantic model, or a JSON Schema. A factory is a callable without arguments that
gives tools: its return annotation or the code of its `return` says so, or `()` is written behind
its name. Nothing else is ever called to see what it gives: it might be a tool and do its work.

Three attributes of a function, class or instance say how it may be called: `exclusive = True`
(never twice at once, whichever node or event loop calls), `time_limit` (seconds, where the
source of the workflow has no `timeout`) and `max_calls` (in one node's run).
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import BaseModel

from devall.core.errors import SetupError, ToolFailed
from devall.core.messages import JsonValue
from devall.tools.factories import is_factory, is_shaped
from devall.tools.signature import Signature, read_model, read_signature

LISTS = (list, tuple)


@dataclass(slots=True)
class OwnTool:
    """Something of a user's that can be called as a tool, by one node."""

    name: str
    description: str
    parameters: Mapping[str, JsonValue]
    function: Callable[..., Any]
    signature: Signature
    origin: object
    """What it was made of."""
    schema: Mapping[str, JsonValue] | None = None
    """A JSON Schema of its own, which has to be checked beside the signature."""
    turn: Turn | None = None
    """Taken while it runs, where it must not run twice at once."""
    time_limit: float | None = None
    """Seconds for one call."""
    max_calls: int | None = None
    calls: int = field(default=0, init=False)
    """How often the node has called it."""

    def count(self) -> int:
        """The number of the call that begins now, from 1.

        Raises:
            ToolFailed: it would be one more than `max_calls`.
        """
        if self.max_calls is not None and self.calls >= self.max_calls:
            raise ToolFailed(
                f"{self.name} may be called {self.max_calls} times, and was: do without it"
            )
        self.calls += 1
        return self.calls

    def leave(self) -> None:
        """Let the next call through, where one has to wait for another."""
        if self.turn is not None:
            self.turn.leave()


def own_tools(written: str, name: str, found: object) -> list[OwnTool]:
    """The tools that a name leads to.

    Args:
        written: As the workflow has it, for errors; with `()` at its end it names a factory.
        name: What a function is called as a tool.
        found: What is there.

    Raises:
        SetupError: nothing can be made of it.
    """
    return list(_tools(written, name, found, is_called=written.endswith("()")))


class Turn:
    """Lets one call at a time through, in the order of their coming, from any event loop."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._is_taken = False
        self._waiting: deque[Future[None]] = deque()

    async def take(self, tool: str, seconds: float | None) -> None:
        """Wait until it is one's turn.

        Raises:
            ToolFailed: the call before did not end in time; this one was not begun.
        """
        with self._guard:
            if not self._is_taken:
                self._is_taken = True
                return
            mine: Future[None] = Future()
            self._waiting.append(mine)
        try:
            async with asyncio.timeout(seconds):
                await asyncio.wrap_future(mine)
        except BaseException as error:
            if not mine.cancel() and not mine.cancelled():
                self.leave()  # it was one's turn in the same moment
            if isinstance(error, TimeoutError):
                raise ToolFailed(
                    f"{tool} is busy: an earlier call still runs, and it does one at a time;"
                    " this call was not begun"
                ) from error
            raise

    def leave(self) -> None:
        """Let the next one through; may be called from any thread."""
        with self._guard:
            while self._waiting:
                following = self._waiting.popleft()
                if following.set_running_or_notify_cancel():
                    following.set_result(None)
                    return
            self._is_taken = False


_turns: dict[int, Turn] = {}
"""By the id of a tool: an instance in a module is the same for all nodes and runs of a process."""
_turns_guard = threading.Lock()


def _turn_of(tool: object) -> Turn:
    key = id(tool)
    with _turns_guard:
        turn = _turns.get(key)
        if turn is None:
            turn = _turns[key] = Turn()
            with suppress(TypeError):  # what cannot be watched stays to the end of the process
                weakref.finalize(tool, _turns.pop, key, None)
        return turn


def _tools(written: str, name: str, found: object, *, is_called: bool) -> Iterator[OwnTool]:
    if isinstance(found, LISTS):
        for each in cast("Sequence[object]", found):
            yield from _tools(written, getattr(each, "__name__", name), each, is_called=False)
    elif inspect.isclass(found) and is_shaped(found):
        yield _shaped(written, _made(written, found))
    elif is_called or is_factory(found):
        made = _made(written, found)
        if made is found:
            raise SetupError(f"tool `{written}`: the factory gives itself")
        yield from _tools(written, getattr(made, "__name__", name), made, is_called=False)
    elif is_shaped(found):
        yield _shaped(written, found)
    elif callable(found):
        yield _function(name, found)
    else:
        raise SetupError(
            f"tool `{written}`: it is no function but {type(found).__name__}",
            hint="name a function, a class with `name`, `description` and `_run`, an instance of"
            " one, or a factory of these",
        )


def _made(written: str, found: object) -> object:
    """What a class or factory gives."""
    if not callable(found):
        raise SetupError(f"tool `{written}`: {type(found).__name__} cannot be called")
    try:
        made = found()
    # A user's code: it may raise anything.
    except (Exception, SystemExit) as error:
        raise SetupError(
            f"tool `{written}`: making it raised {type(error).__name__}: {error}",
            hint="a class or factory is called without arguments; name an instance where it needs"
            " some",
        ) from error
    if inspect.iscoroutine(made):
        made.close()
        raise SetupError(f"tool `{written}`: a factory must not be async")
    return made


def _function(name: str, found: Callable[..., Any]) -> OwnTool:
    signature = read_signature(found, name)
    tool = OwnTool(name, signature.description, signature.parameters, found, signature, found)
    return _with_traits(tool, name)


def _shaped(written: str, found: Any) -> OwnTool:
    name = getattr(found, "name", None)
    if not isinstance(name, str) or not name:
        raise SetupError(
            f"tool `{written}`: {type(found).__name__} has no `name`",
            hint="a tool's class has `name`, `description`, and `_run` or `_arun`",
        )
    run = _implementation(found)
    schema = getattr(found, "args_schema", None)
    if inspect.isclass(schema) and issubclass(schema, BaseModel):
        signature = read_model(schema, run, name)
    else:
        signature = read_signature(run, name)
    own = cast("Mapping[str, JsonValue]", schema) if isinstance(schema, Mapping) else None
    described = (
        getattr(found, "description", None) or inspect.getdoc(cast("object", type(found))) or ""
    )
    tool = OwnTool(
        name=name,
        description=str(described) or signature.description,
        parameters=signature.parameters if own is None else own,
        function=run,
        signature=signature,
        origin=found,
        schema=own,
    )
    return _with_traits(tool, written)


def _implementation(found: Any) -> Callable[..., Any]:
    """`_arun` or `_run`: what the class itself defines, rather than a base of it."""
    names = [name for name in ("_arun", "_run") if callable(getattr(found, name, None))]
    if getattr(found, "coroutine", found) is None and "_run" in names:
        names = ["_run"]  # a wrapped sync function, whose `_arun` would take a detour
    classes = type(found).__mro__

    def depth(name: str) -> int:
        owners = (i for i, each in enumerate(classes) if name in vars(each))
        return -1 if name in getattr(found, "__dict__", {}) else next(owners, len(classes))

    run: Callable[..., Any] = getattr(found, min(names, key=depth))
    config = inspect.signature(run).parameters.get("config")
    if config is not None and config.kind is config.KEYWORD_ONLY and config.default is config.empty:
        return functools.partial(run, config={})
    return run


def _with_traits(tool: OwnTool, written: str) -> OwnTool:
    """The tool with what its attributes say about its calls."""
    origin: Any = tool.origin
    limit = getattr(origin, "time_limit", None)
    if limit is not None:
        tool.time_limit = _number(limit, written, "time_limit", "seconds")
    bound = getattr(origin, "max_calls", None)
    if bound is not None:
        tool.max_calls = int(_number(bound, written, "max_calls", "a whole number"))
    if getattr(origin, "exclusive", False) is True:
        tool.turn = _turn_of(tool.origin)
    return tool


def _number(value: object, written: str, attribute: str, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
        raise SetupError(f"tool `{written}`: `{attribute}` is {value!r}; {what} above 0 are wanted")
    return value
