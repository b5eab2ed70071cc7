"""Makes spans and measurements of a run's events, by the GenAI semantic conventions."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext, SpanKind

from devall.core.events import (
    Event,
    GraphShape,
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
    UnitFailed,
    UnitFinished,
    UnitStarted,
    Warned,
)
from devall.core.usage import TokenUsage
from devall.telemetry.hidden import HiddenOutputs
from devall.telemetry.otel import names
from devall.telemetry.otel.content import Content
from devall.telemetry.otel.measures import Measures
from devall.telemetry.otel.tree import Attributes, Opened, Tree, Value

_OTHER = "_OTHER"
"""What the conventions call an error of no known kind."""
_ENDED_IN_ERROR = frozenset({"failed", "limit_reached", "cancelled"})


class Spans:
    """A sink that tells OpenTelemetry what happens in a run."""

    def __init__(
        self,
        tree: Tree,
        measures: Measures,
        hidden: HiddenOutputs,
        content: Content | None = None,
        *,
        parent: Context | None = None,
        earlier: SpanContext | None = None,
        on_start: Callable[[SpanContext], None] = lambda _: None,
    ) -> None:
        """Make a sink for one run.

        Args:
            tree: Holds the spans that have begun.
            measures: The instruments.
            hidden: What nodes with `log_output: false` have said.
            content: Tells what is said as well; None: nothing of it.
            parent: Where the run's span belongs; None: to what is current, if anything is.
            earlier: The run's span in the process that began it, or went on with it before.
            on_start: Takes the run's span.
        """
        self._tree = tree
        self._measures = measures
        self._hidden = hidden
        self._content = content
        self._parent = parent
        self._earlier = earlier
        self._on_start = on_start
        self._run = ""
        self._root: Opened | None = None
        self._kinds: dict[str, str] = {}
        """Types of nodes by name."""
        self._rounds: dict[tuple[str, str], int] = {}
        """By the path of the graph and the id of the node: the round of the innermost loop."""
        self._replayed: set[tuple[str, int]] = set()
        """Model calls, by path and turn, that stand in the journal."""
        self._streams: dict[str, Opened] = {}
        """Model calls of which nothing has come in yet, by path."""
        self._first: dict[str, float] = {}
        """Seconds until the first piece came in, by the key of the call."""
        self._asked = count()
        self._takes: dict[type[Event], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunResumed: self._run_resumed,
            NodeStarted: self._node_started,
            NodeFinished: self._node_finished,
            NodeFailed: self._node_failed,
            NodeSkipped: self._node_skipped,
            UnitStarted: self._unit_started,
            UnitFinished: self._unit_finished,
            UnitFailed: self._unit_failed,
            LoopRound: self._loop_round,
            LoopLeft: self._loop_left,
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
            MemoryIndexed: self._memory_indexed,
            Warned: self._warned,
        }

    def __call__(self, event: Event, /) -> None:
        """Take an event, in the task that it happens in."""
        take = self._takes.get(type(event))
        if take is not None:
            take(event)

    def finish(self, event: RunFinished) -> None:
        """Let the run's span end; nothing of the run is told after that."""
        root = self._root
        if root is None:
            return
        outcome, usage = event.outcome, event.usage
        body = self._seen(event, "answer", "outcome")
        more: dict[str, Value] = {names.STATUS: outcome.status}
        failed: str | None = None
        if outcome.status in _ENDED_IN_ERROR:
            error = outcome.error
            more[names.ERROR] = error.code if error else outcome.status
            failed = self._message(body["outcome"])
        self._measures.run(root, event.seconds, more)
        sums: dict[str, Value] = {
            names.MODEL_CALLS: usage.model_calls,
            names.TOOL_CALLS: usage.tool_calls,
            names.INPUT_SUM: usage.input_tokens,
            names.OUTPUT_SUM: usage.output_tokens,
        }
        if usage.usd is not None:
            sums[names.USD] = usage.usd
        if self._content is not None and body["answer"] is not None:
            more[names.OUTPUT_MESSAGES] = self._content.message("assistant", body["answer"])
        left = "waiting" if outcome.status == "waiting" else "cancelled"
        self._end(root, event.at, {**more, **sums}, failed=failed, left=left)
        self._root = None

    def drop(self) -> None:
        """Let everything go that has not ended: the run broke off."""
        root = self._root
        if root is not None:
            self._end(root, time.time(), {names.STATUS: "cancelled"})
            self._root = None

    # The run

    def _run_started(self, event: RunStarted) -> None:
        self._run = event.run_id
        graph = event.graph
        name = (graph.id if graph else "") or Path(event.workflow).stem
        if graph is not None:
            self._kinds = dict(_kinds(graph))
        body = self._seen(event, "task")
        attributes: dict[str, Value] = {
            names.OPERATION: "invoke_workflow",
            names.WORKFLOW: name,
            names.AGENT: name,
            names.CONVERSATION: event.run_id,
            names.RUN: event.run_id,
            names.FILE: Path(event.workflow).name,
        }
        if self._content is not None and event.task:
            attributes[names.INPUT_MESSAGES] = self._content.message("user", body["task"])
        links = [Link(self._earlier, {names.RUN: event.run_id})] if self._earlier else []
        self._root = self._tree.begin(
            "", f"invoke_workflow {name}", attributes, event.at, links=links, context=self._parent
        )
        self._root.labels[names.WORKFLOW] = name
        self._on_start(self._root.span.get_span_context())

    def _run_resumed(self, event: RunResumed) -> None:
        self._note(
            event,
            "devall.resumed",
            {
                names.PROCESS: event.turn,
                "devall.kept_steps": event.kept,
                "devall.changed": list(event.changed),
                "devall.following": list(event.following),
            },
        )
        if self._root is not None:
            self._root.span.set_attribute(names.PROCESS, event.turn)

    # Nodes and units

    def _node_started(self, event: NodeStarted) -> None:
        above = event.path.rpartition("/")[0]
        kind = self._kinds.get(event.node, "")
        attributes: dict[str, Value] = {
            names.NODE: event.node,
            names.PATH: event.path,
            names.VISIT: event.visit,
        }
        if kind:
            attributes[names.KIND] = kind
        round_ = self._rounds.get((above, event.node.rpartition("/")[2]))
        if round_ is not None:
            attributes[names.ROUND] = round_
        operation = _OPERATIONS.get(kind, "")
        if operation:
            attributes[names.OPERATION] = operation
            attributes[names.AGENT] = event.node
            attributes[names.CONVERSATION] = self._run
            if kind == "subgraph":
                attributes[names.WORKFLOW] = event.node
        name = f"{operation or kind or 'node'} {event.node}"
        opened = self._tree.begin(
            event.path, name, attributes, event.at, parent=self._tree.around(above)
        )
        opened.labels |= {names.NODE: event.node, names.KIND: kind} if kind else {}

    def _node_finished(self, event: NodeFinished) -> None:
        self._hidden.learn(event)
        opened = self._tree.get(event.path)
        if opened is None:
            return
        self._measure_node(opened, event.seconds, {names.STATUS: "completed"})
        self._end(opened, event.at, {names.STATUS: "completed", **_sums(opened)})

    def _node_failed(self, event: NodeFailed) -> None:
        opened = self._tree.get(event.path)
        if opened is None:
            return
        body = self._seen(event, "message")
        more: dict[str, Value] = {names.STATUS: "failed", names.ERROR: event.code or _OTHER}
        self._measure_node(opened, event.seconds, more)
        more |= {names.CONTINUED: event.continued, **_sums(opened)}
        self._end(opened, event.at, more, failed=self._message(body["message"]))

    def _node_skipped(self, event: NodeSkipped) -> None:
        self._note(event, "devall.node.skipped", {names.NODE: event.node})

    def _unit_started(self, event: UnitStarted) -> None:
        above = event.path.rpartition("/")[0]
        attributes: dict[str, Value] = {
            names.NODE: event.node,
            names.PATH: event.path,
            names.UNIT: event.unit,
            names.UNITS: event.units,
        }
        if event.layer:
            attributes[names.LAYER] = event.layer
        self._tree.begin(
            event.path,
            f"unit {event.node}",
            attributes,
            event.at,
            parent=self._tree.around(above),
        )

    def _unit_finished(self, event: UnitFinished) -> None:
        self._hidden.learn(event)
        opened = self._tree.get(event.path)
        if opened is not None:
            self._end(opened, event.at, {names.STATUS: "completed", **_sums(opened)})

    def _unit_failed(self, event: UnitFailed) -> None:
        opened = self._tree.get(event.path)
        if opened is None:
            return
        body = self._seen(event, "message")
        more: dict[str, Value] = {
            names.STATUS: "failed",
            names.ERROR: event.code or _OTHER,
            names.CONTINUED: event.continued,
            **_sums(opened),
        }
        self._end(opened, event.at, more, failed=self._message(body["message"]))

    def _measure_node(self, opened: Opened, seconds: float, more: Attributes) -> None:
        sums = opened.sums
        if sums.get(names.REPLAYED) and not sums.get("live"):
            return  # it was measured in the process that did its work
        self._measures.node(opened, seconds, more)

    # Loops

    def _loop_round(self, event: LoopRound) -> None:
        for node in event.loop:
            self._rounds[event.path, node] = event.round
        about: dict[str, Value] = {"devall.loop": list(event.loop), names.ROUND: event.round}
        self._note(event, "devall.loop.round", about)

    def _loop_left(self, event: LoopLeft) -> None:
        for node in event.loop:
            self._rounds.pop((event.path, node), None)
        about: dict[str, Value] = {
            "devall.loop": list(event.loop),
            "devall.loop.rounds": event.rounds,
            "devall.loop.exited": event.exited,
        }
        self._note(event, "devall.loop.left", about)

    # Model calls

    def _model_started(self, event: ModelCallStarted) -> None:
        node = self._tree.around(event.path)
        said: dict[str, str] = {}
        if self._content is not None:
            body = self._seen(event, "messages")
            first = event.turn == 1 and event.attempt == 1
            said = self._content.asked(event.path, body["messages"], event.tools, is_first=first)
        if event.replayed:
            if (event.path, event.turn) not in self._replayed:
                self._replayed.add((event.path, event.turn))
                _count(node, names.REPLAYED)
            return
        _count(node, "live")
        _count(node, names.MODEL_CALLS)
        labels: dict[str, Value] = {
            names.OPERATION: "chat",
            names.PROVIDER: names.provider_name(event.provider),
            names.REQUEST_MODEL: event.model,
            **_server(event.server),
        }
        opened = self._tree.begin(
            _model_key(event),
            f"chat {event.model}",
            {
                **labels,
                names.AGENT: event.node,
                names.CONVERSATION: self._run,
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
        body = self._seen(event, "message")
        error = event.code or _OTHER
        message = self._message(body["message"])
        more: dict[str, Value] = {names.ERROR: error}
        usage = event.usage
        first = self._first.pop(opened.key, None)
        self._measures.call(opened, event.at - opened.at, more, usage, first)
        self._use(opened.parent, usage, event.usd)
        if usage is not None and usage.tokens:
            more |= _used(usage, event.usd)
        self._tree.end(opened, event.at, more, failed=message)
        if event.wait is None:
            return
        about: dict[str, Value] = {
            names.ATTEMPT: event.attempt,
            names.ERROR: error,
            "devall.wait": event.wait,
            "devall.message": message,
        }
        self._note(event, "devall.retry", about)

    def _model_finished(self, event: ModelCallFinished) -> None:
        said: dict[str, str] = {}
        body = self._seen(event, "reply")
        if self._content is not None:
            said = self._content.answered(event.path, body["reply"], event.finish_reason)
        opened = self._call_of(event)
        if event.replayed or opened is None:
            self._replayed.discard((event.path, event.turn))
            return
        more: dict[str, Value] = {}
        if event.answered_by:
            more[names.RESPONSE_MODEL] = event.answered_by
        first = self._first.pop(opened.key, None)
        self._measures.call(opened, event.at - opened.at, more, event.usage, first)
        self._use(opened.parent, event.usage, event.usd)
        if event.finish_reason:
            more[names.FINISH_REASONS] = [event.finish_reason]
        if first is not None:
            more[names.FIRST_CHUNK] = first
        more |= _used(event.usage, event.usd)
        self._tree.end(opened, event.at, {**more, **said})

    def _model_delayed(self, event: ModelCallDelayed) -> None:
        about: dict[str, Value] = {
            names.REQUEST_MODEL: event.model,
            "devall.wait": event.seconds,
        }
        self._note(event, "devall.delay", about)

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
        self._note(event, "devall.history.cut", about)

    def _call_of(self, event: ModelCallFailed | ModelCallFinished) -> Opened | None:
        """The attempt that is over, which is the newest."""
        self._streams.pop(event.path, None)
        if (event.path, event.turn) in self._replayed:
            return None
        return self._tree.get(_model_key(event))

    @staticmethod
    def _use(node: Opened | None, usage: TokenUsage | None, usd: float | None) -> None:
        """Sum up for the node, and the unit, that a call was made for."""
        while node is not None and node.key:
            if usage is not None:
                node.add(names.INPUT_SUM, usage.input_tokens)
                node.add(names.OUTPUT_SUM, usage.output_tokens)
            if usd is not None:
                node.add(names.USD, usd)
            node = node.parent

    # Tools and humans

    def _tool_started(self, event: ToolCallStarted) -> None:
        labels: dict[str, Value] = {names.OPERATION: "execute_tool", names.TOOL: event.tool}
        attributes: dict[str, Value] = {
            **labels,
            names.TOOL_CALL: event.call_id,
            names.TOOL_TYPE: "function",
            names.AGENT: event.node,
            names.CONVERSATION: self._run,
        }
        if event.server:
            # The client of MCP makes no span of its own for the call: this one is its, too.
            attributes |= {names.MCP_METHOD: "tools/call", **_mcp(event.server)}
        if self._content is not None:
            body = self._seen(event, "arguments")
            attributes[names.TOOL_ARGUMENTS] = self._content.value(body["arguments"])
        opened = self._tree.begin(
            _tool_key(event),
            f"execute_tool {event.tool}",
            attributes,
            event.at,
            parent=self._tree.around(event.path),
        )
        opened.labels = labels

    def _tool_finished(self, event: ToolCallFinished) -> None:
        opened = self._tree.get(_tool_key(event))
        if opened is None:
            return
        node = opened.parent
        if event.replayed:
            _count(node, names.REPLAYED)
            self._tree.discard(opened)
            return
        _count(node, "live")
        _count(node, names.TOOL_CALLS)
        more: dict[str, Value] = {names.ERROR: "tool_error"} if event.is_error else {}
        self._measures.tool(opened, event.at - opened.at, more)
        if self._content is not None:
            body = self._seen(event, "result")
            more[names.TOOL_RESULT] = self._content.value(body["result"])
        self._tree.end(opened, event.at, more, failed="" if event.is_error else None)

    def _human_asked(self, event: HumanAsked) -> None:
        node = self._tree.around(event.path)
        self._tree.begin(
            f"{event.path}#human:{next(self._asked)}",
            f"wait_for_human {event.node}",
            {names.NODE: event.node},
            event.at,
            parent=node,
            is_current=False,
        )

    def _human_answered(self, event: HumanAnswered) -> None:
        self._hidden.learn(event)
        node = self._tree.around(event.path)
        for each in [*node.inside.values()] if node else ():
            if each.key.startswith(f"{event.path}#human:"):
                self._tree.end(each, event.at, {names.STATUS: "answered"})
                return

    # The rest

    def _memory_indexed(self, event: MemoryIndexed) -> None:
        if event.done < event.files:
            return
        about: dict[str, Value] = {
            "devall.store": event.store,
            "devall.files": event.files,
            "devall.passages": event.passages,
        }
        self._note(event, "devall.memory.indexed", about)

    def _warned(self, event: Warned) -> None:
        body = self._seen(event, "message")
        about: dict[str, Value] = {
            "devall.code": event.code,
            "devall.message": self._message(body["message"]),
        }
        if event.node:
            about[names.NODE] = event.node
        self._note(event, "devall.warning", about)

    def _note(self, event: Event, name: str, about: Attributes) -> None:
        """An event of the span that it lies in."""
        opened = self._tree.around(event.path)
        if opened is not None:
            self._tree.event(opened, name, about, event.at)

    def _seen(self, event: Event, *fields: str) -> dict[str, Any]:
        """Fields of an event without what nodes with `log_output: false` have said."""
        body = {field: getattr(event, field) for field in fields}
        self._hidden.cover(event, body)
        return body

    @staticmethod
    def _message(value: object) -> str:
        """What went wrong, in words."""
        match value:
            case str():
                return value
            case {"error": {"message": str(text)}}:
                return text
            case _:
                error = getattr(value, "error", None)
                return str(error.message) if error is not None else ""

    def _end(
        self,
        opened: Opened,
        at: float,
        attributes: Attributes,
        *,
        failed: str | None = None,
        left: str = "cancelled",
    ) -> None:
        """Let a span end that others may lie in, and forget what was kept for them."""
        for each in [opened, *self._tree.open_within(opened)]:
            self._first.pop(each.key, None)
            self._streams.pop(each.key, None)
            if self._content is not None:
                self._content.forget(each.key)
        self._tree.end(opened, at, attributes, failed=failed, left=left)


_OPERATIONS = {"agent": "invoke_agent", "subgraph": "invoke_workflow"}


def _kinds(graph: GraphShape, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The types of all nodes by name; those of a subgraph begin with its node's name."""
    for node in graph.nodes:
        yield prefix + node.id, node.type
        if node.graph is not None:
            yield from _kinds(node.graph, f"{prefix}{node.id}/")


def _model_key(event: ModelCallStarted | ModelCallFailed | ModelCallFinished) -> str:
    return f"{event.path}#model:{event.turn}"


def _tool_key(event: ToolCallStarted | ToolCallFinished) -> str:
    return f"{event.path}#tool:{event.call_id}"


def _count(opened: Opened | None, name: str) -> None:
    while opened is not None and opened.key:
        opened.add(name, 1)
        opened = opened.parent


def _sums(opened: Opened) -> dict[str, Value]:
    """What the calls of a node have used, as attributes."""
    whole = (n for n in opened.sums if n != "live")
    return {n: opened.sums[n] if n == names.USD else int(opened.sums[n]) for n in whole}


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
