"""The messages of a graph: how many arrive at each node at most, and how large they are.

Sizes go round in loops: they are worked out again until nothing changes. What still grows then,
as a text that is put into a template in every round, has no bound.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from devall.config.edges import FunctionProcess, RegexExtract, RegexExtractConfig
from devall.config.nodes import (
    AgentNode,
    HumanNode,
    LiteralNode,
    LoopCounterNode,
    LoopTimerNode,
    PassthroughNode,
    PythonNode,
    SubgraphNode,
    TemplateNode,
)
from devall.core.messages import Message
from devall.estimates.bounds import NOTHING, ONE, Bound, unbounded
from devall.estimates.course import UNCOUNTED, Course
from devall.estimates.texts import FRAME, at_most, estimated, of_text
from devall.estimates.units import UnitCount, unit_count
from devall.estimates.ways import is_dead
from devall.graph.model import Plan, PlanEdge, PlanNode
from devall.nodes.loops import counter_text, timer_text

PYTHON_BYTES = 4 << 20
"""What is kept of each of the two streams of a python node's code."""
_ONE_MESSAGE = HumanNode, LiteralNode, PythonNode, LoopCounterNode, TemplateNode
_LOOKAROUND = re.compile(r"\(\?<?[=!]")


@dataclass(frozen=True, slots=True)
class Flow:
    """Messages that go one way, in all runs of the graph together."""

    count: Bound = NOTHING
    """How many."""
    tokens: Bound = NOTHING
    """Of all of them, what stands around them left out."""
    largest: Bound = NOTHING
    """Tokens of the largest one."""
    is_kept: bool = False
    """Whether some of them are never forgotten."""

    def __add__(self, other: Flow) -> Flow:
        return Flow(
            self.count + other.count,
            self.tokens + other.tokens,
            self.largest.most(other.largest),
            self.is_kept or other.is_kept,
        )

    @classmethod
    def of(cls, count: Bound, largest: Bound) -> Flow:
        """So many messages, each of at most so many tokens."""
        return cls(count, count * largest, largest)


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What a node sees in all its runs together."""

    seen: Bound
    """Tokens, what is remembered counted each time it is seen."""
    messages: Bound
    """Messages, counted likewise."""
    once: Bound
    """Tokens that one run sees at most."""
    largest: Bound
    """Tokens of the largest message."""
    runs: Bound
    """Runs of the node, one for each unit."""
    units: UnitCount | None
    """Set for a node with a dynamic edge into it."""
    is_kept: bool


Words = Callable[[PlanNode], Bound]
"""Tokens that one run of an agent remembers of its own words at most."""
Answer = Callable[[PlanNode], Bound]
"""Tokens of an agent's answer at most."""
Inner = Callable[[PlanNode, Flow, Bound], Flow]
"""What a subgraph says, from its task and the number of its runs."""


