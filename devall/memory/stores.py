"""From what a file says of its memory stores to the stores themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import assert_never

from devall.config.memory import (
    BlackboardStore,
    EmbeddingConfig,
    FileStore,
    Mem0Store,
    SimpleStore,
)
from devall.config.memory import MemoryStore as StoreConfig
from devall.memory.base import MemoryStore
from devall.memory.blackboard import Blackboard
from devall.memory.embedding import EmbeddingModel
from devall.memory.file import FileMemory
from devall.memory.media import RunFiles
from devall.memory.simple import SimpleMemory

Embedding = Callable[[EmbeddingConfig | None], EmbeddingModel]
"""Gives the model of an `embedding` block; None stands for a store without one.

Raises:
    SetupError: the provider is unknown, or a key or an extra is missing.
"""


def memory_store(
    config: StoreConfig,
    *,
    folder: Path,
    auto: Path,
    embedding: Embedding,
    files: RunFiles | None = None,
    environ: Mapping[str, str] | None = None,
    tell: Callable[[int, int, int], None] = lambda _done, _files, _passages: None,
) -> MemoryStore:
    """The store that the file describes, not yet open.

    Args:
        config: One entry of `graph.memory`.
        folder: Where relative paths begin: the working folder, as users expect of a command.
        auto: The folder of stores whose `memory_path` is `auto`; each has a file of its own
            name in it, which is there again in the next run.
        embedding: Makes the embedding models.
        files: The attachments of the run.
        environ: Where keys are found that the file does not give; None = there are none.
        tell: Takes how far a store of files is with reading: files that are done, files in all,
            passages.

    Raises:
        SetupError: an extra is missing, or the embedding model cannot be had.
    """

    def place(path: str | None) -> Path | None:
        if path == "auto":
            return auto / f"{_file_name(config.name)}.json"
        return folder / path if path else None

    match config:
        case BlackboardStore():
            block = config.config
            path = place(block.memory_path)
            return Blackboard(config.name, path, block.max_items, files=files)
        case SimpleStore():
            block = config.config
            path, model = place(block.memory_path), embedding(block.embedding)
            return SimpleMemory(config.name, path, model, files=files)
        case FileStore():
            block = config.config
            model = embedding(block.embedding)
            return FileMemory(
                config.name, block.file_sources, folder, model, place(block.index_path), tell
            )
        case Mem0Store():
            from devall.memory.mem0 import mem0_memory

            return mem0_memory(config.name, config.config, environ or {})
        case _:
            assert_never(config)


def _file_name(name: str) -> str:
    """The name with everything escaped that could lead out of a folder."""
    return "".join(c if c.isalnum() or c in "-_" else f"%{ord(c):x}" for c in name)
