"""The journal's file: what is kept of steps, who may write, and what the file looks like."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import stat
import time
from contextlib import closing

import pytest

from devall.core.errors import RunError, RunTakenOver, SetupError, UsageError
from devall.journal.memory import MemoryJournal
from devall.journal.owner import LEASE, Owner, this_process
from devall.journal.payloads import LARGE
from devall.journal.reader import FILE_NAME, Reader
from devall.journal.schema import MIGRATIONS, VERSION
from devall.journal.sqlite import SqliteStore, shared_store

from .conftest import new_run, plain, record, wanted


async def test_what_one_process_did_the_next_one_finds(begin, take_over):
    first = await begin()
    await first.append(record("/A@1/turn:1", {"text": "hello"}, {"q": 1}))
    second = await take_over()
    found = await second.find(wanted("/A@1/turn:1", {"q": 1}))
    assert found is not None
    assert (found.value, found.state, found.epoch) == ({"text": "hello"}, "done", 1)
    assert await second.find(wanted("/A@1/turn:1", {"q": 2})) is None
    assert await second.find(wanted("/A@2/turn:1", {"q": 1})) is None
    assert second.kept == 1


async def test_a_step_that_was_begun_is_known_as_such(begin, take_over):
    first = await begin()
    await first.begin(wanted("/A@1/turn:1/tool:c", kind="tool"))
    second = await take_over()
    found = await second.find(wanted("/A@1/turn:1/tool:c", kind="tool"))
    assert found is not None
    assert (found.state, found.value) == ("begun", None)


async def test_steps_of_changed_nodes_and_those_that_are_wanted_again_do_not_count(
    begin, take_over
):
    first = await begin()
    for node in "AB":
        await first.append(record(f"/{node}@1/turn:1", node))
    second = await take_over(A="2")
    assert second.changed == ("A",)
    assert second.cuts == {"A": 2}
    assert await second.find(wanted("/A@1/turn:1", since=2)) is None
    assert await second.find(wanted("/A@1/turn:1")) is not None, "whether is the engine's matter"
    await second.append(record("/A@1/turn:1", "anew"))
    third = await take_over(A="2", again=["B"])
    assert third.changed == ("B",)
    assert third.cuts == {"A": 2, "B": 3}
    found = await third.find(wanted("/A@1/turn:1", since=2))
    assert found is not None
    assert found.value == "anew"


@pytest.mark.parametrize("size", [10, 300, LARGE - 10, LARGE + 10, 3 * LARGE])
@pytest.mark.parametrize("text", ["x", "é", "\ud83d"])
async def test_values_of_any_size_come_back(begin, take_over, tmp_path, size, text):
    value = {"content": text * size, "more": [text * size, 1]}
    first = await begin()
    await first.append(record("/A@1/turn:1", value, {"content": text * size}))
    second = await take_over()
    found = await second.find(wanted("/A@1/turn:1", {"content": text * size}))
    assert found is not None
    assert found.value == value
    with Reader(tmp_path) as reader:
        (step,) = reader.steps(reader.run("r"))
        assert (step.value, step.request) == (value, {"content": text * size})
    folder = tmp_path / "r/pieces"
    written = [place.stat() for place in folder.iterdir()] if folder.exists() else []
    assert len(written) == (size > LARGE or (len(repr(text)) > 5 and size * 6 > LARGE))
    await second.aclose()


async def test_keys_may_hold_whatever_a_model_calls_its_calls(begin, take_over):
    keys = ["/A@1/turn:1/tool:%2F", "/A@1/turn:1/tool:é😀", "/A@1/turn:1/tool:\0'\""]
    first = await begin()
    for key in keys:
        await first.append(record(key, key.encode("utf-8", "replace").decode(), kind="tool"))
    second = await take_over()
    for key in keys:
        assert await second.find(wanted(key, kind="tool")) is not None


async def test_a_piece_that_is_lost_is_named_and_so_is_the_way_out(begin, take_over, tmp_path):
    first = await begin()
    await first.append(record("/A@1/turn:1", "x" * (2 * LARGE)))
    (piece,) = (tmp_path / "r/pieces").iterdir()
    second = await take_over()
    for damage in (lambda: piece.write_text("no JSON"), piece.unlink):
        damage()
        with pytest.raises(RunError, match="/A@1/turn:1 gave cannot be read back") as caught:
            await second.find(wanted("/A@1/turn:1"))
        assert "devall resume r --from A" in caught.value.hint


# Group commit


async def test_what_waits_shares_commits(begin, store):
    journal = await begin()
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "COMMIT"

    await store._writer.do(lambda database: database.set_trace_callback(count))
    await asyncio.gather(*(journal.append(record(f"/A@{n}/turn:1", n)) for n in range(500)))
    await store._writer.do(lambda database: database.set_trace_callback(None))
    assert 1 <= commits < 50


async def test_what_cannot_be_written_leaves_its_neighbours_alone(begin, store):
    one, other = await begin("one"), await begin("other")
    results = await asyncio.gather(
        one.append(record("/A@1/turn:1", object())),  # no JSON
        other.append(record("/A@1/turn:1", 1)),
        store.begin(new_run("one"), plain),  # there already
        other.append(record("/A@1/turn:2", 2)),
        return_exceptions=True,
    )
    assert [type(each).__name__ for each in results] == [
        "JournalError",
        "NoneType",
        "UsageError",
        "NoneType",
    ]
    with Reader(store.folder) as reader:
        assert [step.value for step in reader.steps(reader.run("other"))] == [1, 2]


# Epochs and leases


async def test_who_was_taken_over_writes_nothing_more(begin, take_over, store):
    first = await begin()
    second = await take_over()
    for write in (
        lambda: first.append(record("/A@1/turn:1", "late")),
        lambda: first.begin(wanted("/A@1/turn:1")),
        lambda: first.finish("completed", {}),
    ):
        with pytest.raises(RunTakenOver, match="run r was taken over by another process"):
            await write()
    await second.append(record("/A@1/turn:1", "mine"))
    await second.finish("completed", {"answer": "mine"})
    with Reader(store.folder) as reader:
        row = reader.run("r")
        assert [step.value for step in reader.steps(row)] == ["mine"]
    assert (row.epoch, row.status, row.result) == (2, "completed", {"answer": "mine"})


async def test_a_run_that_is_alive_is_not_taken_over(begin, store):
    await begin()
    with pytest.raises(UsageError, match=f"run r is alive in process {os.getpid()}"):
        await store.take_over("r", nodes={}, redact=plain)


async def test_a_lease_is_renewed_while_its_owner_lives(begin, store):
    journal = await begin()
    await store._writer.do(lambda database: database.execute("UPDATE runs SET lease = 1"))
    await store._writer.do(store._renew)
    with Reader(store.folder) as reader:
        assert reader.run("r").lease > time.time() + LEASE / 2
    await journal.aclose()
    await store._writer.do(lambda database: database.execute("UPDATE runs SET lease = 1"))
    await store._writer.do(store._renew)
    with Reader(store.folder) as reader:
        assert reader.run("r").lease == 1


def test_an_owner_is_gone_when_its_process_is_or_when_another_has_its_number():
    me = this_process()
    assert not me.is_gone()
    assert Owner(me.host, me.pid, "1").is_gone()
    assert Owner(me.host, 2**22 + 1, me.born).is_gone()
    assert not Owner("elsewhere", 2**22 + 1, "1").is_gone()


async def test_a_name_is_used_once_and_there_must_be_one_to_go_on_with(begin, store):
    await begin()
    with pytest.raises(UsageError, match="there is a run r in"):
        await begin()
    with pytest.raises(UsageError, match="there is no run q in"):
        await store.take_over("q", nodes={}, redact=plain)


# The file


async def test_all_that_is_written_is_the_users_alone(begin, tmp_path):
    before = os.umask(0)
    try:
        async with shared_store(tmp_path / "deep/logs") as store:
            journal = await store.begin(new_run("r"), plain)
            await journal.append(record("/A@1/turn:1", "x" * (2 * LARGE)))
            await journal.find(wanted("/A@1/turn:1"))
            places = sorted((tmp_path / "deep").rglob("*"))
            modes = {place.name: stat.S_IMODE(place.stat().st_mode) for place in places}
            folders = {place.name for place in places if place.is_dir()}
    finally:
        os.umask(before)
    assert {"devall.db", "devall.db-wal", "devall.db-shm", "pieces"} <= modes.keys()
    assert {modes[name] for name in folders} == {0o700}
    assert {mode for name, mode in modes.items() if name not in folders} == {0o600}
    assert stat.S_IMODE((tmp_path / "deep").stat().st_mode) == 0o700


async def test_a_file_of_the_first_version_is_brought_up_to_date(tmp_path):
    for by in ("writer", "reader"):
        folder = tmp_path / by
        folder.mkdir()
        with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as database:
            database.executescript(MIGRATIONS[0])
            database.execute("PRAGMA user_version = 1")
            owner = '{"host": "h", "pid": 1, "born": ""}'
            database.execute(
                "INSERT INTO runs VALUES(1, 'r', 1, 'failed', 'w', '1', 1, 2, ?, 0, '{}', '{}', '{}')",
                (owner,),
            )
            database.execute("INSERT INTO epochs VALUES(1, 1, 1, '{}', '{}')")
            database.execute(
                "INSERT INTO steps VALUES(1, 1, 1, '/A@1/turn:1', 'model', 'done', ?, '1', '\"old\"', 1)",
                (wanted("").fingerprint,),
            )
        if by == "writer":
            store = SqliteStore(folder / FILE_NAME)
            store.open()
            journal = await store.take_over("r", nodes={}, redact=plain)
            found = await journal.find(wanted("/A@1/turn:1"))
            assert found is not None
            assert found.value == "old"
            await store.aclose()
        with Reader(folder) as reader:
            (step,) = reader.steps(reader.run("r"))
            assert (step.value, step.seconds) == ("old", 0)
        with closing(sqlite3.connect(folder / FILE_NAME)) as database:
            assert database.execute("PRAGMA user_version").fetchone() == (VERSION,)


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(tmp_path):
    file = tmp_path / FILE_NAME
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = file.read_bytes()
    for use in (lambda: SqliteStore(file).open(), lambda: Reader(tmp_path)):
        with pytest.raises(SetupError, match=f"schema version {VERSION + 1}; this devall knows"):
            use()
    assert file.read_bytes() == before


async def test_stores_of_one_folder_are_one_store(tmp_path):
    async with shared_store(tmp_path) as one:
        async with shared_store(tmp_path / "x/..") as other:
            assert one is other
        journal = await one.begin(new_run("r"), plain)
        await journal.append(record("/A@1/turn:1", 1))


async def test_a_journal_in_memory_gives_what_was_done():
    journal = MemoryJournal()
    await journal.append(record("/A@1/turn:1", 1, {"q": 1}))
    assert await journal.find(wanted("/A@1/turn:1", {"q": 2})) is None
    found = await journal.find(wanted("/A@1/turn:1", {"q": 1}))
    assert found is not None
    assert found.value == 1


async def test_a_full_durability_is_that_of_the_commit(begin, store):
    asked: list[str] = []
    await store._writer.do(lambda database: database.set_trace_callback(asked.append))
    normal, full = await begin("normal"), await begin("full", "full")
    await normal.append(record("/A@1/turn:1", 1))
    await full.append(record("/A@1/turn:1", "x" * (2 * LARGE)))
    await store._writer.do(lambda database: database.set_trace_callback(None))
    told = [each for each in asked if "synchronous" in each or "INSERT INTO steps" in each]
    assert [each.split()[0] + each.split()[-1] for each in told if "PRAGMA" in each] == [
        "PRAGMAFULL",
        "PRAGMANORMAL",
        "PRAGMAFULL",
        "PRAGMANORMAL",
    ]
