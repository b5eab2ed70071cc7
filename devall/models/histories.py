"""Conversations in the order and form that an endpoint takes.

Endpoints differ in where a system message may stand, whether two messages of one role may
follow each other, who has to begin, and whether a message may be empty. What none of them takes
is a tool call without its result behind it, or a result without its call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from devall.core.messages import NOTHING, Message, TextPart

EMPTY = "(empty)"
"""What a user says who says nothing, where an endpoint takes no empty message."""
NO_INPUT = "(no input)"
"""What a user says where an endpoint wants one to begin, and none does."""
NO_RESULT = "error: no result is known of this call"
"""What a tool says of which nothing is known."""

_SPEAKERS = frozenset({"user", "assistant"})


@dataclass(frozen=True, slots=True)
class HistoryProfile:
    """What an endpoint takes."""

    name: str
    system_first: bool = True
    """Whether the system's words must be one message, and the first."""
    alternates: bool = False
    """Whether user and assistant must take turns."""
    user_first: bool = False
    """Whether a user must begin."""
    takes_empty: bool = True
    """Whether messages may be without text."""


HISTORIES: Mapping[str, HistoryProfile] = {
    each.name: each
    for each in (
        HistoryProfile("openai", system_first=False),
        HistoryProfile("compatible"),
        HistoryProfile("gemini", user_first=True, takes_empty=False),
        HistoryProfile("strict", alternates=True, user_first=True, takes_empty=False),
        HistoryProfile("anthropic", alternates=True, user_first=True, takes_empty=False),
    )
}
"""`compatible` is for servers of which nothing is known, `strict` for those that have complained."""


def normalised(messages: Sequence[Message], profile: HistoryProfile) -> tuple[Message, ...]:
    """The conversation as the profile wants it; nothing that was said is lost."""
    found = list(_exchanges(messages))
    if profile.system_first:
        found = _system_first(found)
    if not profile.takes_empty:
        found = _without_empty(found, profile)
    if profile.alternates:
        found = _taking_turns(found)
    if profile.user_first:
        at = 1 if found and found[0].role == "system" else 0
        if len(found) == at or found[at].role != "user":
            found.insert(at, Message("user", NO_INPUT))
    return tuple(found)


def _exchanges(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages, each call with its results right behind it."""
    taken: set[int] = set()
    for index, message in enumerate(messages):
        if index in taken:
            continue
        if message.role == "tool":
            plain = replace(message, role="user", tool_call_id="", is_error=False)
            yield plain.with_text(f"A tool gave: {message.text}")
            continue
        yield message
        if message.role != "assistant" or not message.tool_calls:
            continue
        open_calls = [call.id for call in message.tool_calls]
        for later in range(index + 1, len(messages)):
            each = messages[later]
            if each.role == "assistant":
                break
            if each.role == "tool" and each.tool_call_id in open_calls:
                open_calls.remove(each.tool_call_id)
                taken.add(later)
                yield each
        for call_id in open_calls:
            yield Message("tool", NO_RESULT, tool_call_id=call_id, is_error=True)


def _system_first(messages: Sequence[Message]) -> list[Message]:
    system = [message for message in messages if message.role == "system"]
    others = [message for message in messages if message.role != "system"]
    if not system:
        return others
    first = system[0]
    if len(system) > 1:
        first = first.with_text("\n\n".join(m.text for m in system if m.text))
    return [first, *others]


def _without_empty(messages: Sequence[Message], profile: HistoryProfile) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        if message.role == "tool" or message.tool_calls or _says_something(message):
            found.append(message)
        elif message.role == "user":
            found.append(message.with_text(EMPTY))
    if not profile.alternates:
        return found
    # Beside what another user says, nobody needs to hear that one says nothing.
    return [
        message
        for index, message in enumerate(found)
        if message.content != EMPTY
        or not any(
            0 <= near < len(found) and found[near].role == "user" and found[near].content != EMPTY
            for near in (index - 1, index + 1)
        )
    ]


def _says_something(message: Message) -> bool:
    return any(not isinstance(part, TextPart) or part.text.strip() for part in message.parts)


def _taking_turns(messages: Sequence[Message]) -> list[Message]:
    found: list[Message] = []
    for message in messages:
        last = found[-1] if found else None
        is_same = last is not None and last.role == message.role and message.role in _SPEAKERS
        if last is not None and is_same and not last.tool_calls:  # whose results are to follow
            found[-1] = _joined(last, message)
        else:
            found.append(message)
    return found


def _joined(first: Message, second: Message) -> Message:
    if isinstance(first.content, str) and isinstance(second.content, str):
        content = "\n\n".join(filter(None, (first.content, second.content)))
    else:
        content = (*first.parts, *second.parts)
    extra = first.extra if first.extra and not second.extra else second.extra or NOTHING
    return replace(
        first,
        content=content,
        tool_calls=(*first.tool_calls, *second.tool_calls),
        extra=extra,
    )
