"""What an agent is told: its role, and its inputs as one conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

from devall.core.messages import MediaPart, Message, Part, TextPart, user

InputMode = Literal["messages", "prompt"]


def conversation(
    inputs: Sequence[Message],
    *,
    role: str = "",
    skills: str = "",
    answer: str = "",
    input_mode: InputMode,
) -> tuple[Message, ...]:
    """The messages of an agent's first request, memories not among them.

    Args:
        inputs: What the node sees, oldest first; none at all counts as one empty user
            message.
        role: The agent's role; without one, and without what follows, no system message is sent.
        skills: What the system prompt says of the agent's skills.
        answer: What it says of the form of the answer.
        input_mode: `messages`: each input is a message of its own, with its role; `prompt`:
            all of them in one user message. Inputs with role system go to the front in
            either mode.
    """
    prompt = "\n\n".join(text for text in (role, skills, answer) if text)
    front = [Message("system", prompt)] if prompt else []
    front += (message for message in inputs if message.role == "system")
    rest = [message for message in inputs if message.role != "system"]
    if not inputs:
        return (*front, user(""))
    match input_mode:
        case "messages":
            return (*front, *rest)
        case "prompt":
            return (*front, _flattened(rest))
        case _:
            assert_never(input_mode)


def with_note(messages: Sequence[Message], note: str | tuple[Part, ...]) -> tuple[Message, ...]:
    """The conversation with a user message put in before its last user message.

    Without a user message it comes last; where the note is empty nothing is put in.
    """
    if not note:
        return tuple(messages)
    places = [place for place, message in enumerate(messages) if message.role == "user"]
    place = places[-1] if places else len(messages)
    return (*messages[:place], Message("user", note), *messages[place:])


def _flattened(messages: Sequence[Message]) -> Message:
    """All messages in one, each behind a line that names its source; media stay parts."""
    tools = {call.id: call.name for message in messages for call in message.tool_calls}
    parts: list[Part] = []
    texts: list[str] = []

    def close_text() -> None:
        if texts:
            parts.append(TextPart("\n\n".join(texts)))
            texts.clear()

    for message in messages:
        media = [part for part in message.parts if isinstance(part, MediaPart)]
        if message.tool_calls and not message.text and not media:
            continue
        texts.append(f"{_header(message, tools)}\n{message.text}")
        if media:
            close_text()
            parts += media
    close_text()
    if len(parts) == 1 and isinstance(parts[0], TextPart):
        return user(parts[0].text)
    return Message("user", tuple(parts))


def _header(message: Message, tools: dict[str, str]) -> str:
    source = message.source or "task"
    if message.role == "tool":
        name = tools.get(message.tool_call_id, "a tool")
        return f"=== {source}: result of {name} ==="
    return f"=== {source} ==="
