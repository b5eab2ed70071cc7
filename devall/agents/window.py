"""A conversation that fits a model's window: what is shortened, what is left out, and when."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from devall.config.agents import HistoryConfig
from devall.core.history import units
from devall.core.messages import MediaPart, Message, TextPart, user
from devall.tools.limited import shorten
from devall.tools.slices import notice

SHORTENED = 1_000
"""Characters that stay of an old tool result."""

KeepText = Callable[[str], str]
"""Keeps a text as an attachment of the run; gives its name."""
Size = Callable[[Message], int]
"""Tokens of a message."""

_NOTICE = re.compile(re.escape(notice("@")).replace("@", r"(\S+)"))
_SPARE = 200
"""Tokens for notes where something was left out, and for the tool that reads what was shortened."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """A conversation as it is sent."""

    messages: tuple[Message, ...]
    tokens: int
    left_out: int = 0
    """Messages that are not in it any more."""
    shortened: int = 0
    """Tool results of which head and tail are left."""


def fit(
    messages: Sequence[Message],
    room: int,
    history: HistoryConfig,
    size: Size,
    keep: KeepText | None = None,
) -> Fitted:
    """The conversation in at most `room` tokens, or as few as it can be cut to.

    What is done, and only as long as it is needed: old tool results are shortened, oldest first;
    old turns are left out, oldest first, in each of them rounds of tool calls before the question
    and its answer; then old rounds of the newest turn; at last the newest results are shortened
    too. System messages, kept messages, the first and the newest inputs, and the rounds that
    `keep_first` and `keep_last` name stay whole. A call and its results go together, and a note
    stands where something was left out.

    Args:
        messages: Oldest first, each tool call with its result (see `history.answered`).
        room: Tokens that the messages may have.
        history: What stays.
        size: The tokens of a message; an estimate.
        keep: Keeps the whole text of a result that is shortened, so that slices of it can be
            read; None = it cannot be read any more.
    """
    cut = _Cut(messages, size, keep)
    if cut.tokens <= room:
        return Fitted(tuple(messages), cut.tokens)
    target = max(0, room - min(_SPARE, room // 10))
    plan = _plan(messages, history)
    for position in plan.old_results:
        if cut.tokens <= target:
            break
        cut.shorten(position, SHORTENED)
    for piece in plan.pieces:
        if cut.tokens <= target:
            break
        cut.leave_out(piece)
    for position in plan.new_results:
        if cut.tokens <= target:
            break
        # Only as much as must be: what is newest is what the model is at work on.
        excess = 4 * (cut.tokens - target) + SHORTENED
        cut.shorten(position, max(SHORTENED, len(messages[position].text) - excess))
    for position in plan.new_results:
        if cut.tokens <= target:
            break
        cut.shorten(position, SHORTENED)
    return cut.fitted()


@dataclass(frozen=True, slots=True)
class _Plan:
    """Positions in the order in which they give way."""

    old_results: list[int]
    pieces: list[list[int]]
    new_results: list[int]


def _plan(messages: Sequence[Message], history: HistoryConfig) -> _Plan:
    rounds = units(messages)
    answers = [at for at, unit in enumerate(rounds) if messages[unit[0]].role == "assistant"]
    first = answers[: history.keep_first]
    last = answers[-history.keep_last :]
    head = first[-1] if first else -1
    tail = last[0] if last else len(rounds)
    turns = _turns(messages, rounds)
    pinned = {
        at
        for at, unit in enumerate(rounds)
        if at <= head
        or at >= tail
        or any(messages[p].role == "system" or messages[p].keep for p in unit)
    }
    for turn in (turns[0], turns[-1]):
        # The task, and what is asked now.
        pinned.update(at for at in turn if messages[rounds[at][0]].role == "user")
    pieces: list[list[int]] = []
    for turn in turns:
        loose = [at for at in turn if at not in pinned]
        tools = [at for at in loose if messages[rounds[at][0]].tool_calls]
        pieces += (rounds[at] for at in tools)
        rest = [p for at in loose if at not in tools for p in rounds[at]]
        if rest:
            pieces.append(rest)
    results = [
        (at, position)
        for at, unit in enumerate(rounds)
        for position in unit
        if messages[position].role == "tool"
    ]
    return _Plan(
        [position for at, position in results if head < at < tail],
        pieces,
        [position for at, position in results if not head < at < tail],
    )


def _turns(messages: Sequence[Message], rounds: Sequence[Sequence[int]]) -> list[list[int]]:
    """The rounds by turn: a turn begins with the inputs that follow an answer."""
    turns: list[list[int]] = [[]]
    before = ""
    for at, unit in enumerate(rounds):
        role = messages[unit[0]].role
        if role == "user" and before == "assistant":
            turns.append([])
        turns[-1].append(at)
        before = role if role in {"user", "assistant"} else before
    return turns


class _Cut:
    """A conversation while it gets shorter."""

    def __init__(self, messages: Sequence[Message], size: Size, keep: KeepText | None) -> None:
        self._messages = list(messages)
        self._size = size
        self._keep = keep
        self._sizes = list(map(size, messages))
        self._gone: set[int] = set()
        self._short: set[int] = set()
        self.tokens = sum(self._sizes)

    def shorten(self, position: int, longest: int) -> None:
        """Leave head and tail of a tool result, where that makes it clearly shorter."""
        message = self._messages[position]
        text = message.text
        if position in self._gone or len(text) < 1.5 * longest:
            return
        found = _NOTICE.search(text)
        name = found[1] if found else self._keep(text) if self._keep else ""
        note = notice(name) if name else ""
        if found:
            text = text.replace(found[0], "")
        parts = shorten(text, longest, note)
        media = tuple(part for part in message.parts if isinstance(part, MediaPart))
        self._messages[position] = replace(
            message, content=(TextPart(parts), *media) if media else parts
        )
        self._short.add(position)
        self.tokens -= self._sizes[position]
        self._sizes[position] = self._size(self._messages[position])
        self.tokens += self._sizes[position]

    def leave_out(self, positions: Sequence[int]) -> None:
        """Take messages away; the note that stands for them has its price."""
        if not self._gone:
            self.tokens += self._size(_note(len(positions)))
        self._gone.update(positions)
        self.tokens -= sum(self._sizes[p] for p in positions)

    def fitted(self) -> Fitted:
        """What is left, with a note wherever something was left out."""
        found: list[Message] = []
        missing = 0
        for position, message in enumerate(self._messages):
            if position in self._gone:
                missing += 1
                continue
            if missing:
                found.append(_note(missing))
                missing = 0
            found.append(message)
        short = len(self._short - self._gone)
        return Fitted(tuple(found), sum(map(self._size, found)), len(self._gone), short)


def _note(count: int) -> Message:
    what = "1 earlier message was" if count == 1 else f"{count} earlier messages were"
    return user(f"[{what} left out here: the conversation is longer than the model's window]")