@dataclass(slots=True)
class Traffic:
    """Works out the messages of a graph, for a number of runs of it."""

    course: Course
    name: str
    """What names of its nodes begin with: `S/`."""
    times: Bound
    """How often the graph runs."""
    task: Flow
    task_text: str | None
    """The task's text, where it is known and always the same."""
    given_units: int | None
    answer: Answer
    words: Words
    inner: Inner

    @property
    def plan(self) -> Plan:
        """The graph."""
        return self.course.plan

    def arrivals(self) -> tuple[dict[int, Arrivals], dict[int, Flow]]:
        """What each node sees, and what each one says."""
        said: dict[int, Flow] = {node.index: Flow() for node in self.plan.nodes}
        seen: dict[int, Arrivals] = {}
        growing: list[int] = []
        for _ in range(2 * len(self.plan.nodes) + 3):
            growing = self._pass(said, seen)
            if not growing:
                return seen, said
        while growing:
            for node in growing:
                name = self.name + self.plan.nodes[node].id
                endless = unbounded(name, "", "what it says grows in each round")
                said[node] = Flow(endless, endless, endless, said[node].is_kept)
            growing = [node for node in self._pass(said, seen) if said[node].largest.is_known]
        return seen, said

    def _pass(self, said: dict[int, Flow], seen: dict[int, Arrivals]) -> list[int]:
        """Work out everything once more; the nodes that say something else than before."""
        changed: list[int] = []
        for node in self.plan.nodes:
            seen[node.index] = self._arrivals(node, said)
            now = self._said(node, seen[node.index])
            if now != said[node.index]:
                said[node.index] = now
                changed.append(node.index)
        return changed

    def _arrivals(self, node: PlanNode, said: Mapping[int, Flow]) -> Arrivals:
        rounds = self.course.runs[node.index]
        flows = [(self._along(self.plan.edges[e], said), self.plan.edges[e]) for e in node.in_edges]
        flows = [(flow, edge) for flow, edge in flows if flow.count.value != 0]
        task = self.task if node.index in self.plan.starts else Flow()
        dynamic = self.plan.dynamics.get(node.index)
        units, runs = None, self.times * self._visits(node)
        if dynamic is not None:
            carried = [(edge, flow) for flow, edge in flows if edge.config.dynamic is not None]
            result = said[node.index].largest
            units = unit_count(self, node, dynamic, carried, runs, result)
            runs = units.runs
        window = node.config.context_window
        whole = sum((flow for flow, _ in flows), task)
        framed = whole.tokens + whole.count * self._frame(node, whole)
        own = self._words(node, said[node.index])
        each = runs if dynamic is not None else ONE
        if rounds == 1:
            seen, messages, once = framed, whole.count, framed
        else:
            seen, messages, once = self._remembered(node, flows, task, window, own * each)
        if units is not None:
            unit = units.unit + Bound(self._frame(node, whole) * units.size)
            if window == 0 and not whole.is_kept:
                others = sum((flow for flow, edge in flows if edge.config.dynamic is None), task)
                seen = once = others.tokens + others.count * self._frame(node, others)
                messages = others.count
            # What is no unit is seen by each of them.
            seen, once = seen * units.once + runs * unit, once + unit
            messages = messages * units.once + runs * units.size
        return Arrivals(seen, messages, once, whole.largest, runs, units, whole.is_kept)

    def _visits(self, node: PlanNode) -> Bound:
        """How often a node runs in one run of the graph."""
        rounds = self.course.runs[node.index]
        if rounds < UNCOUNTED:
            return Bound(rounds)
        why = "its loops may go round more often than can be counted"
        return unbounded(self.name + node.id, "limits.max_loop_iterations", why)

    def _remembered(
        self,
        node: PlanNode,
        flows: list[tuple[Flow, PlanEdge]],
        task: Flow,
        window: int,
        own: Bound,
    ) -> tuple[Bound, Bound, Bound]:
        """Tokens and messages seen in all runs, and tokens in one, where a node runs again.

        Args:
            node: The node.
            flows: What comes along its edges.
            task: What it gets as a start node.
            window: Its `context_window`.
            own: Tokens that it remembers of its own words after one run.
        """
        rounds = self.course.runs[node.index]
        fresh, kept, again, once = Flow(), NOTHING, NOTHING, NOTHING
        messages = NOTHING
        for flow, source in [*((f, e.source) for f, e in flows), (task, -1)]:
            tokens = flow.tokens + flow.count * self._frame(node, flow)
            once += tokens
            times = (rounds + 1) / 2 if self._in_step(source, node.index) else rounds
            if flow.is_kept:
                kept += tokens * times
            else:
                fresh += Flow(flow.count, tokens, flow.largest)
                again += tokens * times
            messages += flow.count * (times if window or flow.is_kept else 1)
        if window == 0:
            return fresh.tokens + kept, messages, once
        words = own * (self.times * (rounds * (rounds - 1) / 2))
        seen = again + words
        if window > 0:
            largest = fresh.largest.most(own) + Bound(FRAME + len(node.id))
            seen = seen.least(fresh.tokens + largest * (self.times * (rounds * window)))
        return seen + kept, messages + self.times * (rounds * rounds), once + own * (rounds - 1)

    def _words(self, node: PlanNode, said: Flow) -> Bound:
        """Tokens that one run remembers of its own words."""
        if node.config.context_window == 0:
            return NOTHING
        if isinstance(node.config, AgentNode):
            return self.words(node)
        has_one = isinstance(node.config, _ONE_MESSAGE)
        return said.largest if has_one else said.tokens

    def _in_step(self, source: int, target: int) -> bool:
        """Whether both lie in the same loops, so that a run sees what earlier rounds have said."""
        if source < 0 or source in self.plan.dynamics or target in self.plan.dynamics:
            return False
        here, there = self.course.path(source), self.course.path(target)
        return [each.members for each in here] == [each.members for each in there]

    def _frame(self, node: PlanNode, flow: Flow) -> int:
        """Tokens around a message, the line that names its source in a single prompt included."""
        if isinstance(node.config, AgentNode) and node.config.config.input_mode == "prompt":
            longest = max((len(each.id) for each in self.plan.nodes), default=0)
            return FRAME + 20 + longest
        return FRAME if flow.count.value != 0 else 0

    def _said(self, node: PlanNode, seen: Arrivals) -> Flow:
        """What a node says, in all its runs together."""
        runs, name = seen.runs, self.name + node.id
        if seen.units is not None and seen.units.is_tree:
            runs = self.times * self._visits(node)
        match node.config:
            case AgentNode():
                return Flow.of(runs, self.answer(node))
            case HumanNode():
                return Flow.of(runs, unbounded(name, "", "a human may say anything"))
            case LiteralNode(config=config):
                return Flow.of(runs, Bound(of_text(config.content)))
            case PythonNode():
                # The two streams of code that failed.
                return Flow.of(runs, Bound(2 * PYTHON_BYTES))
            case LoopCounterNode(config=config):
                return Flow.of(runs, Bound(of_text(counter_text(config))))
            case PassthroughNode(config=config):
                empty = Bound(FRAME)
                if config.only_last_message:
                    found = Flow.of(runs, seen.largest.most(empty))
                    return replace(found, is_kept=seen.is_kept)
                count = seen.messages.most(runs)
                return Flow(count, seen.seen, seen.largest.most(empty), seen.is_kept)
            case LoopTimerNode(config=config):
                text = Bound(of_text(timer_text(config)))
                if not config.passthrough:
                    return Flow.of(runs, text)
                count = seen.messages + runs
                largest = seen.largest.most(text)
                return Flow(count, seen.seen + runs * text, largest, seen.is_kept)
            case SubgraphNode():
                task = Flow(seen.messages.most(runs), seen.seen, seen.largest, seen.is_kept)
                return self.inner(node, task, runs)
            case TemplateNode():
                why = "what a template makes of its inputs may have any length"
                return Flow.of(runs, unbounded(name, "", why))

    def _along(self, edge: PlanEdge, said: Mapping[int, Flow]) -> Flow:
        """What an edge carries."""
        flow = said[edge.source]
        if is_dead(edge) or not edge.config.carry_data or flow.count.value == 0:
            return Flow()
        flow = replace(flow, is_kept=flow.is_kept or edge.config.keep_message)
        match edge.config.process:
            case None:
                return flow
            case FunctionProcess(config=config):
                why = f"function {config.name} of edge {edge.name} may give any text"
                return self._with(flow, unbounded(self.name + edge.config.to, "", why))
            case RegexExtract(config=config):
                return self._extracted(flow, edge, config)

    def _extracted(self, flow: Flow, edge: PlanEdge, config: RegexExtractConfig) -> Flow:
        """What a regular expression leaves of the messages."""
        grows = config.multiple and (config.template is not None or _overlaps(config))
        if grows:
            why = f"the matches of edge {edge.name} may be longer than the text"
            return self._with(flow, unbounded(self.name + edge.config.to, "", why))
        largest = flow.largest
        if config.template is not None:
            times = config.template.count("{match}")
            largest = largest.most(Bound(of_text(config.template)) + largest * times)
        if config.on_no_match == "default":
            largest = largest.most(Bound(of_text(config.default_value)))
        if largest == flow.largest:
            return flow
        return self._with(flow, largest)

    @staticmethod
    def _with(flow: Flow, largest: Bound) -> Flow:
        return Flow(flow.count, flow.count * largest, largest, flow.is_kept)


def task_flow(task: Message) -> Flow:
    """A task as it arrives at a start node."""
    return Flow.of(ONE, Bound(at_most(estimated([task]))))


def _overlaps(config: RegexExtractConfig) -> bool:
    """Whether matches may share text, so that together they are longer than it."""
    return _LOOKAROUND.search(config.pattern) is not None
