"""What events have told of one conversation already, so that no message is told in each turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

from devall.core.messages import Message


class Told:
    """The messages of an agent's run that stood in earlier requests, or were replies to them."""

    def __init__(self) -> None:
        self._counts: Counter[Hashable] = Counter()
        self._reply: Message | None = None

    def news(self, request: Sequence[Message]) -> tuple[Message, ...]:
        """Those messages of a request that no earlier one held, and that are no reply to one."""
        found: list[Message] = []
        seen: Counter[Hashable] = Counter()
        for message in request:
            key = _key(message)
            seen[key] += 1
            if seen[key] <= self._counts[key]:
                continue
            self._counts[key] = seen[key]
            if not self._is_reply(message):
                found.append(message)
        return tuple(found)

    def reply(self, message: Message) -> None:
        """Take in what the model has said to the newest request."""
        self._reply = message

    def _is_reply(self, message: Message) -> bool:
        reply = self._reply
        return (
            reply is not None
            and message.role == reply.role
            and message.content == reply.content
            and message.tool_calls == reply.tool_calls
        )


def _key(message: Message) -> Hashable:
    content = message.content
    calls = message.tool_calls
    return (
        message.role,
        content if isinstance(content, str) else repr(content),
        message.source,
        message.tool_call_id,
        tuple((call.id, call.name, call.arguments) for call in calls) if calls else (),
    )
