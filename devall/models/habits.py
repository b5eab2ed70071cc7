"""What the models of endpoints were found to take, and what not; kept while this process lives.

An endpoint says with status 400 what it does not take. Where that can be helped without another
meaning of the request, it is asked once more, and the next time at once as it wants it.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from devall.core.errors import ContextOverflow, ModelRefused
from devall.core.messages import JsonValue, Message
from devall.models.base import ChatReply
from devall.models.failures import Place, Said
from devall.models.shapes import as_list, as_object

JsonObject = dict[str, JsonValue]

MOST_LESSONS = 6
"""Refusals of one request after which the next one stands."""
REASONING = ("reasoning_content", "reasoning_details", "reasoning")
"""Fields of an assistant's message in which endpoints give its thoughts."""

_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_SPARED = frozenset(
    {
        "temperature", "top_p", "top_k", "min_p", "presence_penalty", "frequency_penalty",
        "repetition_penalty", "seed", "logit_bias", "parallel_tool_calls", "reasoning_effort",
        "verbosity", "user", "metadata", "store", "service_tier",
    }
)  # fmt: skip
"""Parameters without which an answer is still the one that was asked for."""
_OURS = frozenset({"stream", "stream_options"})
"""Fields that are sent unless the file says otherwise."""
_STRUCTURE = frozenset({"model", "messages", "input", "tools", "system"})
_UNKNOWN = re.compile(
    r"unsupported|not supported|n't supported|does not support|doesn't support|unknown|unrecogni[sz]ed"
    r"|unexpected|not permitted|not allowed|no longer|deprecated|only the default|must be verified"
    r"|removed in favor|incompatible",
    re.IGNORECASE,
)
_UNKNOWN_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_INSTEAD = re.compile(r"\buse ['\"`]?([a-z][a-z_]+)['\"`]? instead", re.IGNORECASE)
_ALTERNATION = re.compile(
    r"alternat|after role|consecutive|(must|should|cannot|can't|not) be (non-)?empty|non-empty"
    r"|start with a user|first message",
    re.IGNORECASE,
)
_ABOUT_ROLES = re.compile(r"\brole|\bmessage|\buser\b|\bassistant\b|\bcontent\b", re.IGNORECASE)
_DEMANDS = re.compile(r"must|missing|required|passed back|expected|needs?\b", re.IGNORECASE)


@dataclass(slots=True)
class Habits:
    """What one model of one endpoint takes."""

    renamed: dict[str, str] = field(default_factory=dict[str, str])
    """Parameters that have another name there."""
    left_out: set[str] = field(default_factory=set[str])
    """Parameters that it does not take."""
    is_strict: bool = False
    """Whether it has complained of the order of messages, or of empty ones."""
    is_silent: bool = False
    """Whether it does not take its thoughts back."""
    wanted: str = ""
    """The field of thoughts that it wants in each message with tool calls."""
    lessons: int = 0
    """How often something was learned."""

    def apply(self, body: JsonObject) -> JsonObject:
        """The body as the model takes it."""
        found: JsonObject = {}
        for name, value in body.items():
            if name not in self.left_out:
                found[self.renamed.get(name, name)] = value
        return found

    def echoed(self, messages: Sequence[Message], echo: str) -> tuple[Message, ...]:
        """The messages, with the assistant's thoughts as the model takes them back.

        Args:
            messages: A conversation.
            echo: `auto` (as it was found out), `always` or `never`.
        """
        if echo == "never" or (echo == "auto" and self.is_silent):
            return tuple(_without(message) for message in messages)
        wanted = self.wanted or (REASONING[0] if echo == "always" else "")
        return tuple(_with(message, wanted) for message in messages) if wanted else tuple(messages)

    def learn(self, said: Said, body: JsonObject, given: Mapping[str, JsonValue], echo: str) -> str:
        """What can be changed after a refusal, in words; empty: nothing.

        Args:
            said: Why the request was refused.
            body: What was sent.
            given: The parameters that the file sets.
            echo: As for `echoed`.
        """
        return (
            self._learn_reasoning(said, body, echo)
            or self._learn_parameter(said, body, given)
            or self._learn_order(said)
        )

    def _learn_parameter(self, said: Said, body: JsonObject, given: Mapping[str, JsonValue]) -> str:
        is_ours = "stream_options" in said.message and "stream_options" in body
        told = {said.code, said.kind} & _UNKNOWN_CODES or _UNKNOWN.search(said.message)
        if not told and not is_ours:
            return ""
        name = _named(said, body)
        back = {new: old for old, new in self.renamed.items()}
        if not name or name in back:
            return ""
        instead = _INSTEAD.search(said.message)
        other = instead[1].lower() if instead else _OTHER_NAMES.get(name, "")
        if other and other != name and other not in body:
            self.renamed[name] = other
            return f"takes `{other}` in place of `{name}`"
        if name in _OURS and name not in given:
            self.left_out.add(name)
            return f"is asked without `{name}`"
        if name in _SPARED:
            self.left_out.add(name)
            return f"does not take `{name}`: it is not sent"
        return ""

    def _learn_reasoning(self, said: Said, body: JsonObject, echo: str) -> str:
        text = f"{said.param} {said.message}"
        name = next((n for n in REASONING[:2] if n in text), "")
        if not name and re.search(r"""['"`.]reasoning\b""", text):
            name = REASONING[2]
        if not name or echo == "never":
            return ""
        spoken = [m for m in map(as_object, as_list(body.get("messages"))) if _is_assistant(m)]
        is_lacking = any(m.get("tool_calls") and name not in m for m in spoken)
        if is_lacking and not self.wanted and _DEMANDS.search(text) and not _UNKNOWN.search(text):
            self.wanted, self.is_silent = name, False
            return f"wants `{name}` back in each message with tool calls"
        if any(name in m for m in spoken) and not self.wanted and echo == "auto":
            self.is_silent = True
            return f"does not take `{name}` back"
        return ""

    def _learn_order(self, said: Said) -> str:
        if self.is_strict or not _ALTERNATION.search(said.message):
            return ""
        if not _ABOUT_ROLES.search(said.message):
            return ""
        self.is_strict = True
        return "wants user and assistant to take turns, and no empty messages"


