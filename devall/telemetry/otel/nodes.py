"""Spans of nodes and units, and what is told of loops."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from devall.core.events import (
    Event,
    GraphShape,
    LoopLeft,
    LoopRound,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    UnitFailed,
    UnitFinished,
    UnitStarted,
)
from devall.telemetry.otel import names
from devall.telemetry.otel.scene import OTHER, Scene, sums, words
from devall.telemetry.otel.tree import Attributes, Opened, Value

_OPERATIONS = {"agent": "invoke_agent", "subgraph": "invoke_workflow"}


class Nodes:
    """Tells of what runs in a graph."""

    def __init__(self, scene: Scene) -> None:
        """Begin with a graph of which nothing is known."""
        self._scene = scene
        self._kinds: dict[str, str] = {}
        """Types of nodes by name."""
        self._rounds: dict[tuple[str, str], int] = {}
        """By the path of the graph and the id of the node: the round of the innermost loop."""

    @property
    def takes(self) -> Mapping[type[Event], Callable[[Any], None]]:
        """What is done with which event."""
        return {
            NodeStarted: self._node_started,
            NodeFinished: self._node_finished,
            NodeFailed: self._node_failed,
            NodeSkipped: self._node_skipped,
            UnitStarted: self._unit_started,
            UnitFinished: self._unit_finished,
            UnitFailed: self._unit_failed,
            LoopRound: self._loop_round,
            LoopLeft: self._loop_left,
        }

    def know(self, graph: GraphShape) -> None:
        """Learn the types of the nodes."""
        self._kinds = dict(_kinds(graph))

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
            attributes[names.CONVERSATION] = self._scene.run
            if kind == "subgraph":
                attributes[names.WORKFLOW] = event.node
        name = f"{operation or kind or 'node'} {event.node}"
        opened = self._scene.tree.begin(
            event.path, name, attributes, event.at, parent=self._scene.tree.around(above)
        )
        opened.labels |= {names.NODE: event.node, names.KIND: kind} if kind else {}

    def _node_finished(self, event: NodeFinished) -> None:
        self._scene.hidden.learn(event)
        opened = self._scene.tree.get(event.path)
        if opened is None:
            return
        self._measure_node(opened, event.seconds, {names.STATUS: "completed"})
        self._scene.end(opened, event.at, {names.STATUS: "completed", **sums(opened)})

    def _node_failed(self, event: NodeFailed) -> None:
        opened = self._scene.tree.get(event.path)
        if opened is None:
            return
        body = self._scene.seen(event, "message")
        more: dict[str, Value] = {names.STATUS: "failed", names.ERROR: event.code or OTHER}
        self._measure_node(opened, event.seconds, more)
        more |= {names.CONTINUED: event.continued, **sums(opened)}
        self._scene.end(opened, event.at, more, failed=words(body["message"]))

    def _node_skipped(self, event: NodeSkipped) -> None:
        self._scene.note(event, "devall.node.skipped", {names.NODE: event.node})

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
        self._scene.tree.begin(
            event.path,
            f"unit {event.node}",
            attributes,
            event.at,
            parent=self._scene.tree.around(above),
        )

    def _unit_finished(self, event: UnitFinished) -> None:
        self._scene.hidden.learn(event)
        opened = self._scene.tree.get(event.path)
        if opened is not None:
            self._scene.end(opened, event.at, {names.STATUS: "completed", **sums(opened)})

    def _unit_failed(self, event: UnitFailed) -> None:
        opened = self._scene.tree.get(event.path)
        if opened is None:
            return
        body = self._scene.seen(event, "message")
        more: dict[str, Value] = {
            names.STATUS: "failed",
            names.ERROR: event.code or OTHER,
            names.CONTINUED: event.continued,
            **sums(opened),
        }
        self._scene.end(opened, event.at, more, failed=words(body["message"]))

    def _measure_node(self, opened: Opened, seconds: float, more: Attributes) -> None:
        sums = opened.sums
        if sums.get(names.REPLAYED) and not sums.get(names.LIVE):
            return  # it was measured in the process that did its work
        self._scene.measures.node(opened, seconds, more)

    def _loop_round(self, event: LoopRound) -> None:
        for node in event.loop:
            self._rounds[event.path, node] = event.round
        about: dict[str, Value] = {"devall.loop": list(event.loop), names.ROUND: event.round}
        self._scene.note(event, "devall.loop.round", about)

    def _loop_left(self, event: LoopLeft) -> None:
        for node in event.loop:
            self._rounds.pop((event.path, node), None)
        about: dict[str, Value] = {
            "devall.loop": list(event.loop),
            "devall.loop.rounds": event.rounds,
            "devall.loop.exited": event.exited,
        }
        self._scene.note(event, "devall.loop.left", about)


def _kinds(graph: GraphShape, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The types of all nodes by name; those of a subgraph begin with its node's name."""
    for node in graph.nodes:
        yield prefix + node.id, node.type
        if node.graph is not None:
            yield from _kinds(node.graph, f"{prefix}{node.id}/")
