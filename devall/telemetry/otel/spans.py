"""Makes spans and measurements of a run's events, by the GenAI semantic conventions."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from opentelemetry.context import Context
from opentelemetry.trace import Link, SpanContext

from devall.core.events import (
    Event,
    MemoryIndexed,
    RunFinished,
    RunResumed,
    RunStarted,
    Warned,
)
from devall.telemetry.otel import names
from devall.telemetry.otel.calls import Calls
from devall.telemetry.otel.nodes import Nodes
from devall.telemetry.otel.scene import Scene, words
from devall.telemetry.otel.tree import Opened, Value

_ENDED_IN_ERROR = frozenset({"failed", "limit_reached", "cancelled"})


class Spans:
    """A sink that tells OpenTelemetry what happens in a run."""

    def __init__(
        self,
        scene: Scene,
        *,
        parent: Context | None = None,
        earlier: SpanContext | None = None,
        on_start: Callable[[SpanContext], None] = lambda _: None,
    ) -> None:
        """Make a sink for one run.

        Args:
            scene: Its spans and instruments.
            parent: Where the run's span belongs; None: to what is current, if anything is.
            earlier: The run's span in the process that began it, or went on with it before.
            on_start: Takes the run's span.
        """
        self._scene = scene
        self._parent = parent
        self._earlier = earlier
        self._on_start = on_start
        self._root: Opened | None = None
        self._nodes = Nodes(scene)
        self._takes: dict[type[Event], Callable[[Any], None]] = {
            RunStarted: self._run_started,
            RunResumed: self._run_resumed,
            MemoryIndexed: self._memory_indexed,
            Warned: self._warned,
            **self._nodes.takes,
            **Calls(scene).takes,
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
        body = self._scene.seen(event, "answer", "outcome")
        more: dict[str, Value] = {names.STATUS: outcome.status}
        failed: str | None = None
        if outcome.status in _ENDED_IN_ERROR:
            error = outcome.error
            more[names.ERROR] = error.code if error else outcome.status
            failed = words(body["outcome"])
        self._scene.measures.run(root, event.seconds, more)
        sums: dict[str, Value] = {
            names.MODEL_CALLS: usage.model_calls,
            names.TOOL_CALLS: usage.tool_calls,
            names.INPUT_SUM: usage.input_tokens,
            names.OUTPUT_SUM: usage.output_tokens,
        }
        if usage.usd is not None:
            sums[names.USD] = usage.usd
        if self._scene.content is not None and body["answer"] is not None:
            more[names.OUTPUT_MESSAGES] = self._scene.content.message("assistant", body["answer"])
        left = "waiting" if outcome.status == "waiting" else "cancelled"
        self._scene.end(root, event.at, {**more, **sums}, failed=failed, left=left)
        self._root = None

    def drop(self) -> None:
        """Let everything go that has not ended: the run broke off."""
        root = self._root
        if root is not None:
            self._scene.end(root, time.time(), {names.STATUS: "cancelled"})
            self._root = None

    def _run_started(self, event: RunStarted) -> None:
        self._scene.run = event.run_id
        graph = event.graph
        name = (graph.id if graph else "") or Path(event.workflow).stem
        if graph is not None:
            self._nodes.know(graph)
        body = self._scene.seen(event, "task")
        attributes: dict[str, Value] = {
            names.OPERATION: "invoke_workflow",
            names.WORKFLOW: name,
            names.AGENT: name,
            names.CONVERSATION: event.run_id,
            names.RUN: event.run_id,
            names.FILE: Path(event.workflow).name,
        }
        if self._scene.content is not None and event.task:
            attributes[names.INPUT_MESSAGES] = self._scene.content.message("user", body["task"])
        links = [Link(self._earlier, {names.RUN: event.run_id})] if self._earlier else []
        self._root = self._scene.tree.begin(
            "", f"invoke_workflow {name}", attributes, event.at, links=links, context=self._parent
        )
        self._root.labels[names.WORKFLOW] = name
        self._on_start(self._root.span.get_span_context())

    def _run_resumed(self, event: RunResumed) -> None:
        self._scene.note(
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

    def _memory_indexed(self, event: MemoryIndexed) -> None:
        if event.done < event.files:
            return
        about: dict[str, Value] = {
            "devall.store": event.store,
            "devall.files": event.files,
            "devall.passages": event.passages,
        }
        self._scene.note(event, "devall.memory.indexed", about)

    def _warned(self, event: Warned) -> None:
        body = self._scene.seen(event, "message")
        about: dict[str, Value] = {
            "devall.code": event.code,
            "devall.message": words(body["message"]),
        }
        if event.node:
            about[names.NODE] = event.node
        self._scene.note(event, "devall.warning", about)
