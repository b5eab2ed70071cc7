"""An agent's memories: put into its prompt where its stages say so, and written at its end."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from devall.config.agents import MemoryAttachment
from devall.core.messages import JsonValue
from devall.core.ports import Scope
from devall.memory.base import Memory, MemoryStore

Moment = Literal["answer", "thinking"]

STAGES: Mapping[Moment, frozenset[str]] = MappingProxyType(
    {
        "answer": frozenset({"pre_gen_thinking", "gen"}),
        "thinking": frozenset({"post_gen_thinking"}),
    }
)
"""Which of `retrieve_stage` put memories in before the answer, and before the thinking over it.

Nothing is thought before an answer yet, so `pre_gen_thinking` and `gen` are one. An attachment
that names no stage has `gen`: what is put in before the answer is still there when it is thought
over. The stage `finished` puts nothing in, since nothing is asked after it: memories are written
then, by every attachment with `write`.
"""


@dataclass(frozen=True, slots=True)
class Attached:
    """A store as one node is bound to it."""

    store: MemoryStore
    attachment: MemoryAttachment


@dataclass(frozen=True, slots=True)
class Recall:
    """The memories of one run of an agent, each reading and writing a step."""

    attached: Sequence[Attached]
    source: str
    """Id of the node that writes."""
    scope: Scope

    async def read(self, moment: Moment, query: str) -> str:
        """What the stores know for the query, as one text; empty where they know nothing."""
        lines: list[str] = []
        for position, bound in enumerate(self.attached):
            wanted = bound.attachment.retrieve_stage or ("gen",)
            if bound.attachment.read and not STAGES[moment].isdisjoint(wanted):
                lines += await self._retrieved(f"memory:{position}/{moment}", bound, query)
        return "\n".join(["From memory:", *lines]) if lines else ""

    async def write(self, asked: str, answer: str) -> None:
        """Keep the answer, with what it was given to, in every store that is written to."""
        if not answer.strip():
            return
        for position, bound in enumerate(self.attached):
            if bound.attachment.write:
                await self._written(f"memory:{position}/write", bound.store, asked, answer)

    async def _retrieved(self, step: str, bound: Attached, query: str) -> list[str]:
        store, attachment = bound.store, bound.attachment

        async def call() -> JsonValue:
            found = await store.retrieve(query, attachment.top_k, attachment.similarity_threshold)
            return [{"text": m.text, "source": m.source, "asked": m.asked} for m in found]

        request = {
            "store": store.name,
            "query": query,
            "top_k": attachment.top_k,
            "threshold": attachment.similarity_threshold,
        }
        return [_line(**known) for known in await self.scope.step("memory", step, request, call)]

    async def _written(self, step: str, store: MemoryStore, asked: str, answer: str) -> None:
        is_replayed = True

        async def call() -> JsonValue:
            nonlocal is_replayed
            is_replayed = False
            memory = Memory(answer, self.source, asked, time.time(), secrets.token_hex(8))
            await store.write(memory)
            return {"at": memory.at, "id": memory.id}

        request = {"store": store.name, "asked": asked, "answer": answer}
        value = await self.scope.step("memory", step, request, call)
        if is_replayed:
            await store.restore(Memory(answer, self.source, asked, value["at"], value["id"]))


def _line(text: str, source: str, asked: str) -> str:
    line = f"- [{source}] {text}" if source else f"- {text}"
    return f"{line}\n  (to: {asked})" if asked else line
