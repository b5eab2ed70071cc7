"""An agent's memories: put into its prompt where its stages say so, and written at its end."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from devall.config.agents import MemoryAttachment
from devall.core.messages import JsonValue, MediaPart, Message, Part, TextPart
from devall.core.ports import Scope
from devall.memory.base import Memory, MemoryStore
from devall.memory.media import media_from_json, media_to_json

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
    run: str = ""
    """Id of the run: makes the ids of what it writes other than those of all other runs."""


@dataclass(frozen=True, slots=True)
class Recall:
    """The memories of one run of an agent, each reading and writing a step."""

    attached: Sequence[Attached]
    source: str
    """Id of the node that writes."""
    scope: Scope

    async def read(self, moment: Moment, query: str) -> str | tuple[Part, ...]:
        """What the stores know for the query, as one message; empty where they know nothing.

        Files of memories stand behind the text.
        """
        found: list[_Known] = []
        for position, bound in enumerate(self.attached):
            wanted = bound.attachment.retrieve_stage or ("gen",)
            if bound.attachment.read and not STAGES[moment].isdisjoint(wanted):
                found += await self._retrieved(f"memory:{position}/{moment}", bound, query)
        if not found:
            return ""
        text = "\n".join(["From memory:", *(known.line for known in found)])
        media = dict.fromkeys(part for known in found for part in known.media)
        return (TextPart(text), *media) if media else text

    async def write(self, asked: Message, answer: Message) -> None:
        """Keep the answer, with what it was given to, in every store that is written to.

        The files of both belong to it. An answer without text and files is none.
        """
        if not answer.text.strip() and not _media(answer):
            return
        media = tuple(dict.fromkeys((*_media(asked), *_media(answer))))
        kept = Memory(answer.text, self.source, asked.text, media=media)
        for position, bound in enumerate(self.attached):
            if bound.attachment.write:
                await self._written(f"memory:{position}/write", bound, kept)

    async def _retrieved(self, step: str, bound: Attached, query: str) -> list[_Known]:
        store, attachment = bound.store, bound.attachment

        async def call() -> JsonValue:
            found = await store.retrieve(query, attachment.top_k, attachment.similarity_threshold)
            return [
                {"text": m.text, "source": m.source, "asked": m.asked} | _with_media(m.media)
                for m in found
            ]

        request = {
            "store": store.name,
            "query": query,
            "top_k": attachment.top_k,
            "threshold": attachment.similarity_threshold,
        }
        return [_known(**found) for found in await self.scope.step("memory", step, request, call)]

    async def _written(self, step: str, bound: Attached, kept: Memory) -> None:
        store = bound.store
        is_replayed = True

        async def call() -> JsonValue:
            nonlocal is_replayed
            is_replayed = False
            # A crash between the store's write and the journal's repeats the write: with the
            # same id, so that the item is not there twice.
            place = f"{bound.run}\n{self.scope.path}/{step}"
            own = hashlib.sha256(place.encode()).hexdigest()[:16]
            memory = replace(kept, at=time.time(), id=own)
            await store.write(memory)
            return {"at": memory.at, "id": memory.id}

        request = {"store": store.name, "asked": kept.asked, "answer": kept.text}
        request |= _with_media(kept.media)
        value = await self.scope.step("memory", step, request, call)
        if is_replayed:
            await store.restore(replace(kept, at=value["at"], id=value["id"]))


@dataclass(frozen=True, slots=True)
class _Known:
    """What was found of one memory."""

    line: str
    media: tuple[MediaPart, ...] = ()


def _known(text: str, source: str, asked: str, media: JsonValue = None) -> _Known:
    parts = media_from_json(media)
    line = f"- [{source}] {text}" if source else f"- {text}"
    if asked:
        line += f"\n  (to: {asked})"
    names = ", ".join(part.name or part.attachment or part.url for part in parts)
    return _Known(f"{line}\n  (with: {names})" if names else line, parts)


def _media(message: Message) -> tuple[MediaPart, ...]:
    return tuple(part for part in message.parts if isinstance(part, MediaPart))


def _with_media(media: Sequence[MediaPart]) -> dict[str, JsonValue]:
    return {"media": media_to_json(media)} if media else {}