_known: dict[tuple[str, str, str], Habits] = {}
"""By URL, model and protocol."""


def habits_of(place: Place) -> Habits:
    """What is known of a model; the same object each time."""
    return _known.setdefault((place.url, place.model, place.protocol), Habits())


async def adapting(
    place: Place,
    given: Mapping[str, JsonValue],
    body_of: Callable[[], JsonObject],
    answer: Callable[[JsonObject], Awaitable[ChatReply]],
    *,
    echo: str = "auto",
) -> ChatReply:
    """The reply to a request that is changed as long as the model says how it wants it.

    Args:
        place: Where the model is.
        given: The parameters that the file sets.
        body_of: Makes the request by what is known of the model.
        answer: Sends it.
        echo: As for `Habits.echoed`.

    Raises:
        ModelError: whatever went wrong.
    """
    habits = habits_of(place)
    notes: list[str] = []
    for left in reversed(range(MOST_LESSONS + 1)):
        known = habits.lessons
        body = habits.apply(body_of())
        try:
            reply = await answer(body)
        except ModelRefused as error:
            is_other = error.status not in {400, 422} or isinstance(error, ContextOverflow)
            if not left or is_other:
                raise
            if habits.lessons != known:  # another request has learned it meanwhile
                continue
            said = Said.of(getattr(error.__cause__, "body", None))
            lesson = habits.learn(said, body, given, echo)
            if not lesson:
                raise
            habits.lessons += 1
            if "stream_options" not in lesson:
                notes.append(f"{place.model} at {place.url} {lesson}")
            continue
        return replace(reply, notes=(*reply.notes, *notes))
    raise AssertionError  # the last round returns or raises


def _named(said: Said, body: JsonObject) -> str:
    """The parameter of the body that a refusal names; empty: none."""
    names = [name for name in body if name not in _STRUCTURE]
    param = said.param.partition(".")[0]
    if param:
        return param if param in names else ""
    found = [name for name in names if re.search(rf"\b{re.escape(name)}\b", said.message)]
    # `stream` is part of no word, and yet the less likely one beside another.
    return max(found, key=lambda name: (name not in _OURS, len(name)), default="")


def _is_assistant(message: JsonObject) -> bool:
    return message.get("role") == "assistant"


def _without(message: Message) -> Message:
    if message.role != "assistant" or not message.extra.keys() & set(REASONING):
        return message
    kept = {name: value for name, value in message.extra.items() if name not in REASONING}
    return replace(message, extra=kept)


def _with(message: Message, name: str) -> Message:
    if message.role != "assistant" or not message.tool_calls or name in message.extra:
        return message
    return replace(message, extra={**message.extra, name: ""})
