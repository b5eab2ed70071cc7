"""A memory store for runs whose journal holds all that it ever gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from devall.memory.base import Memory


@dataclass(frozen=True, slots=True)
class ForgottenStore:
    """Stands for a store that must not be touched, as in a replay."""

    name: str

    async def open(self) -> None:
        """Nothing to get ready."""

    async def retrieve(self, query: str, top_k: int, threshold: float) -> Sequence[Memory]:  # noqa: ARG002 - the port's
        """Nothing."""
        return ()

    async def write(self, memory: Memory) -> None:
        """Keep nothing."""

    async def restore(self, memory: Memory) -> None:
        """Keep nothing."""

    async def aclose(self) -> None:
        """Nothing to let go of."""
