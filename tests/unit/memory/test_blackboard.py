"""The list that agents share."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from devall.core.errors import SetupError
from devall.memory.base import Memory
from devall.memory.blackboard import Blackboard
from devall.memory.storage import Record, Records

WRITER = """
import asyncio, sys
from pathlib import Path
from devall.memory.base import Memory
from devall.memory.blackboard import Blackboard

async def main(path, name, count):
    board = Blackboard("board", Path(path))
    for n in range(count):
        await board.write(Memory(f"{name}{n}", name, id=f"{name}{n}"))

asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
"""


async def texts(board: Blackboard, top_k: int = 100) -> list[str]:
    return [memory.text for memory in await board.retrieve("anything", top_k, -1)]


async def test_the_newest_items_come_first():
    board = Blackboard("board", None)
    for text in ("one", "two", "three"):
        await board.write(Memory(text, "A"))
    assert await texts(board, 2) == ["three", "two"]


async def test_the_oldest_items_go_where_there_are_too_many():
    board = Blackboard("board", None, max_items=2)
    for text in ("one", "two", "three"):
        await board.write(Memory(text))
    assert await texts(board) == ["three", "two"]


async def test_an_item_is_there_for_the_next_run_as_it_was(tmp_path: Path):
    path = tmp_path / "mem" / "board.json"
    await Blackboard("board", path).write(Memory("größe 😀", "A", at=12.5, id="x"))
    [found] = await Blackboard("board", path).retrieve("", 5, -1)
    assert found == Memory("größe 😀", "A", at=12.5, id="x")


async def test_what_another_store_writes_to_the_file_is_seen(tmp_path: Path):
    path = tmp_path / "board.json"
    one, other = Blackboard("board", path), Blackboard("board", path)
    await one.write(Memory("first"))
    assert await texts(other) == ["first"]
    await one.write(Memory("second"))
    assert await texts(other) == ["second", "first"]


async def test_without_a_file_a_store_shares_nothing():
    await Blackboard("board", None).write(Memory("one"))
    assert await texts(Blackboard("board", None)) == []


@pytest.mark.parametrize("in_file", [False, True])
async def test_parallel_writes_of_one_run_lose_nothing(tmp_path: Path, *, in_file: bool):
    board = Blackboard("board", tmp_path / "board.json" if in_file else None)
    await asyncio.gather(*(board.write(Memory(str(n))) for n in range(30)))
    assert sorted(map(int, await texts(board))) == list(range(30))


async def test_two_processes_lose_none_of_each_others_items(tmp_path: Path, project: Path):
    path = tmp_path / "board.json"
    running = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, path, name, "25"],
            env=os.environ | {"PYTHONPATH": str(project)},
        )
        for name in ("a", "b")
    ]
    assert [process.wait(20) for process in running] == [0, 0]
    assert sorted(await texts(Blackboard("board", path))) == sorted(
        f"{name}{n}" for name in "ab" for n in range(25)
    )


async def test_a_file_of_something_else_is_refused_and_left_alone(tmp_path: Path):
    path = tmp_path / "board.json"
    for content in ("{}", "no json", "[1, 2]", '{"version": 1, "records": [1]}'):
        path.write_text(content)
        board = Blackboard("board", path)
        with pytest.raises(SetupError, match=r"board\.json cannot be used"):
            await board.open()
        with pytest.raises(SetupError, match=r"board\.json cannot be used"):
            await board.write(Memory("x"))
        assert path.read_text() == content


async def test_items_written_by_hand_need_no_more_than_a_text(tmp_path: Path):
    path = tmp_path / "board.json"
    path.write_text(json.dumps({"version": 1, "records": [{"text": "by hand"}]}))
    assert await texts(Blackboard("board", path)) == ["by hand"]


async def test_a_place_that_cannot_be_written_is_named(tmp_path: Path):
    (tmp_path / "file").write_text("")
    board = Blackboard("board", tmp_path / "file" / "board.json")
    with pytest.raises(SetupError, match="cannot be written"):
        await board.write(Memory("x"))


def test_changes_of_a_store_without_a_file_come_one_after_the_other():
    records = Records(None)
    other = threading.Thread(target=records.change, args=(lambda known: [*known, {"text": "b"}],))

    def change(known: Sequence[Record]) -> Sequence[Record]:
        other.start()
        other.join(0.1)
        return [*known, {"text": "a"}]

    records.change(change)
    other.join()
    assert records.read() == [{"text": "a"}, {"text": "b"}]


def test_a_file_that_stays_locked_is_given_up(tmp_path: Path):
    path = tmp_path / "board.json"
    outer, inner = Records(path), Records(path, patience=0.05)

    def change(known: Sequence[Record]) -> Sequence[Record]:
        with pytest.raises(SetupError, match="locked by another process"):
            inner.change(lambda _: [])
        return [*known, {"text": "x"}]

    outer.change(change)
    assert inner.read() == [{"text": "x"}]


async def test_restoring_adds_to_a_store_of_this_run_alone(tmp_path: Path):
    here, durable = Blackboard("b", None), Blackboard("b", tmp_path / "b.json")
    await durable.write(Memory("x", id="1"))
    for board in (here, durable):
        await board.restore(Memory("x", id="1"))
        assert await texts(board) == ["x"]


async def test_the_file_is_the_users_alone_and_a_link_to_it_stays_a_link(tmp_path: Path):
    (tmp_path / "real.json").write_text('{"version": 1, "records": []}')
    link = tmp_path / "board.json"
    link.symlink_to(tmp_path / "real.json")
    await Blackboard("board", link).write(Memory("x"))
    assert link.is_symlink()
    assert (tmp_path / "real.json").stat().st_mode & 0o777 == 0o600


async def test_a_write_that_is_repeated_adds_nothing(tmp_path: Path):
    for path in (None, tmp_path / "board.json"):
        board = Blackboard("board", path)
        for key, text in [("1", "one"), ("2", "two"), ("1", "one again"), ("", "x"), ("", "x")]:
            await board.write(Memory(text, id=key))
        assert await texts(board) == ["x", "x", "two", "one again"]
