"""Answers to the questions that a run has left open."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from devall.core.ids import node_of
from devall.journal.sqlite import SqliteJournal


async def answer_open(
    journal: SqliteJournal, answers: Mapping[str, str | Sequence[str]]
) -> dict[str, str | Sequence[str]]:
    """Give the answers to the open questions that they fit; what is left of them.

    An answer fits a question by the question's id (`/M@1/unit:2`), or by its node (`S/X` or
    `X`). One text answers all questions of its node, now and later; texts of a list are used up
    in order.

    Args:
        journal: The run's, which this process writes.
        answers: By id or node.

    Raises:
        JournalError: they cannot be kept.
    """
    left: dict[str, str | Sequence[str]] = {
        name: words if isinstance(words, str) else list(words) for name, words in answers.items()
    }
    for key in journal.open_questions():
        name = next((each for each in left if fits(each, key)), None)
        if name is None:
            continue
        words = left[name]
        if not isinstance(words, str):
            words, *rest = words
            left[name] = rest
        await journal.answer(key, words)
        if name.startswith("/") or left[name] == []:
            del left[name]
    return left


def fits(name: str, key: str) -> bool:
    """Whether a question is meant by a name: its id, or its node."""
    if name.startswith("/"):
        return key in {name, f"{name}/answer"}
    node = node_of(key)
    return name in {node, node.rpartition("/")[2]}


def has_doubts(journal: SqliteJournal) -> bool:
    """Whether a human was asked about a call in doubt: the answer decides, and no policy."""
    keys = (*journal.open_questions(), *journal.done("human"))
    return any("/ask:doubt:" in key for key in keys)


def question_id(key: str) -> str:
    """How a question is called, from the key of its step."""
    return key.removesuffix("/answer")
