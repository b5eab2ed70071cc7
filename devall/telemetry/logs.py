"""Events as log lines, by structlog: logs/<run>/run.log, or a stream."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Collection, MutableMapping
from pathlib import Path
from typing import Any, Literal, TextIO, cast

from devall.core.events import (
    EdgeFired,
    EmbeddingFinished,
    Event,
    HistoryCut,
    HumanAnswered,
    HumanAsked,
    LoopLeft,
    LoopRound,
    MemoryIndexed,
    ModelCallDelayed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    RunFinished,
    RunResumed,
    RunStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
    ToolProgress,
    UnitFailed,
    UnitFinished,
    UnitStarted,
    Warned,
)
from devall.telemetry.hidden import HiddenOutputs
from devall.telemetry.redaction import Redactor
from devall.telemetry.run_log import encode, event_name, open_private, private_folder

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]

FILE_NAME = "run.log"
_WORDS = frozenset({"arguments", "error", "message", "output", "question"})
"""Fields of lines that hold what somebody has said."""
LONGEST = 200
"""Characters of a text in a line; whole texts stand in events.jsonl."""

_Fields = dict[str, Any]
_Event = MutableMapping[str, Any]
_DEBUG, _INFO, _WARNING, _ERROR = logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR


class LogLines:
    """Writes one line for each event of at least the given level; an instance is the sink.

    `2026-11-30T14:03:12.345Z INFO node_finished node=writer visit=1 seconds=0.42 chars=120`

    Lengths stand for texts, as bodies belong into events.jsonl; at DEBUG the beginning of a
    text is shown too, unless its node says `log_output: false`. The logger is this object's
    own: structlog's global configuration is neither used nor changed.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        level: LogLevel = "INFO",
        redactor: Redactor | None = None,
        hidden: Collection[str] = (),
    ) -> None:
        """Write to the stream; `hidden` are nodes with `log_output: false`, `S/X` in a subgraph."""
        import structlog  # 0.2 s, which only a run should pay

        self._stream = stream
        self._is_own = False
        self._redactor = redactor or Redactor()
        self._hidden = HiddenOutputs(hidden)
        self._level: int = getattr(logging, level)
        self._second = 0
        self._second_text = ""
        self._logger: Any = structlog.wrap_logger(
            _Lines(stream),
            processors=[self._clean, self._render],
            wrapper_class=structlog.make_filtering_bound_logger(self._level),
            context_class=dict,
            cache_logger_on_first_use=True,
        ).bind()

    @classmethod
    def to_file(
        cls,
        folder: Path,
        *,
        level: LogLevel = "INFO",
        redactor: Redactor | None = None,
        hidden: Collection[str] = (),
    ) -> LogLines:
        """Lines at the end of `run.log` in a run's folder, private to the user.

        Raises:
            OSError: the folder or file cannot be made.
        """
        handle = open_private(private_folder(folder) / FILE_NAME)
        stream = os.fdopen(
            handle, "a", buffering=1, encoding="utf-8", errors="backslashreplace", newline="\n"
        )
        lines = cls(stream, level=level, redactor=redactor, hidden=hidden)
        lines._is_own = True
        return lines

    def __call__(self, event: Event, /) -> None:
        """Write the event's line, if its level is high enough."""
        is_any_hidden = self._hidden.learn(event)
        level, shown = _describe(event, self._level)
        if level < self._level:
            return
        if is_any_hidden:
            for name in _WORDS.intersection(shown):
                shown[name] = self._hidden.covered(shown[name])
        self._logger.log(level, event_name(type(event)), at=event.at, **shown)

    def close(self) -> None:
        """Close the file, where this object opened it."""
        if self._is_own:
            self._stream.close()

    def _clean(self, _logger: object, _method: str, fields: _Event) -> _Event:
        """Secrets go before texts are shortened: half a secret would not be found."""
        for name, value in fields.items():
            if isinstance(value, str):
                fields[name] = self._redactor.text(value)
            elif isinstance(value, dict | list):
                fields[name] = self._redactor.value(value)
        return fields

    def _render(self, _logger: object, method: str, fields: _Event) -> str:
        at, name = fields.pop("at"), fields.pop("event")
        words = [self._time(at), method.upper(), name]
        words += [f"{key}={_written(value)}" for key, value in fields.items()]
        return " ".join(words)

    def _time(self, at: float) -> str:
        second = int(at)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second))
        return f"{self._second_text}.{int(at * 1000) % 1000:03d}Z"


class _Lines:
    """What structlog writes to: a stream, one call a line."""

    def __init__(self, stream: TextIO) -> None:
        self._write = stream.write

    def debug(self, line: str) -> None:
        self._write(line + "\n")

    info = warning = error = critical = debug


