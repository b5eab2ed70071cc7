"""What earlier processes of a run were charged for, and no journal holds.

Those are model calls that were not brought to an end, which a run that is resumed makes again,
and the vectors that memory stores asked for.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from devall.core.events import EmbeddingFinished, ModelCallFailed, ModelCallStarted
from devall.core.messages import JsonValue
from devall.core.usage import TokenUsage
from devall.telemetry.run_log import FILE_NAME

_MARKS = '"event":"model_call_', '"event":"embedding_finished"'

Attempt = ModelCallStarted | ModelCallFailed | EmbeddingFinished
"""A call that was never heard of again, one that failed before such a one, or vectors."""


def lost_attempts(folder: Path) -> tuple[Attempt, ...]:
    """The vectors, and the attempts of unfinished calls, by the run's events.jsonl; none where there is no such."""
    try:
        with (folder / FILE_NAME).open(encoding="utf-8", errors="replace") as file:
            return tuple(_unfinished(_model_calls(file)))
    except OSError:
        return ()


def _model_calls(lines: Iterable[str]) -> Iterator[dict[str, JsonValue]]:
    for line in lines:
        if any(mark in line for mark in _MARKS):
            try:
                yield cast("dict[str, JsonValue]", json.loads(line))
            except json.JSONDecodeError:  # torn by the end of its process
                continue


def _unfinished(events: Iterable[dict[str, JsonValue]]) -> Iterator[Attempt]:
    pending: dict[tuple[str, int], list[Attempt]] = {}
    for event in events:
        if event["event"] == "embedding_finished":
            yield _embedding(event)
            continue
        key = event["path"], event["turn"]
        match event["event"]:
            case "model_call_started":
                if event["attempt"] == 1:
                    yield from pending.pop(key, ())
                pending.setdefault(key, []).append(ModelCallStarted(**_named(event)))
            case "model_call_failed" if pending.get(key):
                pending[key][-1] = ModelCallFailed(
                    **_named(event),
                    message="",
                    usage=_usage(event),
                    usd=event.get("usd"),
                )
            case "model_call_finished":
                pending.pop(key, None)
            case _:
                pass
    for attempts in pending.values():
        yield from attempts


def _embedding(event: dict[str, JsonValue]) -> EmbeddingFinished:
    names = ("store", "provider", "model", "texts", "seconds", "usd")
    return EmbeddingFinished(**{name: event[name] for name in names}, usage=_usage(event))


def _usage(event: dict[str, JsonValue]) -> TokenUsage | None:
    usage: JsonValue = event.get("usage")
    return TokenUsage(**usage) if usage else None


def _named(event: dict[str, JsonValue]) -> dict[str, JsonValue]:
    names = ("path", "node", "provider", "model", "turn", "attempt")
    return {name: event[name] for name in names}
