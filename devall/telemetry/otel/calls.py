"""Spans of model calls, tool calls and waits for humans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count as numbers
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.trace import SpanKind

from devall.core.events import (
    Event,
    HistoryCut,
    HumanAnswered,
    HumanAsked,
    ModelCallDelayed,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    TextDelta,
    ToolCallFinished,
    ToolCallStarted,
)
from devall.core.usage import TokenUsage
from devall.telemetry.otel import names
from devall.telemetry.otel.scene import OTHER, Scene, count, sum_up, words
from devall.telemetry.otel.tree import Opened, Value


class Calls:
    """Tells of what nodes ask of others."""

    def __init__(self, scene: Scene) -> None:
        """Begin with no call."""
        self._scene = scene
        self._replayed: set[tuple[str, int]] = set()
        """Model calls, by path and turn, that stand in the journal."""
        self._streams: dict[str, Opened] = {}
        """Model calls of which nothing has come in yet, by path."""
        self._first: dict[str, float] = {}
        """Seconds until the first piece came in, by the key of the call."""
        self._asked = numbers()

    @property
    def takes(self) -> Mapping[type[Event], Callable[[Any], None]]:
        """What is done with which event."""
        return {
            ModelCallStarted: self._model_started,
            ModelCallFailed: self._model_failed,
            ModelCallFinished: self._model_finished,
            ModelCallDelayed: self._model_delayed,
            TextDelta: self._text_came,
            HistoryCut: self._history_cut,
            ToolCallStarted: self._tool_started,
            ToolCallFinished: self._tool_finished,
            HumanAsked: self._human_asked,
            HumanAnswered: self._human_answered,
        }

    def _model_started(self, event: ModelCallStarted) -> None:
        node = self._scene.tree.around(event.path)
        said: dict[str, str] = {}
        if self._scene.content is not None:
            body = self._scene.seen(event, "messages")
            first = event.turn == 1 and event.attempt == 1
            said = self._scene.content.asked(
                event.path, body["messages"], event.tools, is_first=first
            )
        if event.replayed:
            if (event.path, event.turn) not in self._replayed:
                self._replayed.add((event.path, event.turn))
                count(node, names.REPLAYED)
            return
        count(node, names.LIVE)
        count(node, names.MODEL_CALLS)
        labels: dict[str, Value] = {
            names.OPERATION: "chat",
            names.PROVIDER: names.provider_name(event.provider),
            names.REQUEST_MODEL: event.model,
            **_server(event.server),
        }
        opened = self._scene.tree.begin(
            _model_key(event),
            f"chat {event.model}",
            {
                **labels,
                names.AGENT: event.node,
                names.CONVERSATION: self._scene.run,
                names.TURN: event.turn,
                names.ATTEMPT: event.attempt,
                **said,
            },
            event.at,
            parent=node,
            kind=SpanKind.CLIENT,
        )
        opened.labels = labels
        self._streams[event.path] = opened

    def _model_failed(self, event: ModelCallFailed) -> None:
        opened = self._call_of(event)
        if opened is None:
            return
        body = self._scene.seen(event, "message")
        error = event.code or OTHER
        message = words(body["message"])
        more: dict[str, Value] = {names.ERROR: error}
        usage = event.usage
        first = self._first.pop(opened.key, None)
        self._scene.measures.call(opened, event.at - opened.at, more, usage, first)
        sum_up(opened.parent, usage, event.usd)
        if usage is not None and usage.tokens:
            more |= _used(usage, event.usd)
        self._scene.tree.end(opened, event.at, more, failed=message)
        if event.wait is None:
            return
        about: dict[str, Value] = {
            names.ATTEMPT: event.attempt,
            names.ERROR: error,
            "devall.wait": event.wait,
            "devall.message": message,
        }
        self._scene.note(event, "devall.retry", about)

    def _model_finished(self, event: ModelCallFinished) -> None:
        said: dict[str, str] = {}
        body = self._scene.seen(event, "reply")
        if self._scene.content is not None:
            said = self._scene.content.answered(event.path, body["reply"], event.finish_reason)
        opened = self._call_of(event)
        if event.replayed or opened is None:
            self._replayed.discard((event.path, event.turn))
            return
        more: dict[str, Value] = {}
        if event.answered_by:
            more[names.RESPONSE_MODEL] = event.answered_by
        first = self._first.pop(opened.key, None)
        self._scene.measures.call(opened, event.at - opened.at, more, event.usage, first)
        sum_up(opened.parent, event.usage, event.usd)
        if event.finish_reason:
            more[names.FINISH_REASONS] = [event.finish_reason]
        if first is not None:
            more[names.FIRST_CHUNK] = first
        more |= _used(event.usage, event.usd)
        self._scene.tree.end(opened, event.at, {**more, **said})

    def _model_delayed(self, event: ModelCallDelayed) -> None:
        about: dict[str, Value] = {
            names.REQUEST_MODEL: event.model,
            "devall.wait": event.seconds,
        }
        self._scene.note(event, "devall.delay", about)

    def _text_came(self, event: TextDelta) -> None:
        opened = self._streams.pop(event.path, None)
        if opened is not None:
            self._first[opened.key] = max(event.at - opened.at, 0.0)

    def _history_cut(self, event: HistoryCut) -> None:
        about: dict[str, Value] = {
            "devall.left_out": event.left_out,
            "devall.shortened": event.shortened,
            "devall.tokens": event.tokens,
            "devall.most": event.most,
        }
        self._scene.note(event, "devall.history.cut", about)

    def _call_of(self, event: ModelCallFailed | ModelCallFinished) -> Opened | None:
        """The attempt that is over, which is the newest."""
        self._streams.pop(event.path, None)
        if (event.path, event.turn) in self._replayed:
            return None
        return self._scene.tree.get(_model_key(event))

    def _tool_started(self, event: ToolCallStarted) -> None:
        labels: dict[str, Value] = {names.OPERATION: "execute_tool", names.TOOL: event.tool}
        attributes: dict[str, Value] = {
            **labels,
            names.TOOL_CALL: event.call_id,
            names.TOOL_TYPE: "function",
            names.AGENT: event.node,
            names.CONVERSATION: self._scene.run,
        }
        if event.server:
            # The client of MCP makes no span of its own for the call: this one is its, too.
            attributes |= {names.MCP_METHOD: "tools/call", **_mcp(event.server)}
        if self._scene.content is not None:
            body = self._scene.seen(event, "arguments")
            attributes[names.TOOL_ARGUMENTS] = self._scene.content.value(body["arguments"])
        opened = self._scene.tree.begin(
            _tool_key(event),
            f"execute_tool {event.tool}",
            attributes,
            event.at,
            parent=self._scene.tree.around(event.path),
        )
        opened.labels = labels

    def _tool_finished(self, event: ToolCallFinished) -> None:
        opened = self._scene.tree.get(_tool_key(event))
        if opened is None:
            return
        node = opened.parent
        if event.replayed:
            count(node, names.REPLAYED)
            self._scene.tree.discard(opened)
            return
        count(node, names.LIVE)
        count(node, names.TOOL_CALLS)
        more: dict[str, Value] = {names.ERROR: "tool_error"} if event.is_error else {}
        self._scene.measures.tool(opened, event.at - opened.at, more)
        if self._scene.content is not None:
            body = self._scene.seen(event, "result")
            more[names.TOOL_RESULT] = self._scene.content.value(body["result"])
        self._scene.tree.end(opened, event.at, more, failed="" if event.is_error else None)

    def _human_asked(self, event: HumanAsked) -> None:
        node = self._scene.tree.around(event.path)
        self._scene.tree.begin(
            f"{event.path}#human:{next(self._asked)}",
            f"wait_for_human {event.node}",
            {names.NODE: event.node},
            event.at,
            parent=node,
            is_current=False,
        )

    def _human_answered(self, event: HumanAnswered) -> None:
        self._scene.hidden.learn(event)
        node = self._scene.tree.around(event.path)
        for each in [*node.inside.values()] if node else ():
            if each.key.startswith(f"{event.path}#human:"):
                self._scene.tree.end(each, event.at, {names.STATUS: "answered"})
                return


def _model_key(event: ModelCallStarted | ModelCallFailed | ModelCallFinished) -> str:
    return f"{event.path}#model:{event.turn}"


def _tool_key(event: ToolCallStarted | ToolCallFinished) -> str:
    return f"{event.path}#tool:{event.call_id}"


def _used(usage: TokenUsage | None, usd: float | None) -> dict[str, Value]:
    """What one call has used, as attributes."""
    found: dict[str, Value] = {}
    if usage is not None:
        found |= {names.INPUT_TOKENS: usage.input_tokens, names.OUTPUT_TOKENS: usage.output_tokens}
        if usage.cached_tokens:
            found[names.CACHED_TOKENS] = usage.cached_tokens
        if usage.reasoning_tokens:
            found[names.REASONING_TOKENS] = usage.reasoning_tokens
    if usd is not None:
        found[names.USD] = usd
    return found


def _server(server: str) -> dict[str, Value]:
    """Host and port, as attributes."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdigit():
        return {names.SERVER: server} if server else {}
    return {names.SERVER: host.strip("[]"), names.PORT: int(port)}


def _mcp(server: str) -> dict[str, Value]:
    """Where an MCP server is: by its URL, or at the other end of a pipe."""
    if not server.startswith(("http://", "https://")):
        return {names.TRANSPORT: "pipe"}
    parts = urlsplit(server)
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return {names.TRANSPORT: "tcp", names.SERVER: parts.hostname or "", names.PORT: port}
