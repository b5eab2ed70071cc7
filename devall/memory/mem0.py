"""Memories kept by the service mem0, through its client library (the extra `mem0`)."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from devall.config.memory import Mem0StoreConfig
from devall.core.errors import ModelError, ModelRefused, ModelUnavailable, SetupError
from devall.core.messages import JsonValue
from devall.memory.base import Memory

KEY_NAME = "MEM0_API_KEY"
"""The variable of the environment that holds the key."""


@dataclass(slots=True)
class _Connection:
    """The library's client, made at the first use and shared by the agents of a store."""

    client: Any = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(frozen=True, slots=True)
class Mem0Memory:
    """A store at mem0: it finds by meaning, and makes facts of what was said.

    What the user said is kept under `user_id`, without the agent's words, which are no facts
    about the user; what was said and answered is kept under `agent_id`. With neither of them
    each agent of the workflow has memories of its own.
    """

    name: str
    config: Mem0StoreConfig
    key: str = field(repr=False)
    agent: str = ""
    """The agent whose memories they are, where the file names no ids."""
    _connection: _Connection = field(default_factory=_Connection, repr=False)

    def of_agent(self, agent: str) -> Mem0Memory:
        """The store as one agent uses it."""
        return replace(self, agent=agent)

    async def open(self) -> None:
        """Connect, and check the key; a second time does nothing.

        Raises:
            SetupError: the key is refused, or belongs to another project.
            ModelError: the service cannot be reached.
        """
        async with self._connection.lock:
            if self._connection.client is None:
                # It asks the service whether the key is good, and blocks meanwhile.
                self._connection.client = await asyncio.to_thread(self._connected)

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:
        """The facts that bear on the query; nothing for a query without words.

        Raises:
            ModelError: the service refused, or stayed out of reach.
        """
        if not query.strip():
            return []
        least = {"threshold": threshold} if threshold >= 0 else {}
        options = {"filters": self._filters(), "top_k": top_k, **least}
        answer: JsonValue = await self._called("search", query, **options)
        if isinstance(answer, Mapping):
            found = cast(Mapping[str, JsonValue], answer)
            answer = found.get("results", found.get("memories"))
        entries = cast(list[JsonValue], answer) if isinstance(answer, list) else []
        facts = [cast(Mapping[str, JsonValue], e) for e in entries if isinstance(e, Mapping)]
        return [
            Memory(str(fact["memory"]), id=str(fact.get("id", "")))
            for fact in facts[:top_k]
            if fact.get("memory")
        ]

    async def write(self, memory: Memory) -> None:
        """Give the service what was said; its facts are found a little later.

        Raises:
            ModelError: the service refused, or stayed out of reach.
        """
        said = [{"role": "user", "content": memory.asked}] if memory.asked.strip() else []
        both = [*said, {"role": "assistant", "content": memory.text}]
        notes = {"source": memory.source, "devall_id": memory.id}
        if self.config.user_id and said:
            await self._called("add", said, user_id=self.config.user_id, metadata=notes)
        agent = self.config.agent_id or ("" if self.config.user_id else self.agent)
        if agent and memory.text.strip():
            await self._called("add", both, agent_id=agent, metadata=notes)

    async def restore(self, memory: Memory) -> None:
        """Nothing: the service has it."""

    async def aclose(self) -> None:
        """Close the connections."""
        client, self._connection.client = self._connection.client, None
        if client is not None:
            await client.async_client.aclose()

    def _filters(self) -> JsonValue:
        ids = {"user_id": self.config.user_id, "agent_id": self.config.agent_id}
        given = [{key: value} for key, value in ids.items() if value]
        if not given:
            return {"agent_id": self.agent}
        return given[0] if len(given) == 1 else {"OR": given}

    async def _called(self, method: str, *values: JsonValue, **options: JsonValue) -> JsonValue:
        await self.open()
        try:
            return await getattr(self._connection.client, method)(*values, **options)
        except _errors() as error:
            raise _translated(error) from error

    def _connected(self) -> Any:
        # Unless the user wants it: the library tells a third party of each use.
        os.environ.setdefault("MEM0_TELEMETRY", "False")
        library: Any = importlib.import_module("mem0")
        try:
            client = library.AsyncMemoryClient(api_key=self.key, host=self.config.base_url)
        except ValueError as error:
            raise SetupError(
                f"memory {self.name}: mem0 does not take the key: {error}",
                hint=f"check `api_key` of the store, or the variable {KEY_NAME}",
            ) from error
        except OSError as error:  # what `requests` raises
            raise ModelUnavailable(
                f"mem0 cannot be reached: {error}",
                provider="mem0",
                hint="check `base_url` of the store, and the network",
            ) from error
        for name in ("org_id", "project_id"):
            wanted, found = getattr(self.config, name), getattr(client, name, None)
            if wanted and found and wanted != found:
                raise SetupError(
                    f"memory {self.name}: the key belongs to {name} {found}, not to {wanted}",
                    hint=f"use the key of that project, or remove `{name}`",
                )
        return client


def mem0_memory(name: str, config: Mem0StoreConfig, environ: Mapping[str, str]) -> Mem0Memory:
    """The store, not yet connected.

    Raises:
        SetupError: the extra or the key is missing.
    """
    if importlib.util.find_spec("mem0") is None:
        raise SetupError(
            f"memory {name}: stores of type mem0 need the package mem0ai, which is not installed",
            hint="pip install devall[mem0]; stores of type `simple` and `blackboard` need nothing",
        )
    key = config.api_key or environ.get(KEY_NAME, "")
    if not key:
        raise SetupError(
            f"memory {name}: no key for mem0: the variable {KEY_NAME} is not set",
            hint=f"set {KEY_NAME} in the environment or in .env, or `api_key` of the store",
        )
    return Mem0Memory(name, config, key)


def _errors() -> tuple[type[Exception], ...]:
    library: Any = importlib.import_module("mem0.exceptions")
    return library.MemoryError, ValueError


def _translated(error: Exception) -> ModelError:
    """Our error for one of the library's."""
    debug: Mapping[str, Any] = getattr(error, "debug_info", {})
    status = debug.get("status_code")
    is_passing = status in {408, 429} or (isinstance(status, int) and status >= 500)
    is_network = status is None and not isinstance(error, ValueError)
    text = " ".join(str(error).split())[:400]
    if is_passing or is_network:
        wait = debug.get("retry_after")
        return ModelUnavailable(
            f"mem0 failed: {text}", provider="mem0", status=status, retry_after=wait
        )
    return ModelRefused(
        f"mem0 refused: {text}",
        provider="mem0",
        status=status,
        hint="check the key, and the ids of the store" if status in {401, 403, 404} else "",
    )
