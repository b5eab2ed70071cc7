"""What to do next: told what happened, it answers what to start.

A state machine without I/O, clock or randomness. `start` and `finished` return commands; the
runner carries them out and reports back. The rules are those of *When a node runs* and
*Loops* in the documentation of runs:

- A `_Frame` is one round in progress: of the whole graph, or of a loop. Its items (nodes, and
  inner loops as one item each) become ready when what they wait for is settled.
- In a loop, an item is also held back until every item on a lower level that might leave the
  loop is settled, so that which of them wins does not depend on timing.
- Each edge is triggered or not; a node takes its triggers when it starts.

Work is amortised constant for each message and each item of a round. What is made for each of
them is a named tuple: a frozen dataclass takes three times as long to make.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from devall.core.messages import Message
from devall.engine.inbox import Clear, Entry, Moment, Seen, consume
from devall.graph.model import Plan
from devall.graph.regions import Order


class Start(NamedTuple):
    """Run a node; report its end by `finished`."""

    node: int
    visit: int
    """How often the node has been started, this time included."""
    messages: tuple[Message, ...]
    """What it sees; remembered ones first."""
    units: tuple[Message, ...] = ()
    """What came over dynamic edges, to be split into units."""


@dataclass(frozen=True, slots=True)
class Skipped:
    """Nothing triggered the node in this round."""

    node: int


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """A loop begins a round (from 1)."""

    loop: tuple[int, ...]
    round: int


@dataclass(frozen=True, slots=True)
class LoopEnded:
    """A loop is over: left by an edge, without another trigger, or at its bound."""

    loop: tuple[int, ...]
    rounds: int
    how: Literal["exit", "quiet", "limit"]


Command = Start | Skipped | RoundStarted | LoopEnded


class Delivery(NamedTuple):
    """An edge that fired: its message as it arrives, if it carries one."""

    edge: int
    output: int
    """Which of the run's outputs, from 0."""
    message: Message | None


@dataclass(slots=True, eq=False)
class _Frame:
    """A round in progress."""

    order: Order
    moment: Moment
    """Prefix of the moments of what runs in it."""
    parent: _Frame | None = None
    item: int = 0
    """Which item of the parent's round this loop is."""
    loop: tuple[int, ...] = ()
    members: frozenset[int] | None = None
    """None: the whole graph."""
    entries: frozenset[int] = frozenset()
    round: int = 1
    unsettled: int = 0
    """Items that must be settled before the round is over."""
    waiting: list[int] = field(default_factory=list)
    """For each item, how many it still waits for."""
    settled: bytearray = field(default_factory=bytearray)
    exit_level: int | None = None
    """The level on which an edge out of the loop fired."""
    open_exits: list[int] = field(default_factory=list)
    """For each level, items that might leave and are not settled; empty outside of loops."""
    gate: int | None = None
    """The lowest level with such an item: higher ones are held back. None: all pass."""
    held: list[tuple[int, int]] = field(default_factory=list)
    """Heap of (level, item) that are ready but held back."""


_Ready = deque[tuple[_Frame, int]]


