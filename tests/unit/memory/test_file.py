"""Files found again by likeness."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from devall.config.memory import FileSource
from devall.core.errors import ModelUnavailable, SetupError
from devall.memory.base import Memory
from devall.memory.embedding import HashedNgrams
from devall.memory.file import FileMemory
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
        store.index = docs / "index" / "docs.db"
        await store.open()
        assert await sources(store, "capital of France", 1) == ["docs/paris.md"]
        await store.aclose()
    assert len(model.texts) == 2


def indexed(docs: Path, model: HashedNgrams | None = None, **options: Any) -> FileMemory:
    source = FileSource.model_validate({"path": "docs"})
    index = docs / "index" / "docs.db"
    return FileMemory("docs", [source], docs, model or HashedNgrams(), index, **options)


async def test_an_index_of_another_model_is_made_anew(docs: Path):
    async def names(model: HashedNgrams) -> list[str]:
        store = indexed(docs, model)
        found = await sources(store, "capital of France", 1)
        await store.aclose()
        return found

    class Renamed(Counted):
        name = "other"

    class Resized(Counted):
        dimensions = 64

    for kind in (Counted, Renamed, Renamed, Resized, Resized):
        model = kind()
        assert await names(model) == ["docs/paris.md"]
    assert model.texts == []
    first = Resized()
    assert await names(Renamed()) == await names(first) == ["docs/paris.md"]
    assert len(first.texts) == 2


async def test_vectors_of_two_sizes_never_meet(docs: Path):
    class Growing(HashedNgrams):
        name = "growing"

    model = Growing()
    store = indexed(docs, model)
    await store.open()
    model.dimensions = 64
    (docs / "docs" / "rome.md").write_text("Rome is the capital of Italy.")
    assert (await sources(store, "capital of Italy"))[0] == "docs/rome.md"
    assert len(await sources(store, "capital of Italy")) == 3


async def test_a_damaged_index_is_made_anew(docs: Path):
    store = indexed(docs)
    await store.open()
    await store.aclose()
    assert store.index is not None
    data = bytearray(store.index.read_bytes())
    data[1000:] = b"\x55" * (len(data) - 1000)
    store.index.write_bytes(data)
    assert len(await sources(indexed(docs), "x")) == 2


@pytest.mark.parametrize("content", [b"{}", b"no index", b"[]", b"SQLite format 3\0" + bytes(200)])
async def test_a_file_that_is_no_index_is_refused_and_left_alone(docs: Path, content: bytes):
    place = docs / "index" / "docs.db"
    place.parent.mkdir()
    place.write_bytes(content)
    with pytest.raises(SetupError, match=r"docs\.db is no index") as caught:
        await indexed(docs).open()
    assert "index_path" in caught.value.hint
    assert place.read_bytes() == content


async def test_an_index_of_the_earlier_form_and_an_empty_file_are_taken_over(docs: Path):
    place = docs / "index" / "docs.db"
    place.parent.mkdir()
    for content in (b"", b'{"version": 1, "model": "ngrams-1", "files": {}}'):
        place.write_bytes(content)
        store = indexed(docs)
        assert len(await sources(store, "x")) == 2
        await store.aclose()


async def test_a_file_that_was_only_touched_is_not_embedded_again(docs: Path):
    model = Counted()
    store = indexed(docs, model)
    await store.open()
    os.utime(docs / "docs" / "paris.md", (5, 5))
    assert len(await sources(store, "x")) == 2
    assert len(model.texts) == 2


async def test_of_a_changed_file_only_the_changed_passages_are_embedded(docs: Path):
    place = docs / "docs" / "paris.md"
    sections = [f"# Part {n}\n\nThis is about number {n}.\n" for n in range(5)]
    place.write_text("\n".join(sections))
    model = Counted()
    store = indexed(docs, model)
    await store.open()
    assert len(model.texts) == 6
    sections[3] = "# Part 3\n\nThis is about something else.\n"
    place.write_text("\n".join(sections))
    assert (await store.retrieve("something else", 1, -1))[0].text == sections[3].strip()
    assert model.texts[6:] == [sections[3].strip()]


async def test_reading_is_told_as_it_goes_on(docs: Path):
    for n in range(100):
        (docs / "docs" / f"{n:03}.md").write_text(f"# One\n\nnumber {n}\n\n# Two\n\nand {n}\n")
    told: list[tuple[int, int, int]] = []
    store = indexed(docs, tell=lambda *progress: told.append(progress))
    await store.open()
    assert len(told) >= 4
    assert told == sorted(told)
    assert told[-1] == (103, 103, 202)
    told.clear()
    await sources(store, "x")
    assert told == []


class Failing(HashedNgrams):
    """A model that is out of reach after some texts."""

    left = 100

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.left -= len(texts)
        if self.left < 0:
            raise ModelUnavailable("out of reach", provider="openai")
        return await super().embed_texts(texts)


async def test_what_was_read_before_a_failure_is_not_read_again(docs: Path):
    for n in range(100):
        (docs / "docs" / f"{n:03}.md").write_text(f"number {n}")
    with pytest.raises(ModelUnavailable):
        await indexed(docs, Failing()).open()
    model = Counted()
    store = indexed(docs, model)
    assert len(await sources(store, "x", 200)) == 102
    assert len(model.texts) == 102 - 64


READER = """
import asyncio, sys
from pathlib import Path
from devall.config.memory import FileSource
from devall.memory.embedding import HashedNgrams
from devall.memory.file import FileMemory

