"""A graph as the rules see it: nodes by number, edges whose ends are known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from devall.config.edges import Always, Edge, RegexExtract
from devall.config.nodes import LoopCounterNode, LoopTimerNode, Node
from devall.core.diagnostics import Diagnostic, Severity
from devall.loading.keys import nearest
from devall.loading.loader import LoadedGraph
from devall.loading.places import Path
from devall.loading.repair import UNKNOWN

_MOST_GUESSES = 50
"""So many unknown ids are compared with the known ones: beyond that it would take too long."""


@dataclass(frozen=True, slots=True)
class Way:
    """An edge by the numbers of its ends."""

    index: int
    source: int
    target: int
    edge: Edge
    is_sound: bool
    """False: only its ends are known."""

    @property
    def is_dead(self) -> bool:
        """Whether it never fires, whatever happens."""
        condition = self.edge.condition
        return self.is_sound and isinstance(condition, Always) and not condition.value

    @property
    def triggers(self) -> bool:
        """Whether it may make its target run."""
        return self.edge.trigger and not self.is_dead

    @property
    def is_certain(self) -> bool:
        """Whether it triggers for every output of its source."""
        process = self.edge.process
        drops = isinstance(process, RegexExtract) and process.config.on_no_match == "drop"
        return (
            self.is_sound and self.triggers and not drops and self.edge.condition.type == "always"
        )


class Shape:
    """Who leads where, as far as it can be told; `problems` are the ids that are wrong.

    A mistyped id stands for the one that it is like, so that it causes no other finding.
    """

    def __init__(self, loaded: LoadedGraph) -> None:
        self.loaded = loaded
        self.nodes: Sequence[Node] = loaded.config.nodes
        self.problems: list[Diagnostic] = []
        self.number: dict[str, int] = {}
        self.is_whole = not loaded.flaws.keys & {"nodes", "edges", "start"}
        """Whether every edge and start is known: only then can it be told what never runs."""
        self._guesses: dict[str, int | None] = {}
        for index, node in enumerate(self.nodes):
            if node.id in self.number:
                self.problems.append(self._duplicate(index, self.number[node.id]))
            else:
                self.number[node.id] = index
        named = [name for name in self.number if not name.startswith(UNKNOWN)]
        self._unnamed = len(self.number) - len(named)
        more = ", ..." if len(named) > 12 else ""
        self._known = f"known: {', '.join(named[:12])}{more}" if named else ""
        self.ways = list(self._ways())
        self.out: list[list[Way]] = [[] for _ in self.nodes]
        self.into: list[list[Way]] = [[] for _ in self.nodes]
        for way in self.ways:
            self.out[way.source].append(way)
            self.into[way.target].append(way)
        graph = loaded.config
        self.starts = [
            (at, number)
            for at, name in enumerate(graph.start)
            if (number := self._find(name, ("start", at))) is not None
        ]
        """Position in `start`, and the node's number."""
        self.ends = [
            (at, number)
            for at, name in enumerate(graph.end)
            if (number := self._find(name, ("end", at), is_way=False)) is not None
        ]
        """Position in `end`, and the node's number."""

    def diagnostic(
        self, code: str, message: str, path: Path, hint: str = "", severity: Severity = "warning"
    ) -> Diagnostic:
        """A finding about the value at a path of the graph."""
        return Diagnostic(code, message, self.loaded.locate(path), hint, severity)

    def name(self, number: int) -> str:
        """The id of a node."""
        return self.nodes[number].id

    def names(self, numbers: Iterable[int]) -> str:
        """The ids of nodes, for a message."""
        found = [self.name(number) for number in numbers]
        return ", ".join(found[:8]) + (f" and {len(found) - 8} more" if len(found) > 8 else "")

    def is_broken(self, number: int) -> bool:
        """Whether at most the id of a node is known."""
        return number in self.loaded.flaws.nodes

    def is_silent(self, number: int) -> bool:
        """Whether a run of the node may say nothing: its edges fire now and then."""
        node = self.nodes[number]
        return (
            self.is_broken(number)
            or isinstance(node, LoopCounterNode)
            or (isinstance(node, LoopTimerNode) and not node.config.passthrough)
            or node.on_error == "continue"
        )

    def reached(self, starts: Iterable[int]) -> set[int]:
        """The nodes that may be triggered from some others, these included."""
        found = set(starts)
        queue = list(found)
        for number in queue:  # it grows
            for way in self.out[number]:
                if way.triggers and way.target not in found:
                    found.add(way.target)
                    queue.append(way.target)
        return found

    def _ways(self) -> Iterator[Way]:
        flawed = self.loaded.flaws.edges
        for index, edge in enumerate(self.loaded.config.edges):
            source = self._find(edge.from_, ("edges", index, "from"))
            target = self._find(edge.to, ("edges", index, "to"))
            if source is not None and target is not None:
                yield Way(index, source, target, edge, index not in flawed)

    def _find(self, name: str, path: Path, *, is_way: bool = True) -> int | None:
        """The node that an id means; an id that no node has is reported."""
        found = self.number.get(name)
        if found is not None:
            return found
        if name == UNKNOWN or not self.nodes:
            self.is_whole = False
            return None
        if name not in self._guesses:
            self._guesses[name] = self._guess(name)
        guess = self._guesses[name]
        if guess is None:
            self.is_whole = self.is_whole and not is_way
            if len(self._guesses) <= self._unnamed:
                return None  # it may well be a node whose id is missing
        hint = f"did you mean `{self.name(guess)}`?" if guess is not None else self._known
        self.problems.append(
            self.diagnostic("unknown-node", f"there is no node `{name}`", path, hint, "error")
        )
        return guess

    def _guess(self, name: str) -> int | None:
        if len(self._guesses) >= _MOST_GUESSES:
            return None
        near = nearest(name, self.number)
        return self.number[near[0]] if near else None

    def _duplicate(self, index: int, first: int) -> Diagnostic:
        position = self.loaded.locate(("nodes", first, "id"))
        where = f" on line {position.line}" if position.line else ""
        return self.diagnostic(
            "duplicate-node",
            f"there is a node `{self.nodes[index].id}` already{where}",
            ("nodes", index, "id"),
            "ids are unique within a graph",
            "error",
        )