class Scheduler:
    """The state of one graph's run."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._waiting: dict[int, list[Entry]] = {}
        """By node, what is in its inbox; no empty lists."""
        self._remembered: dict[int, tuple[Message, ...]] = {}
        """By node, what stays of its earlier runs; no empty tuples."""
        self._triggers: dict[int, list[int]] = {}
        """By node, the edges that triggered it since it last ran (-1: the start); none empty."""
        self._visits = [0] * len(plan.nodes)
        self._running: dict[int, _Frame] = {}
        self._commands: list[Command] = []
        self._top: _Frame | None = None
        self._over = False

    @property
    def is_over(self) -> bool:
        """Whether everything is settled: nothing runs, nothing will."""
        return self._over

    @property
    def running(self) -> tuple[int, ...]:
        """Nodes that were started and have not been reported as finished."""
        return tuple(self._running)

    def start(self, task: Sequence[Message], starts: Iterable[int] | None = None) -> list[Command]:
        """Begin: the start nodes get the task.

        Args:
            task: The messages of the task, as they arrive.
            starts: Nodes to start instead of the plan's own.
        """
        for node in self._plan.starts if starts is None else starts:
            for at, message in enumerate(task):
                self._put(node, ((), -1, at, 1, message))
            self._triggers[node] = [-1]
        self._top = _Frame(self._plan.regions.outermost(), moment=())
        self._begin(self._top)
        return self._answer()

    def finished(
        self, node: int, deliveries: Sequence[Delivery], words: Sequence[Message] = ()
    ) -> list[Command]:
        """A node is done: its edges have fired as told.

        Args:
            node: The node that was started.
            deliveries: What fired, by output and then in the order of the file.
            words: What the node remembers of its own words.
        """
        frame = self._running.pop(node)
        item = frame.order.item_of[node]
        if words and self._plan.nodes[node].config.context_window:
            self._remembered[node] = (*self._remembered.get(node, ()), *words)
        moment = (*frame.moment, frame.order.items[item].level, 0)
        for delivery in deliveries:
            self._deliver(frame, item, moment, delivery)
        self._settle(frame, item)
        return self._answer()

    def _answer(self) -> list[Command]:
        commands, self._commands = self._commands, []
        return commands

    def _deliver(self, frame: _Frame, item: int, moment: Moment, delivery: Delivery) -> None:
        edge = self._plan.edges[delivery.edge]
        config = edge.config
        if config.clear_context or config.clear_kept_context:
            clear = Clear(config.clear_context, config.clear_kept_context)
            self._put(edge.target, (moment, edge.index, delivery.output, 0, clear))
        if delivery.message is not None:
            self._put(edge.target, (moment, edge.index, delivery.output, 1, delivery.message))
        if not config.trigger:
            return
        triggers = self._triggers.get(edge.target)
        if triggers is None:
            self._triggers[edge.target] = [edge.index]
        else:
            triggers.append(edge.index)
        here: _Frame | None = frame
        while here is not None and here.members is not None and edge.target not in here.members:
            self._leave(here, here.order.items[item].level)
            item, here = here.item, here.parent

    def _leave(self, frame: _Frame, level: int) -> None:
        """An edge out of the loop fired on that level: what lies higher will not start."""
        if frame.exit_level is not None and frame.exit_level <= level:
            return
        frame.exit_level = level
        frame.unsettled = sum(
            1
            for at, item in enumerate(frame.order.items)
            if item.level <= level and not frame.settled[at]
        )

    def _begin(self, frame: _Frame) -> None:
        """Start the round that `frame` was set up for."""
        items = frame.order.items
        frame.unsettled = len(items)
        frame.waiting = [item.before for item in items]
        frame.settled = bytearray(len(items))
        frame.exit_level = None
        frame.held = []
        frame.gate = None
        if frame.order.exit_levels:
            frame.open_exits = [0] * (frame.order.exit_levels[-1] + 1)
            for level in frame.order.exit_levels:
                frame.open_exits[level] += 1
            frame.gate = frame.order.exit_levels[0]
        self._work(deque((frame, at) for at, item in enumerate(items) if not item.before))

    def _work(self, ready: _Ready) -> None:
        """Start or skip items that wait for nothing more, and what follows from skipping."""
        while ready:
            frame, at = ready.popleft()
            item = frame.order.items[at]
            if frame.exit_level is not None and item.level > frame.exit_level:
                continue
            if frame.gate is not None and item.level > frame.gate:
                heappush(frame.held, (item.level, at))
                continue
            if item.is_loop:
                entries = frozenset(n for n in item.members if n in self._triggers)
                if entries:
                    self._enter(frame, at, entries)
                    continue
                self._commands.extend(map(Skipped, item.members))
            else:
                node = item.members[0]
                if node in self._triggers:
                    self._run(frame, node)
                    continue
                self._commands.append(Skipped(node))
            self._mark(frame, at, ready)

    def _run(self, frame: _Frame, node: int) -> None:
        del self._triggers[node]
        self._visits[node] += 1
        self._running[node] = frame
        messages, units = self._take(node)
        self._commands.append(Start(node, self._visits[node], messages, units))

    def _put(self, node: int, entry: Entry) -> None:
        waiting = self._waiting.get(node)
        if waiting is None:
            self._waiting[node] = [entry]
        else:
            waiting.append(entry)

    def _take(self, node: int) -> Seen:
        """Consume what waits; what the window lets stay is remembered for the next run."""
        seen, remembered = consume(
            self._waiting.pop(node, []),
            self._remembered.pop(node, ()),
            self._plan.nodes[node].config.context_window,
            self._plan.dynamic_edges(node),
        )
        if remembered:
            self._remembered[node] = remembered
        return seen

    def _enter(self, parent: _Frame, at: int, entries: frozenset[int]) -> None:
        item = parent.order.items[at]
        members = frozenset(item.members)
        frame = _Frame(
            order=self._plan.regions.round(members, entries),
            moment=(*parent.moment, item.level, 1, 1),
            parent=parent,
            item=at,
            loop=item.members,
            members=members,
            entries=entries,
        )
        self._commands.append(RoundStarted(frame.loop, 1))
        self._begin(frame)

    def _settle(self, frame: _Frame, at: int) -> None:
        ready: _Ready = deque()
        self._mark(frame, at, ready)
        self._work(ready)

    def _mark(self, frame: _Frame, at: int, ready: _Ready) -> None:
        """Note that an item is settled; what becomes ready by it goes to `ready`."""
        item = frame.order.items[at]
        frame.settled[at] = 1
        frame.unsettled -= 1
        waiting = frame.waiting
        for follower in item.after:
            waiting[follower] -= 1
            if not waiting[follower]:
                ready.append((frame, follower))
        if item.may_exit:
            self._raise_gate(frame, item.level, ready)
        if not frame.unsettled:
            self._round_over(frame, ready)

    def _raise_gate(self, frame: _Frame, level: int, ready: _Ready) -> None:
        frame.open_exits[level] -= 1
        gate = frame.gate
        while gate is not None and not frame.open_exits[gate]:
            gate = gate + 1 if gate + 1 < len(frame.open_exits) else None
        frame.gate = gate
        while frame.held and (gate is None or frame.held[0][0] <= gate):
            ready.append((frame, heappop(frame.held)[1]))

    def _round_over(self, frame: _Frame, ready: _Ready) -> None:
        if frame.parent is None or frame.members is None:
            self._over = True
            return
        how: Literal["exit", "quiet", "limit"] = "quiet"
        if frame.exit_level is not None:
            how = "exit"
        else:
            again = frozenset(n for n in frame.entries if n in self._triggers)
            if again and frame.round < self._plan.max_rounds(frame.loop):
                self._next_round(frame, again)
                return
            if again:
                how = "limit"
        for node in frame.loop:
            triggers = self._triggers.pop(node, ())
            outer = [
                e for e in triggers if e < 0 or self._plan.edges[e].source not in frame.members
            ]
            if outer:
                self._triggers[node] = outer
        self._commands.append(LoopEnded(frame.loop, frame.round, how))
        self._mark(frame.parent, frame.item, ready)

    def _next_round(self, frame: _Frame, starts: frozenset[int]) -> None:
        frame.round += 1
        frame.moment = (*frame.moment[:-1], frame.round)
        frame.order = self._plan.regions.round(frame.members or frozenset(), starts)
        self._commands.append(RoundStarted(frame.loop, frame.round))
        self._begin(frame)