def _written(value: object) -> str:
    match value:
        case bool() | int():
            return str(value).lower()
        case float():
            return f"{value:.3f}".rstrip("0").rstrip(".")
        case None:
            return "-"
        case tuple():
            return _written(",".join(map(str, cast(tuple[object, ...], value))))
        case str():
            short = value if len(value) <= LONGEST else value[: LONGEST - 1] + "…"
            is_plain = short and short.isprintable() and not set(short) & set(' "=')
            return short if is_plain else json.dumps(short, ensure_ascii=not short.isprintable())
        case _:
            return _written(encode(value))


_PLAIN: dict[type[Event], tuple[int, tuple[str, ...]]] = {
    NodeStarted: (_DEBUG, ("node", "visit")),
    NodeSkipped: (_INFO, ("node",)),
    UnitStarted: (_DEBUG, ("node", "unit", "units", "layer")),
    UnitFinished: (_DEBUG, ("node", "unit", "units", "layer", "seconds")),
    UnitFailed: (_WARNING, ("node", "unit", "units", "layer", "code", "message", "continued")),
    EdgeFired: (_DEBUG, ("source", "target", "edge")),
    LoopRound: (_INFO, ("loop", "round")),
    LoopLeft: (_INFO, ("loop", "rounds", "exited")),
    HumanAsked: (_INFO, ("node", "question")),
    Warned: (_WARNING, ("code", "node", "message")),
    ModelCallStarted: (_DEBUG, ("node", "model", "turn", "attempt")),
    ModelCallFailed: (_WARNING, ("node", "model", "turn", "attempt", "message", "wait")),
    ModelCallDelayed: (_INFO, ("node", "model", "turn", "seconds")),
    HistoryCut: (_INFO, ("node", "turn", "left_out", "shortened", "tokens", "most")),
    ToolCallStarted: (_DEBUG, ("node", "tool", "call_id", "arguments")),
    EmbeddingFinished: (_DEBUG, ("store", "model", "texts", "seconds", "usd")),
    MemoryIndexed: (_INFO, ("store", "done", "files", "passages")),
    ToolProgress: (_DEBUG, ("node", "tool", "call_id", "progress", "total", "message")),
    TextDelta: (-1, ()),
}
"""Events whose line holds fields as they are, with their level."""


def _describe(event: Event, at_level: int) -> tuple[int, _Fields]:
    """The level of an event, and what its line says."""
    plain = _PLAIN.get(type(event))
    if plain is not None:
        return plain[0], {name: getattr(event, name) for name in plain[1]}
    match event:
        case NodeFinished():
            return _INFO, _finished(event, at_level)
        case NodeFailed():
            names = ("node", "visit", "seconds", "code", "message", "continued")
            shown = {name: getattr(event, name) for name in names}
            return _WARNING if event.continued else _ERROR, shown
        case ModelCallFinished():
            return _INFO, _model_call(event)
        case ToolCallFinished():
            names = ("node", "tool", "call_id", "seconds")
            shown = {name: getattr(event, name) for name in names}
            if event.is_error:
                return _WARNING, {**shown, "error": event.result}
            return _INFO, {**shown, "chars": len(event.result)}
        case HumanAnswered():
            return _INFO, {"node": event.node, "chars": len(event.answer)}
        case RunResumed():
            again = [*event.changed, *event.following]
            return _INFO, {"turn": event.turn, "kept": event.kept, "again": again}
        case RunStarted():
            shown = {"run": event.run_id, "workflow": event.workflow, "nodes": len(event.nodes)}
            return _INFO, shown
        case RunFinished():
            return _run_finished(event)
        case _:
            return _DEBUG, {"path": event.path}


def _model_call(event: ModelCallFinished) -> _Fields:
    names = ("node", "model", "turn", "seconds", "finish_reason")
    shown = {name: getattr(event, name) for name in names}
    if event.usage is not None:
        shown["input_tokens"] = event.usage.input_tokens
        shown["output_tokens"] = event.usage.output_tokens
    if event.usd is not None:
        shown["usd"] = event.usd
    return shown


def _finished(event: NodeFinished, at_level: int) -> _Fields:
    texts = [message.text for message in event.outputs]
    shown: _Fields = {
        "node": event.node,
        "visit": event.visit,
        "seconds": event.seconds,
        "outputs": len(texts),
        "chars": sum(map(len, texts)),
    }
    if at_level <= _DEBUG and texts and event.log_output:
        shown["output"] = texts[-1]
    return shown


def _run_finished(event: RunFinished) -> tuple[int, _Fields]:
    outcome = event.outcome
    shown: _Fields = {
        "run": event.run_id,
        "status": outcome.status,
        "exit_code": outcome.exit_code,
        "seconds": event.seconds,
        "model_calls": event.usage.model_calls,
        "tool_calls": event.usage.tool_calls,
        "input_tokens": event.usage.input_tokens,
        "output_tokens": event.usage.output_tokens,
        "usd": event.usage.usd,
    }
    if outcome.error is not None:
        shown |= {"code": outcome.error.code, "error": outcome.error.message}
    if outcome.status == "completed":
        return _INFO, shown
    return _WARNING if outcome.status == "waiting" else _ERROR, shown
