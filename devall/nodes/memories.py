"""The memory stores of a run: made for its graphs, with the models that make their vectors."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Protocol, runtime_checkable

from devall.agents.embedding import Embedder, EndpointEmbedding
from devall.config.agents import RetryConfig
from devall.config.memory import (
    EmbeddingConfig,
    FileStore,
    Mem0Store,
    SimpleStore,
)
from devall.config.memory import MemoryStore as StoreConfig
from devall.core.errors import SetupError
from devall.core.events import EmbeddingFinished, MemoryIndexed, Sink, Warned
from devall.core.messages import JsonValue
from devall.graph.model import Plan
from devall.memory.base import MemoryStore
from devall.memory.embedding import EmbeddingModel, local_model
from devall.models.base import Embeddings, ModelChoice, ModelSource
from devall.models.prices import price_of
from devall.models.routes import WITHOUT_KEY
from devall.workspace import Workspace

DEFAULT_MODEL = "text-embedding-3-small"
"""The embedding model where a file names none."""

_PROVIDER = "openai"
"""The only one that embeddings are asked of: every endpoint that speaks its API."""
_WITHOUT_KEY = "or write `embedding: {provider: local}`, which needs no key"


@runtime_checkable
class EmbeddingSource(Protocol):
    """A source of models that has embedding models too."""

    def embeddings(self, choice: ModelChoice, params: Mapping[str, JsonValue]) -> Embedder:
        """The embedding model of that choice.

        Raises:
            SetupError: a key is missing, or the URL is none.
        """
        ...


@dataclass(slots=True)
class Memories:
    """Makes the stores of a run's graphs, each once, and owns them."""

    models: ModelSource
    """Where it is an `EmbeddingSource`, it gives the embedding models."""
    workspace: Workspace
    emit: Sink
    environment: Mapping[str, str] | None = field(default=None, repr=False)
    """Where keys are found; None = the environment of devall."""
    remembers: bool = True
    """False: stores are neither read nor written."""
    _stores: dict[int, dict[str, MemoryStore]] = field(
        default_factory=dict[int, dict[str, MemoryStore]], init=False
    )
    _has_warned: bool = field(default=False, init=False)

    def of(self, plan: Plan, agent: str) -> Mapping[str, MemoryStore]:
        """A graph's stores, shared by its nodes for the whole run, as one agent uses them.

        Raises:
            SetupError: a key or an extra is missing.
        """
        if not plan.graph.memory:
            return {}
        stores = self._stores.get(id(plan))
        if stores is None:
            stores = {config.name: self._store(config) for config in plan.graph.memory}
            self._stores[id(plan)] = stores
        return {name: _of_agent(store, agent) for name, store in stores.items()}

    async def aclose(self) -> None:
        """Close the stores."""
        async with AsyncExitStack() as stack:
            for stores in self._stores.values():
                for store in stores.values():
                    stack.push_async_callback(store.aclose)

    def _store(self, config: StoreConfig) -> MemoryStore:
        if not self.remembers:
            from devall.memory.forgotten import ForgottenStore

            return ForgottenStore(config.name)
        from devall.memory.stores import memory_store  # a small run's start would pay for it

        here = Path.cwd()

        return memory_store(
            config,
            folder=here,
            auto=here / "memory",
            embedding=lambda block: self._embedding(config.name, block),
            files=self.workspace,
            environ=os.environ if self.environment is None else self.environment,
            tell=self._teller(config.name),
        )

    def _teller(self, store: str) -> Callable[[int, int, int], None]:
        """Tells of files that are read: the first ones, the last ones, and once a second."""
        told = 0.0

        def tell(done: int, files: int, passages: int) -> None:
            nonlocal told
            now = time.monotonic()
            if done == files or now - told >= 1:
                told = now
                self.emit(MemoryIndexed(store=store, done=done, files=files, passages=passages))

        return tell

    def _embedding(self, store: str, config: EmbeddingConfig | None) -> EmbeddingModel:
        if config is not None and config.provider == "openai":
            if isinstance(self.models, EmbeddingSource):
                model = _embedder(self.models, store, config)
                batch, longest = config.count("batch_size", 64), config.count("max_length", 8191)
                tell = partial(self._tell_embedding, store, model.name)
                return EndpointEmbedding(model, batch, longest, RetryConfig(), tell=tell)
            self._warn("this source of models has no embedding models")
        model, warning = local_model()
        if warning:
            self._warn(warning)
        return model

    def _tell_embedding(
        self, store: str, model: str, texts: int, seconds: float, found: Embeddings
    ) -> None:
        usage = found.usage
        self.emit(
            EmbeddingFinished(
                store=store,
                provider=_PROVIDER,
                model=model,
                texts=texts,
                seconds=seconds,
                usage=usage,
                usd=None if usage is None else price_of(_PROVIDER, model, usage),
            )
        )

    def _warn(self, text: str) -> None:
        if not self._has_warned:
            self._has_warned = True
            self.emit(Warned(code="embedding_fallback", message=text))


def check_memories(plan: Plan, models: ModelSource, environ: Mapping[str, str]) -> None:
    """Make sure, before anything runs, that all that memory stores need can be had.

    Raises:
        SetupError: a key or an extra is missing, or a URL is none.
    """
    for config in plan.graph.memory:
        match config:
            case SimpleStore() | FileStore():
                block = config.config.embedding
                is_remote = block is not None and block.provider == "openai"
                if block is not None and is_remote and isinstance(models, EmbeddingSource):
                    _embedder(models, config.name, block)
            case Mem0Store():
                from devall.memory.mem0 import mem0_memory

                mem0_memory(config.name, config.config, environ)
            case _:
                pass
    for child in plan.subplans.values():
        check_memories(child, models, environ)


def _embedder(models: EmbeddingSource, store: str, config: EmbeddingConfig) -> Embedder:
    name = config.model or DEFAULT_MODEL
    seconds = config.count("timeout", 60)
    choice = ModelChoice(_PROVIDER, name, config.base_url, config.api_key, timeout=seconds)
    try:
        return models.embeddings(choice, config.sent)
    except SetupError as error:
        hint = error.hint.replace(WITHOUT_KEY, _WITHOUT_KEY)
        raise SetupError(f"memory {store}: {error}", hint=hint) from error


def _of_agent(store: MemoryStore, agent: str) -> MemoryStore:
    of_agent = getattr(store, "of_agent", None)
    return store if of_agent is None else of_agent(agent)
