"""What a scripted model says: for each model name its replies in order.

A reply is written as a text or as a mapping with the fields of `Reply`; a whole script as
`{model: [reply, ...]}`, or in the form of a case's `script.yaml`, `{replies: {model: [...]}}`.
A callable that takes the request's body and gives a reply is legal too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Literal, cast, get_args

from devall.core.errors import UsageError
from devall.core.messages import NOTHING, JsonValue

Fault = Literal[
    "silence",
    "close",
    "html",
    "null_choices",
    "empty_body",
    "empty_stream",
    "half_stream",
    "early_end",
    "stall",
    "broken_json",
    "stream_error",
    "plain_json",
]
"""How an endpoint may misbehave.

- `silence`: takes the request and never answers.
- `close`: closes the connection without an answer.
- `html`: status 200 and a page.
- `null_choices`: `choices: null` (Chat Completions), `output: null` (Responses).
- `empty_body`: status 200 and nothing.
- `empty_stream`: a stream in which no choice stands.
- `half_stream`: half of the stream, then the connection breaks.
- `early_end`: half of the stream, then a proper end without a finish reason.
- `stall`: half of the stream, then nothing more.
- `broken_json`: half of the stream, then a line that is no JSON.
- `stream_error`: half of the stream, then an error object (see `error`).
- `plain_json`: one JSON object, though a stream was asked for.
"""


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """A tool call in a reply."""

    name: str
    arguments: JsonValue = NOTHING
    """An object; or a text, sent as it is (for arguments that are no JSON)."""
    id: str = ""
    """Empty: made up from model, reply and position."""
    extra: Mapping[str, JsonValue] = NOTHING
    """Unknown fields beside `id` and `function`."""

    @property
    def arguments_text(self) -> str:
        """The arguments as they go over the wire."""
        if isinstance(self.arguments, str):
            return self.arguments
        return json.dumps(self.arguments or {}, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, good or bad."""

    text: str = ""
    tool_calls: tuple[ScriptedCall, ...] = ()
    delay: float = 0
    """Seconds before the first byte."""
    pause: float = 0
    """Seconds between the pieces of a stream."""
    status: int = 200
    headers: Mapping[str, str] = NOTHING
    retry_after: float | str | None = None
    """The header `Retry-After`: seconds, or a date's text."""
    error: str = ""
    """Code of an error (`insufficient_quota`, `context_length_exceeded`, ...); it brings its
    own status and text, unless these are given."""
    param: str | None = None
    """The parameter that the error names."""
    body: JsonValue = None
    """The whole body, instead of what the other fields would make: a text or a JSON value."""
    finish_reason: str = ""
    """Empty: `tool_calls` where there are any, else `stop`."""
    usage: Mapping[str, JsonValue] | None = None
    """In Chat Completions' own words; None: words are counted; empty: no usage is sent."""
    extra: Mapping[str, JsonValue] = NOTHING
    """Unknown fields of the message: `reasoning_content`, ..."""
    fault: Fault | None = None

    @property
    def finish(self) -> str:
        """The finish reason that is sent."""
        return self.finish_reason or ("tool_calls" if self.tool_calls else "stop")


ReplyLike = str | Mapping[str, JsonValue] | Reply
Answer = Callable[[Mapping[str, JsonValue]], ReplyLike]
"""Makes a reply of the request's body."""

_REPLY_FIELDS = frozenset(f.name for f in fields(Reply))
_CALL_FIELDS = frozenset(f.name for f in fields(ScriptedCall))


def reply_of(written: ReplyLike) -> Reply:
    """The reply that a text, a mapping or a reply stands for.

    Raises:
        UsageError: a key that no reply has, or a fault that does not exist.
    """
    if isinstance(written, Reply):
        return written
    if isinstance(written, str):
        return Reply(written)
    _check(written, _REPLY_FIELDS, "a reply")
    given = {key: value for key, value in written.items() if value is not None}
    if (fault := given.get("fault")) is not None and fault not in get_args(Fault):
        raise UsageError(f"unknown fault {fault} in a script", hint=", ".join(get_args(Fault)))
    calls: Sequence[JsonValue] = given.pop("tool_calls", ())
    return Reply(tool_calls=tuple(map(_call_of, calls)), **given)


def _call_of(written: JsonValue) -> ScriptedCall:
    if isinstance(written, ScriptedCall):
        return written
    _check(written, _CALL_FIELDS, "a tool call")
    if "name" not in written:
        raise UsageError("a tool call of a script has no name")
    return ScriptedCall(**written)


def _check(written: Mapping[str, JsonValue], known: frozenset[str], what: str) -> None:
    if unknown := sorted(set(written) - known):
        raise UsageError(
            f"{what} of a script has no field {', '.join(unknown)}", hint=", ".join(sorted(known))
        )


ScriptLike = Mapping[str, JsonValue]
"""`{model: [reply, ...]}`, or `{replies: {model: [reply, ...]}, ...}`."""


@dataclass(slots=True)
class Playback:
    """A script while it is played: what was asked, and what comes next."""

    replies: Mapping[str, Sequence[ReplyLike | Answer]]
    strict: bool = False
    """Whether a call beyond the script is a mistake, instead of `<model> reply <n>`."""
    calls: dict[str, list[dict[str, JsonValue]]] = field(
        default_factory=dict[str, list[dict[str, JsonValue]]]
    )
    """The bodies of the requests, by model name, in order."""

    @classmethod
    def of(cls, script: ScriptLike | None, *, strict: bool = False) -> Playback:
        """A playback from the start of the script, in either of its forms.

        Raises:
            UsageError: something in the script is no reply.
        """
        given: ScriptLike = script or {}
        inner = given.get("replies")
        if isinstance(inner, Mapping):
            given = cast(ScriptLike, inner)
        replies: dict[str, Sequence[ReplyLike | Answer]] = {}
        for model, written in given.items():
            if isinstance(written, str) or not isinstance(written, Sequence):
                raise UsageError(f"the replies of model {model} in a script are no list")
            listed = cast(Sequence[ReplyLike | Answer], written)
            replies[model] = [r if callable(r) else reply_of(r) for r in listed]
        return cls(replies, strict)

    def next(self, model: str, body: dict[str, JsonValue]) -> Reply | None:
        """The next reply of that model; None where a strict script has none left."""
        seen = self.calls.setdefault(model, [])
        seen.append(body)
        scripted = self.replies.get(model, ())
        if len(seen) <= len(scripted):
            written = scripted[len(seen) - 1]
            return reply_of(written(body) if callable(written) else written)
        return None if self.strict else Reply(f"{model} reply {len(seen)}")

    def unused(self) -> dict[str, int]:
        """How many replies of each model were not asked for; models with none are left out."""
        left = {m: len(r) - len(self.calls.get(m, ())) for m, r in self.replies.items()}
        return {model: count for model, count in left.items() if count > 0}