async def main(folder):
    source = FileSource.model_validate({"path": "docs"})
    store = FileMemory("docs", [source], folder, HashedNgrams(), folder / "index.db")
    found = await store.retrieve("number 7", 1000, -1)
    print(len(found), len({(m.source, m.text) for m in found}), found[0].source)

asyncio.run(main(Path(sys.argv[1])))
"""


def test_processes_that_share_an_index_see_each_passage_once(docs: Path, project: Path):
    for n in range(150):
        (docs / "docs" / f"{n}.md").write_text(f"number {n}")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", READER, docs],
            env=os.environ | {"PYTHONPATH": str(project)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(3)
    ]
    outputs = [process.communicate(timeout=30)[0].split() for process in running]
    assert outputs == [["152", "152", "docs/7.md"]] * 3


async def test_the_index_is_the_users_alone(docs: Path):
    store = indexed(docs)
    await store.open()
    assert store.index is not None
    assert store.index.stat().st_mode & 0o777 == 0o600


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


class Held(HashedNgrams):
    """A model whose first answer to a query waits."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.go_on = asyncio.Event()

    async def embed_query(self, text: str) -> Vector:
        if not self.asked.is_set():
            self.asked.set()
            await self.go_on.wait()
        return await super().embed_query(text)


async def test_a_query_that_waits_for_its_vector_holds_up_no_other(docs: Path):
    model = Held()
    store = memory(docs, model)
    await store.open()
    first = asyncio.create_task(sources(store, "capital of France", 1))
    await model.asked.wait()
    (docs / "docs" / "rome.md").write_text("Rome is the capital of Italy.")
    assert await sources(store, "capital of Italy", 1) == ["docs/rome.md"]
    assert not first.done()
    model.go_on.set()
    assert await first == ["docs/paris.md"]
    await store.aclose()


async def test_each_of_many_queries_at_once_sees_what_was_written_before_it(docs: Path):
    store = memory(docs)
    await store.open()
    for number in range(5):
        (docs / "docs" / f"{number}.md").write_text(f"Fact {number} about trains.")
        found = await asyncio.gather(
            *(sources(store, f"Fact {number} about trains.", 1) for _ in range(8))
        )
        assert found == [[f"docs/{number}.md"]] * 8
    await store.aclose()
