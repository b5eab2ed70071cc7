"""Files found again by likeness."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devall.config.memory import FileSource
from devall.core.errors import SetupError
from devall.memory.base import Memory
from devall.memory.embedding import HashedNgrams
from devall.memory.file import PASSAGE, FileMemory, passages
from devall.memory.vectors import Vector


class Counted(HashedNgrams):
    """The fallback, and what it was given."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.texts += texts
        return await super().embed_texts(texts)


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "paris.md").write_text("Paris is the capital of France.")
    (tmp_path / "docs" / "deep" / "bread.txt").write_text("Bread needs flour and yeast.")
    (tmp_path / "docs" / "picture.png").write_bytes(b"\x89PNG\0\0\0capital of France")
    (tmp_path / "docs" / ".hidden.md").write_text("the capital of France is hidden")
    return tmp_path


def memory(folder: Path, model: HashedNgrams | None = None, **source: object) -> FileMemory:
    given_source = FileSource.model_validate({"path": "docs"} | source)
    return FileMemory("docs", [given_source], folder, model or HashedNgrams())


async def sources(store: FileMemory, query: str, top_k: int = 10) -> list[str]:
    return [m.source for m in await store.retrieve(query, top_k, -1)]


async def test_a_passage_is_found_with_its_file(docs: Path):
    [found] = await memory(docs).retrieve("capital of France", 1, -1)
    assert (found.text, found.source) == ("Paris is the capital of France.", "docs/paris.md")


async def test_binary_and_hidden_files_are_left_out(docs: Path):
    assert sorted(await sources(memory(docs), "capital")) == [
        "docs/deep/bread.txt",
        "docs/paris.md",
    ]


async def test_only_the_types_that_are_wanted_and_the_folder_alone(docs: Path):
    assert await sources(memory(docs, file_types=[".txt"]), "x") == ["docs/deep/bread.txt"]
    assert await sources(memory(docs, recursive=False), "x") == ["docs/paris.md"]
    assert await sources(memory(docs, path="docs/paris.md"), "x") == ["docs/paris.md"]


async def test_only_what_has_changed_is_read_again(docs: Path):
    model = Counted()
    store = memory(docs, model)
    await store.open()
    assert len(model.texts) == 2
    (docs / "docs" / "paris.md").write_text("Rome is the capital of Italy, and always was.")
    (docs / "docs" / "deep" / "bread.txt").unlink()
    assert await sources(store, "Rome") == ["docs/paris.md"]
    assert model.texts[2:] == ["Rome is the capital of Italy, and always was."]


async def test_an_index_saves_the_next_run_the_work(docs: Path):
    model = Counted()
    for _ in range(2):
        store = memory(docs, model)
        store.index = docs / "index" / "docs.json"
        await store.open()
        assert await sources(store, "capital of France", 1) == ["docs/paris.md"]
    assert len(model.texts) == 2


async def test_an_index_that_is_broken_or_of_another_model_is_made_anew(docs: Path):
    index = docs / "index.json"
    for content in ("{}", "no json", '{"version": 1, "model": "other", "files": {}}', "[]"):
        index.write_text(content)
        store = memory(docs)
        store.index = index
        await store.open()
        assert len(await sources(store, "x")) == 2


async def test_a_source_that_does_not_exist_is_named(docs: Path):
    with pytest.raises(SetupError, match="nowhere does not exist"):
        await memory(docs, path="nowhere").open()


async def test_an_encoding_that_does_not_exist_is_named(docs: Path):
    with pytest.raises(SetupError, match="cannot be read as utf-9"):
        await memory(docs, encoding="utf-9").open()


async def test_nothing_is_written(docs: Path):
    store = memory(docs)
    await store.write(Memory("new"))
    assert len(await sources(store, "new")) == 2


@given(st.text(alphabet="ab \n", max_size=6000))
def test_passages_hold_all_words_and_none_is_too_long(text: str):
    found = passages(text)
    assert all(0 < len(p) <= PASSAGE for p in found)
    assert set("".join(text.split())) == set("".join("".join(found).split()))
