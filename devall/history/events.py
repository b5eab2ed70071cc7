"""The events of a run as they stand in its events.jsonl, as values again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar, cast

from devall.core.events import Event, RunStarted
from devall.core.messages import JsonValue, Message, from_json
from devall.core.outcome import ErrorReport, Outcome
from devall.core.shape import GraphShape
from devall.core.shape import from_json as shape_from_json
from devall.core.usage import TokenUsage, Usage
from devall.telemetry.hidden import kept_out
from devall.telemetry.run_log import KINDS, read_events

Value = TypeVar("Value")


def events_of(folder: Path) -> list[Event]:
    """All events in a run's folder, those of every process that was at the run.

    Raises:
        OSError: there are none, or a part of one is gone.
    """
    return [event for line in read_events(folder) if (event := event_of(line)) is not None]


def last_turn(events: Iterable[Event]) -> list[Event]:
    """The events of the last process at the run: it tells again all that was done before."""
    found: list[Event] = []
    for event in events:
        if isinstance(event, RunStarted):
            found = []
        found.append(event)
    return found


def event_of(line: Mapping[str, JsonValue]) -> Event | None:
    """The event of a line; None: a newer devall wrote it, and this one does not know it."""
    kind = KINDS.get(str(line.get("event")))
    if kind is None:
        return None
    values = {
        each.name: _READERS.get((kind.__name__, each.name), _READERS.get(each.name, _as_it_is))(
            line[each.name]
        )
        for each in fields(kind)
        if each.name in line
    }
    try:
        return kind(**values)
    except TypeError:
        return None


def hidden_text(value: Mapping[str, JsonValue]) -> str:
    """What stands where a text is kept out of logs (`log_output: false`)."""
    return kept_out(value.get("chars", "?"))


def _messages(value: JsonValue) -> tuple[Message, ...]:
    return tuple(map(_message, value))


def _message(value: dict[str, JsonValue]) -> Message:
    content = value.get("content", "")
    if isinstance(content, Mapping):
        value = {**value, "content": hidden_text(cast("Mapping[str, JsonValue]", content))}
    return from_json(value)


def _reply(value: dict[str, JsonValue] | None) -> Message | None:
    return None if value is None else _message(value)


def _graph(value: Mapping[str, JsonValue] | None) -> GraphShape | None:
    return None if value is None else shape_from_json(value)


def _text(value: JsonValue) -> JsonValue:
    """A text; one that is hidden, or in a file that was not read, is only described."""
    if not isinstance(value, Mapping):
        return value
    about = cast("Mapping[str, JsonValue]", value)
    return hidden_text(about) if about.get("hidden") else f"({about.get('bytes')} bytes)"


def _outcome(value: Mapping[str, JsonValue]) -> Outcome:
    error = value.get("error")
    return Outcome(
        value["status"],
        value["exit_code"],
        None if error is None else _known(ErrorReport, error),
        tuple((path, question) for path, question in value.get("waiting", ())),
    )


def _tokens(value: Mapping[str, JsonValue] | None) -> TokenUsage | None:
    return None if value is None else _known(TokenUsage, value)


def _usage(value: Mapping[str, JsonValue]) -> Usage:
    return _known(Usage, value)


def _known(kind: type[Value], value: Mapping[str, JsonValue]) -> Value:
    """The value of a dataclass; keys that it does not have are left out."""
    names = {each.name for each in fields(cast("Any", kind))}
    return kind(**{key: each for key, each in value.items() if key in names})


def _as_it_is(value: JsonValue) -> JsonValue:
    return value


_READERS: dict[str | tuple[str, str], Callable[[Any], Any]] = {
    "inputs": _messages,
    "outputs": _messages,
    "messages": _messages,
    "reply": _reply,
    "tools": tuple,
    "answer": _text,
    "task": _text,
    "outcome": _outcome,
    "usage": _tokens,
    ("RunFinished", "usage"): _usage,
    "estimate": _tokens,
    "nodes": tuple,
    "graph": _graph,
    "loop": tuple,
    "changed": tuple,
    "following": tuple,
}
