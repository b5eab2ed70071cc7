"""From the file's words to stores."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import TypeAdapter

from devall.config.memory import EmbeddingConfig
from devall.config.memory import MemoryStore as StoreConfig
from devall.memory.base import Memory, MemoryStore
from devall.memory.embedding import EmbeddingModel, HashedNgrams, local_model
from devall.memory.stores import memory_store

ADAPTER = TypeAdapter[StoreConfig](StoreConfig)


def made(folder: Path, written: dict[str, object]) -> MemoryStore:
    def embedding(config: EmbeddingConfig | None) -> EmbeddingModel:
        assert config is None or config.provider == "local"
        return HashedNgrams()

    config = ADAPTER.validate_python(written)
    return memory_store(config, folder=folder, auto=folder / "auto", embedding=embedding)


@pytest.mark.parametrize("kind", ["blackboard", "simple"])
@pytest.mark.parametrize(
    ("path", "place"), [("mem/b.json", "mem/b.json"), ("auto", "auto/my%2fboard.json")]
)
async def test_a_relative_path_begins_at_the_folder_and_auto_has_its_own(
    tmp_path: Path, kind: str, path: str, place: str
):
    written = {"name": "my/board", "type": kind, "config": {"memory_path": path}}
    await made(tmp_path, written).write(Memory("x"))
    assert (tmp_path / place).is_file()


async def test_without_a_path_nothing_is_left_behind(tmp_path: Path):
    store = made(tmp_path, {"name": "b", "type": "blackboard"})
    await store.write(Memory("x"))
    assert [m.text for m in await store.retrieve("", 1, -1)] == ["x"]
    assert not list(tmp_path.iterdir())


async def test_files_are_found_from_the_folder(tmp_path: Path):
    (tmp_path / "notes.md").write_text("a note")
    config = {"file_sources": {"path": "notes.md"}, "embedding": {"provider": "local"}}
    store = made(tmp_path, {"name": "n", "type": "file", "config": config})
    assert [m.source for m in await store.retrieve("note", 1, -1)] == ["notes.md"]


def test_there_is_always_a_local_model_and_the_fallback_says_so():
    model, warning = local_model()
    assert isinstance(model, HashedNgrams) == bool(warning)
