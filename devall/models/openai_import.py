"""`openai` without its 400 modules of answer types, which run when somebody asks for them.

Importing all of it is two fifths of the CPU time of a small run, and two thirds of that are
pydantic models and typed dicts of the API. We read its JSON ourselves and need none of them;
code of users that does gets them as ever, at their first use.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

_DEFERRED = frozenset(
    f"openai.types{rest}" for rest in ("", ".chat", ".responses", ".shared", ".shared_params")
)
_PATIENCE = 10.0
"""Seconds to wait for another thread that runs a body, before looking at what there is."""
_running = threading.RLock()


class _DeferredModule(ModuleType):
    """A package whose body runs when something is asked for that is not there yet."""

    def __getattr__(self, name: str) -> object:
        # Not for ever: the other thread may wait for a module that this one is importing.
        waited = _running.acquire(timeout=_PATIENCE)
        try:
            spec = self.__spec__
            if waited and spec is not None and isinstance(spec.loader, _DeferringLoader):
                spec.loader = spec.loader.inner  # first: the body may come back here
                spec.loader.exec_module(self)
        finally:
            if waited:
                _running.release()
        try:
            return self.__dict__[name]
        except KeyError:
            text = f"module {self.__name__!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=self) from None


class _DeferringLoader(Loader):
    """Makes the module, and leaves its body for later."""

    def __init__(self, inner: Loader) -> None:
        self.inner = inner

    def exec_module(self, module: ModuleType) -> None:
        module.__class__ = _DeferredModule


class _DeferringFinder(MetaPathFinder):
    """Finds the packages that are deferred."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if fullname not in _DEFERRED:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _DeferringLoader(spec.loader)
        return spec


@contextmanager
def answer_types_deferred() -> Generator[None]:
    """A block that imports `openai`; its types run later, unless they are there already."""
    finder = _DeferringFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


with answer_types_deferred():
    import openai
    from openai import (
        AsyncAzureOpenAI,
        AsyncOpenAI,
        AsyncStream,
        DefaultAsyncHttpxClient,
        OpenAIError,
    )

__all__ = [
    "AsyncAzureOpenAI",
    "AsyncOpenAI",
    "AsyncStream",
    "DefaultAsyncHttpxClient",
    "OpenAIError",
    "openai",
]
