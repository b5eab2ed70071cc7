"""Memories in an agent's run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devall.agents.recall import Attached
from devall.config.agents import MemoryAttachment
from devall.core.errors import ModelRefused
from devall.core.messages import MediaPart, Message, TextPart, assistant, user
from devall.memory.base import Memory
from devall.memory.blackboard import Blackboard
from devall.memory.embedding import HashedNgrams
from devall.memory.simple import SimpleMemory

REFLECT = {"thinking": {"type": "reflection", "config": {"reflection_prompt": "again"}}}


def attached(store: Any, run: str = "", **settings: Any) -> Attached:
    return Attached(store, MemoryAttachment.model_validate({"name": store.name} | settings), run)


@pytest.fixture
async def board() -> Blackboard:
    found = Blackboard("board", None)
    for text in ("one", "two", "three"):
        await found.write(Memory(text, "X", id=text))
    return found


async def texts(store: Blackboard) -> list[str]:
    return [m.text for m in await store.retrieve("", 100, -1)]


async def test_memories_are_one_user_message_before_the_last_one(played, scope, board):
    agent = played(["ok"], memories=[attached(board, top_k=2)], config={"role": "r"})
    await agent.run(scope, user("a"), assistant("b"), user("c"))
    sent = agent.requests[0].messages
    assert [m.role for m in sent] == ["system", "user", "assistant", "user", "user"]
    assert sent[3].text == "From memory:\n- [X] three\n- [X] two"
    assert sent[4].text == "c"


async def test_memories_are_not_remembered_as_said(played, scope, board):
    result = await played(["ok"], memories=[attached(board)]).run(scope, "a")
    assert result.remembered == (assistant("ok", "A"),)


async def test_an_empty_memory_puts_nothing_in(played, scope):
    agent = played(["ok"], memories=[attached(Blackboard("board", None))])
    await agent.run(scope, "a")
    assert agent.requests[0].messages == (user("a"),)


async def test_several_memories_are_one_message_in_the_order_of_the_file(played, scope, board):
    other = Blackboard("other", None)
    await other.write(Memory("else", "Y"))
    agent = played(["ok"], memories=[attached(other), attached(board, top_k=1)])
    await agent.run(scope, "a")
    assert [m.text for m in agent.requests[0].messages] == [
        "From memory:\n- [Y] else\n- [X] three",
        "a",
    ]


async def test_what_is_not_read_is_not_put_in_and_what_is_not_written_not_kept(
    played, scope, board
):
    agent = played(["ok"], memories=[attached(board, read=False, write=False)])
    await agent.run(scope, "a")
    assert agent.requests[0].messages == (user("a"),)
    assert len(await texts(board)) == 3


async def test_the_answer_is_written_and_found_by_what_was_asked(played, scope):
    store = SimpleMemory("facts", None, HashedNgrams())
    await played(["It is 42."], memories=[attached(store)]).run(scope, "airspeed of a swallow?")
    [found] = await store.retrieve("swallow", 1, -1)
    assert (found.text, found.source, found.asked) == ("It is 42.", "A", "airspeed of a swallow?")


async def test_what_was_asked_is_told_with_what_was_answered(played, new_scope):
    store = SimpleMemory("facts", None, HashedNgrams())
    await played(["It is 42."], memories=[attached(store)]).run(new_scope(), "airspeed?")
    agent = played(["ok"], memories=[attached(store)])
    await agent.run(new_scope(), "airspeed again?")
    assert "- [A] It is 42.\n  (to: airspeed?)" in agent.requests[0].messages[0].text


async def test_a_run_that_fails_writes_nothing(played, scope, board):
    with pytest.raises(ModelRefused):
        await played([{"status": 401}], memories=[attached(board)]).run(scope, "a")
    assert len(await texts(board)) == 3


async def test_the_answer_that_stands_is_the_one_that_is_written(played, scope):
    board = Blackboard("board", None)
    await played(["first", "second"], memories=[attached(board)], config=REFLECT).run(scope, "a")
    assert await texts(board) == ["second"]


@pytest.mark.parametrize(
    ("stages", "counts"),
    [
        (None, [2, 4]),
        (["gen"], [2, 4]),
        (["pre_gen_thinking"], [2, 4]),
        (["pre_gen_thinking", "gen"], [2, 4]),
        (["post_gen_thinking"], [1, 4]),
        (["gen", "post_gen_thinking"], [2, 5]),
        (["finished"], [1, 3]),
    ],
)
async def test_memories_are_put_in_at_their_stages(played, scope, board, stages, counts):
    bound = attached(board, write=False, retrieve_stage=stages)
    agent = played(["first", "second"], memories=[bound], config=REFLECT)
    await agent.run(scope, "a")
    assert [len(r.messages) for r in agent.requests] == counts


async def test_reading_and_writing_are_steps_that_are_not_done_twice(
    played, new_scope, tmp_path: Path
):
    board = Blackboard("board", tmp_path / "board.json")
    await board.write(Memory("one", "X"))
    first = new_scope()
    done = await played(["ok"], memories=[attached(board)]).run(first, "a")
    assert [k for k, kind in first.kinds.items() if kind == "memory"] == [
        "memory:0/answer",
        "memory:0/write",
    ]
    assert (
        await played([], memories=[attached(board)]).run(new_scope(journal=first.journal), "a")
        == done
    )
    assert await texts(board) == ["ok", "one"]


async def test_a_replayed_run_fills_the_memory_that_lived_with_the_first(played, new_scope):
    first = new_scope()
    await played(["ok"], memories=[attached(Blackboard("board", None))]).run(first, "a")
    fresh = Blackboard("board", None)
    await played([], memories=[attached(fresh)]).run(new_scope(journal=first.journal), "a")
    assert await texts(fresh) == ["ok"]


async def test_a_write_that_a_crash_kept_from_the_journal_is_not_there_twice(
    played, new_scope, tmp_path: Path
):
    board = Blackboard("board", tmp_path / "board.json")
    for run in ("one", "one", "two"):
        await played(["ok"], memories=[attached(board, run)]).run(new_scope(), "a")
    assert await texts(board) == ["ok", "ok"]
    await played(["ok"], memories=[attached(board, "one")]).run(new_scope(path="/A@2"), "a")
    assert len(await texts(board)) == 3


PICTURE = MediaPart("image", "image/png", attachment="ab.png", name="cat.png")


async def test_the_files_of_what_was_asked_are_kept_and_put_in_again(played, new_scope):
    board = Blackboard("board", None)
    asked = Message("user", (TextPart("who is it?"), PICTURE))
    await played(["A cat."], memories=[attached(board, read=False)]).run(new_scope(), asked)
    [found] = await board.retrieve("", 1, -1)
    assert (found.text, found.asked, found.media) == ("A cat.", "who is it?", (PICTURE,))
    first = new_scope()
    agent = played(["yes"], memories=[attached(board)])
    done = await agent.run(first, "really?")
    assert agent.requests[0].messages[0].content == (
        TextPart("From memory:\n- [A] A cat.\n  (to: who is it?)\n  (with: cat.png)"),
        PICTURE,
    )
    again = played([], memories=[attached(board)])
    assert await again.run(new_scope(journal=first.journal), "really?") == done


async def test_an_answer_without_text_and_files_is_not_kept(played, scope):
    board = Blackboard("board", None)
    asked = Message("user", (TextPart("who?"), PICTURE))
    await played([" "], memories=[attached(board)]).run(scope, asked)
    assert await texts(board) == []
