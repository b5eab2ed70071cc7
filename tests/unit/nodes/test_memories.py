"""Memory stores in whole runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import devall
from devall.core.errors import JournalError, SetupError
from devall.core.events import EmbeddingFinished, MemoryIndexed, Warned
from devall.journal.base import StepRecord
from devall.journal.memory import MemoryJournal
from devall.testing.chat_server import ChatServer
from devall.testing.recorder import Recorder
from devall.testing.scripted_model import ScriptedModels


def workflow(folder: Path, memory: Any, *nodes: Any, edges: Any = (), **agent: Any) -> Path:
    config = {"provider": "openai", "name": "m", "memories": [{"name": "facts"}]} | agent
    listed = [{"id": "A", "type": "agent", "config": config}, *nodes]
    graph = {"start": "A", "memory": [memory], "nodes": listed, "edges": list(edges)}
    file = folder / "flow.yaml"
    file.write_text(json.dumps({"version": "0.4.0", "graph": graph}))
    return file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder, without keys in the environment."""
    monkeypatch.chdir(tmp_path)
    for name in ("API_KEY", "BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "MEM0_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def simple(**embedding: Any) -> Any:
    config = {"memory_path": "mem/facts.json", "embedding": embedding}
    return {"name": "facts", "type": "simple", "config": config}


async def test_memories_are_found_by_the_vectors_of_an_endpoint(
    here: Path, monkeypatch: pytest.MonkeyPatch
):
    script = {"m": ["It is 42.", "Bread needs yeast.", "done"]}
    file = workflow(here, simple(model="e", params={"dimensions": 256}), edges=())
    async with ChatServer(script) as server:
        for name, value in server.env.items():
            monkeypatch.setenv(name, value)
        for task in ("airspeed of a swallow?", "how is bread made?", "the swallow's airspeed?"):
            result = await devall.run(file, task=task)
            assert result.status == "completed"
        asked = server.calls["m"][2]["messages"][0]["content"]
        assert asked.startswith("From memory:\n- [A] It is 42.\n  (to: airspeed of a swallow?)")
        assert {r.path for r in server.requests} == {"/v1/chat/completions", "/v1/embeddings"}
    records = json.loads((here / "mem" / "facts.json").read_text())["records"]
    assert [(r["model"], r["dimensions"]) for r in records] == [("e", 256)] * 3


async def test_tokens_of_embeddings_are_in_the_totals(here: Path):
    recorder = Recorder()
    async with ChatServer({"m": ["It is 42."]}) as server:
        own = simple(base_url=server.url, api_key="k", model="text-embedding-3-small")
        file = workflow(here, own, base_url=server.url, api_key="k")
        result = await devall.run(file, task="what is it?", on_event=recorder)
    made = recorder.of(EmbeddingFinished)
    assert made
    assert {(each.store, each.model) for each in made} == {("facts", "text-embedding-3-small")}
    tokens = sum(each.usage.input_tokens for each in made if each.usage)
    assert tokens > 0
    of_agent, of_vectors = (result.usage_by_model[m] for m in ("m", "text-embedding-3-small"))
    assert of_vectors.input_tokens == tokens
    assert of_vectors.model_calls == 0
    assert result.usage.input_tokens == of_agent.input_tokens + tokens
    assert result.usage.usd is not None
    assert 0 < result.usage.usd == sum(each.usd or 0 for each in made)


async def test_the_embedding_may_have_an_endpoint_and_a_key_of_its_own(here: Path):
    async with ChatServer({"m": ["ok"]}) as chat, ChatServer() as other:
        own = simple(base_url=other.url, api_key="own-key")
        file = workflow(here, own, base_url=chat.url, api_key="chat-key")
        assert (await devall.run(file, task="x")).status == "completed"
        assert {r.path for r in chat.requests} == {"/v1/chat/completions"}
        assert {r.model for r in other.requests} == {"text-embedding-3-small"}
        assert other.requests[0].headers["authorization"] == "Bearer own-key"


@pytest.mark.parametrize("key", [None, "${NO_SUCH_KEY}"])
async def test_a_key_that_is_missing_ends_it_before_anything_runs(here: Path, key: str | None):
    async with ChatServer() as server:
        file = workflow(here, simple(api_key=key), base_url=server.url)
        with pytest.raises(SetupError) as caught:
            await devall.run(file, task="x", logs_dir=here / "logs")
        assert server.requests == []
    assert caught.value.exit_code == 4
    assert "memory facts" in str(caught.value)
    assert "text-embedding-3-small" in str(caught.value)
    assert "provider: local" in caught.value.hint
    assert not (here / "logs").exists()


async def test_the_stores_of_subgraphs_are_looked_at_as_well(here: Path):
    inner = {
        "start": "B",
        "memory": [simple()],
        "nodes": [{"id": "B", "type": "literal", "config": {"content": "x"}}],
        "edges": [],
    }
    sub = {"id": "S", "type": "subgraph", "config": {"type": "config", "config": inner}}
    board = {"name": "facts", "type": "blackboard"}
    async with ChatServer() as server:
        file = workflow(here, board, sub, base_url=server.url)
        with pytest.raises(SetupError, match="no key for provider openai"):
            await devall.run(file, task="x")


async def test_a_source_without_embedding_models_falls_back_with_a_warning(here: Path):
    recorder = Recorder()
    source = ScriptedModels({"m": ["ok"]})
    file = workflow(here, simple())
    result = await devall.run(file, task="x", model_source=source, on_event=recorder)
    assert result.status == "completed"
    assert {w.code for w in recorder.of(Warned)} == {"embedding_fallback"}


async def test_what_was_remembered_stays_where_the_run_fails_later(here: Path):
    after = {"id": "B", "type": "agent", "config": {"provider": "openai", "name": "n"}}
    board = {"name": "facts", "type": "blackboard", "config": {"memory_path": "board.json"}}
    source = ScriptedModels({"m": ["It is 42."], "n": [{"status": 401}]})
    file = workflow(here, board, after, edges=[{"from": "A", "to": "B"}])
    result = await devall.run(file, task="x", model_source=source)
    assert result.status == "failed"
    [record] = json.loads((here / "board.json").read_text())["records"]
    assert record["text"] == "It is 42."


class Broken(MemoryJournal):
    """A journal that cannot keep what was written to a memory, the first time."""

    left = 1

    async def append(self, record: StepRecord) -> None:
        if record.key.endswith("/write") and self.left:
            self.left -= 1
            raise JournalError("devall.db", "the disk is full")
        await super().append(record)


@pytest.mark.parametrize("kind", ["simple", "blackboard"])
async def test_a_crash_between_memory_and_journal_leaves_no_item_twice(here: Path, kind: str):
    config = {"memory_path": "mem.json"}
    file = workflow(here, {"name": "facts", "type": kind, "config": config})
    journal = Broken()
    source = ScriptedModels({"m": ["It is 42."]}, strict=True)
    statuses = [
        (await devall.run(file, run_id="r", journal=journal, model_source=source)).status
        for _ in range(2)
    ]
    assert statuses == ["failed", "completed"]
    [record] = json.loads((here / "mem.json").read_text())["records"]
    assert record["text"] == "It is 42."


async def test_two_runs_at_once_keep_each_others_items(here: Path):
    import asyncio

    config = {"memory_path": "mem.json"}
    file = workflow(here, {"name": "facts", "type": "simple", "config": config})
    source = ScriptedModels({"m": [f"answer {n}" for n in range(6)]})
    runs = [devall.run(file, task=f"task {n}", model_source=source) for n in range(6)]
    assert {r.status for r in await asyncio.gather(*runs)} == {"completed"}
    records = json.loads((here / "mem.json").read_text())["records"]
    assert sorted(r["text"] for r in records) == [f"answer {n}" for n in range(6)]
    assert len({r["id"] for r in records}) == 6


async def test_stores_with_different_names_do_not_mix(here: Path):
    stores = [{"name": n, "type": "blackboard"} for n in ("facts", "other")]
    source = ScriptedModels({"m": ["one", "two"]})
    second = {"provider": "openai", "name": "m", "memories": [{"name": "other"}]}
    file = workflow(
        here,
        stores[0],
        {"id": "B", "type": "agent", "config": second},
        edges=[{"from": "A", "to": "B"}],
    )
    text = json.loads(file.read_text())
    text["graph"]["memory"] = stores
    file.write_text(json.dumps(text))
    await devall.run(file, task="x", model_source=source)
    assert [len(r.messages) for r in source.requests["m"]] == [1, 1]


async def test_reading_files_is_told_as_it_goes_on(here: Path):
    (here / "docs").mkdir()
    for n in range(70):
        (here / "docs" / f"{n}.md").write_text(f"Number {n} of the notes.")
    recorder = Recorder()
    config = {"file_sources": {"path": "docs"}, "index_path": "notes.db"}
    source = ScriptedModels({"m": ["ok"] * 2})
    file = workflow(here, {"name": "facts", "type": "file", "config": config})
    for _ in range(2):
        await devall.run(file, task="number 7", model_source=source, on_event=recorder)
    told = [(e.store, e.done, e.files) for e in recorder.of(MemoryIndexed)]
    assert told[-1] == ("facts", 70, 70)
    assert len(told) == 2
    assert "Number 7 of the notes." in source.requests["m"][1].messages[0].text


async def test_mem0_without_its_extra_or_key_ends_it_before_anything_runs(here: Path):
    file = workflow(here, {"name": "facts", "type": "mem0"})
    with pytest.raises(SetupError, match="mem0"):
        await devall.run(file, task="x", model_source=ScriptedModels({"m": ["ok"]}))
