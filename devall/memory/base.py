"""What a memory is, and what a store of memories is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from devall.core.messages import MediaPart


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing remembered."""

    text: str
    source: str = ""
    """Id of the node that wrote it, or the file that it stands in."""
    asked: str = ""
    """What the node had been asked."""
    at: float = 0
    """When it was written, in seconds since the epoch."""
    id: str = ""
    """Tells it from all others of its store: writing one that is there replaces it, so that a
    write that is repeated after a crash adds nothing. Empty: it is never the same as another."""
    media: tuple[MediaPart, ...] = ()
    """Images and other files that belong to it; attachments of the run that reads or writes."""


class MemoryStore(Protocol):
    """Memories under one name; shared by the nodes of a graph, and by runs where it is a file."""

    @property
    def name(self) -> str:
        """The store's name in the workflow."""
        ...

    async def open(self) -> None:
        """Get ready; a second time does nothing.

        Raises:
            SetupError: a file cannot be read, a key or an extra is missing.
        """
        ...

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:
        """At most `top_k` memories, the best first.

        Args:
            query: What the memories should bear on.
            top_k: The most that are given.
            threshold: The least cosine similarity, from -1 (off) to 1; stores that do not
                measure similarity take no notice of it.
        """
        ...

    async def write(self, memory: Memory) -> None:
        """Keep a memory; whoever retrieves after this returns can find it."""
        ...

    async def restore(self, memory: Memory) -> None:
        """Make sure that a memory is there which the journal says was written.

        A store that lives only as long as a run takes it in again; one that is durable has
        it already and does nothing.
        """
        ...

    async def aclose(self) -> None:
        """Let go of what `open` took."""
        ...
