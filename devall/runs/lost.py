"""Model calls that earlier processes of a run made and did not bring to an end.

No journal holds them, so a run that is resumed makes them again; they were charged all the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import cast

from devall.core.events import ModelCallFailed, ModelCallStarted
from devall.core.messages import JsonValue
from devall.core.usage import TokenUsage
from devall.telemetry.run_log import FILE_NAME

_MARK = '"event":"model_call_'

Attempt = ModelCallStarted | ModelCallFailed
"""One that was never heard of again, or one that failed before such a one."""


def lost_attempts(folder: Path) -> tuple[Attempt, ...]:
    """The attempts of unfinished calls by the run's events.jsonl; none where there is no such."""
    try:
        with (folder / FILE_NAME).open(encoding="utf-8", errors="replace") as file:
            return tuple(_unfinished(_model_calls(file)))
    except OSError:
        return ()


def _model_calls(lines: Iterable[str]) -> Iterator[dict[str, JsonValue]]:
    for line in lines:
        if _MARK in line:
            try:
                yield cast("dict[str, JsonValue]", json.loads(line))
            except json.JSONDecodeError:  # torn by the end of its process
                continue


def _unfinished(events: Iterable[dict[str, JsonValue]]) -> Iterator[Attempt]:
    pending: dict[tuple[str, int], list[Attempt]] = {}
    for event in events:
        key = event["path"], event["turn"]
        match event["event"]:
            case "model_call_started":
                if event["attempt"] == 1:
                    yield from pending.pop(key, ())
                pending.setdefault(key, []).append(ModelCallStarted(**_named(event)))
            case "model_call_failed" if pending.get(key):
                usage: JsonValue = event.get("usage")
                pending[key][-1] = ModelCallFailed(
                    **_named(event),
                    message="",
                    usage=TokenUsage(**usage) if usage else None,
                    usd=event.get("usd"),
                )
            case "model_call_finished":
                pending.pop(key, None)
            case _:
                pass
    for attempts in pending.values():
        yield from attempts


def _named(event: dict[str, JsonValue]) -> dict[str, JsonValue]:
    names = ("path", "node", "provider", "model", "turn", "attempt")
    return {name: event[name] for name in names}
