"""Items found again by likeness."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from pathlib import Path

import pytest

from devall.core.messages import MediaPart
from devall.memory.base import Memory
from devall.memory.embedding import HashedNgrams
from devall.memory.simple import SimpleMemory
from devall.memory.vectors import Vector, likeness, unit
from devall.workspace import Workspace

FACTS = {
    "paris": "Paris is the capital of France.",
    "bread": "Bread needs flour, water, salt and yeast.",
    "moon": "The moon goes round the earth in a month.",
}


class Spelled:
    """An embedding of another size: which letters a text holds."""

    name = "letters"
    calls = 0

    async def embed_query(self, text: str) -> Vector:
        return unit(array("f", (float(letter in text.lower()) for letter in "abcdefgh")))

    async def embed_texts(self, texts: Sequence[str]) -> Sequence[Vector]:
        self.calls += len(texts)
        return [await self.embed_query(text) for text in texts]


async def filled(path: Path | None = None) -> SimpleMemory:
    store = SimpleMemory("facts", path, HashedNgrams())
    for key, text in FACTS.items():
        await store.write(Memory(text, "A", id=key))
    return store


async def test_the_item_most_like_the_query_comes_first():
    store = await filled()
    for query, key in [
        ("What is the capital of France?", "paris"),
        ("how do I bake bread with yeast", "bread"),
        ("how long does the moon need", "moon"),
    ]:
        assert [m.id for m in await store.retrieve(query, 1, -1)] == [key]


async def test_no_more_than_top_k_and_nothing_below_the_threshold():
    store = await filled()
    assert len(await store.retrieve("the capital of France", 2, -1)) == 2
    assert [m.id for m in await store.retrieve("the capital of France", 3, 0.4)] == ["paris"]
    assert await store.retrieve("zzzz", 3, 0.4) == []


async def test_an_empty_store_gives_nothing():
    assert await SimpleMemory("facts", None, HashedNgrams()).retrieve("x", 3, -1) == []


async def test_an_item_is_found_by_what_was_asked():
    store = await filled()
    await store.write(Memory("It is 42.", "A", asked="What is the airspeed of a swallow?", id="s"))
    [found] = await store.retrieve("airspeed swallow", 1, -1)
    assert (found.text, found.asked) == ("It is 42.", "What is the airspeed of a swallow?")


async def test_the_next_run_finds_what_this_one_wrote(tmp_path: Path):
    await filled(tmp_path / "facts.json")
    store = SimpleMemory("facts", tmp_path / "facts.json", HashedNgrams())
    await store.open()
    assert [m.id for m in await store.retrieve("capital of France", 1, -1)] == ["paris"]


async def test_vectors_of_another_model_are_made_anew_and_never_compared(tmp_path: Path):
    await filled(tmp_path / "facts.json")
    model = Spelled()
    store = SimpleMemory("facts", tmp_path / "facts.json", model)
    assert len(await store.retrieve("cab", 3, -1)) == 3
    await store.retrieve("face", 3, -1)
    assert model.calls == 3
    await store.write(Memory("a cab", id="cab"))
    assert [m.id for m in await store.retrieve("a cab", 1, -1)] == ["cab"]
    records = json.loads((tmp_path / "facts.json").read_text())["records"]
    assert {(r["model"], r["dimensions"]) for r in records} == {("ngrams-1", 512), ("letters", 8)}


async def test_restoring_is_for_a_store_of_this_run_alone(tmp_path: Path):
    durable = await filled(tmp_path / "facts.json")
    await durable.restore(Memory("more", id="more"))
    assert len(await durable.retrieve("x", 10, -1)) == 3
    here = await filled()
    await here.restore(Memory("more", id="more"))
    assert len(await here.retrieve("x", 10, -1)) == 4


@pytest.mark.parametrize("text", ["", "   ", "a", "日本語", "\ud800 half", "word " * 5000])
async def test_any_text_has_a_vector_of_length_one_or_none(text: str):
    vector = await HashedNgrams().embed_query(text)
    assert len(vector) == HashedNgrams.dimensions
    assert likeness(vector, vector) == pytest.approx(1 if text.strip() else 0, abs=1e-4)


class Resized(HashedNgrams):
    """A model that was set to another size, under the same name."""

    dimensions = 64


async def test_vectors_of_another_size_are_made_anew(tmp_path: Path):
    await filled(tmp_path / "facts.json")
    store = SimpleMemory("facts", tmp_path / "facts.json", Resized())
    assert [m.id for m in await store.retrieve("capital of France", 1, -1)] == ["paris"]


@pytest.mark.parametrize("vector", ["", "no base64!", "AAA=", "AAAA", 5, None, [1, 2]])
async def test_a_vector_that_is_none_is_made_anew(tmp_path: Path, vector: object):
    path = tmp_path / "facts.json"
    await filled(path)
    data = json.loads(path.read_text())
    for record in data["records"]:
        record["vector"] = vector
    path.write_text(json.dumps(data))
    store = SimpleMemory("facts", path, HashedNgrams())
    assert [m.id for m in await store.retrieve("capital of France", 1, -1)] == ["paris"]


async def test_a_write_that_is_repeated_adds_nothing(tmp_path: Path):
    for path in (None, tmp_path / "facts.json"):
        store = await filled(path)
        await store.write(Memory("Rome is the capital of Italy.", "A", id="paris"))
        found = await store.retrieve("capital", 10, -1)
        assert sorted(m.id for m in found) == ["bread", "moon", "paris"]
        assert found[0].text == "Rome is the capital of Italy."


async def test_a_query_without_words_gives_the_newest():
    store = await filled()
    assert [m.id for m in await store.retrieve(" ", 2, -1)] == ["moon", "bread"]
    assert await store.retrieve(" ", 2, 0.1) == []


async def test_an_items_files_are_there_in_another_run(tmp_path: Path):
    first, second = (Workspace(tmp_path / name) for name in ("one", "two"))
    path = tmp_path / "mem" / "facts.json"
    part = first.save_attachment(b"not really a picture", "image/png", "moon.png")
    linked = MediaPart("image", "image/png", url="https://example.org/a.png")
    store = SimpleMemory("facts", path, HashedNgrams(), files=first)
    await store.write(Memory("", "A", id="x", media=(part, linked)))
    (tmp_path / "one" / "attachments" / part.attachment).unlink()
    [found] = await SimpleMemory("facts", path, HashedNgrams(), files=second).retrieve(
        "the picture moon.png", 1, 0.3
    )
    assert found.media == (part, linked)
    assert second.read_attachment(part.attachment) == b"not really a picture"


async def test_a_file_that_is_gone_takes_nothing_else_with_it(tmp_path: Path):
    here = Workspace(tmp_path / "run")
    path = tmp_path / "facts.json"
    part = here.save_attachment(b"x", "image/png", "moon.png")
    store = SimpleMemory("facts", path, HashedNgrams(), files=here)
    await store.write(Memory("The moon.", "A", id="x", media=(part,)))
    (tmp_path / "facts.json.files" / part.attachment).unlink()
    [found] = await store.retrieve("moon", 1, -1)
    assert (found.text, found.media) == ("The moon.", ())


async def test_no_file_outside_of_the_stores_folder_is_read(tmp_path: Path):
    here = Workspace(tmp_path / "run")
    (tmp_path / "secret.png").write_bytes(b"secret")
    media = {"type": "image", "mime_type": "image/png", "url": "", "name": ""}
    record = {"text": "moon", "media": [media | {"attachment": "../secret.png"}]}
    path = tmp_path / "facts.json"
    path.write_text(json.dumps({"version": 1, "records": [record]}))
    [found] = await SimpleMemory("facts", path, HashedNgrams(), files=here).retrieve("moon", 1, -1)
    assert found.media == ()
