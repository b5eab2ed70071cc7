"""The estimate of a whole workflow, graph within graph."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from devall.config.nodes import (
    AgentNode,
    PythonNode,
    SubgraphNode,
)
from devall.engine.answer import may_answer
from devall.estimates.agent import AgentEstimate
from devall.estimates.bounds import NOTHING, ONE, Bound, unbounded
from devall.estimates.ceilings import Ceiling
from devall.estimates.costs import Cost, Largest, Least, added, under
from devall.estimates.course import Course
from devall.estimates.facts import AgentFacts, Facts
from devall.estimates.rounds import Loop
from devall.estimates.traffic import Arrivals, Flow, Traffic, task_flow
from devall.estimates.values import AgentValue, GraphValue, LoopValue, NodeValue, Stage, Step, Units
from devall.graph.model import Plan, PlanNode
from devall.graph.regions import Order
from devall.processes import GRACE

_NOT_BOUNDED = Flow.of(ONE, unbounded("", "--task", "the task is not given"))


def estimate(plan: Plan, facts: Facts) -> GraphValue:
    """What one run of a plan does and uses, at least and at most."""
    task = _NOT_BOUNDED if facts.task is None else task_flow(facts.task)
    text = None if facts.task is None else facts.task.text
    ceiling = Ceiling(plan.graph.limits, "", ONE)
    return _Graph(plan, "", facts, ONE, task, text, ceiling).value(1)


class _Graph:
    """A graph that runs a number of times."""

    def __init__(
        self,
        plan: Plan,
        prefix: str,
        facts: Facts,
        times: Bound,
        task: Flow,
        task_text: str | None,
        ceiling: Ceiling,
    ) -> None:
        self._plan = plan
        self._prefix = prefix
        self._facts = facts
        self._times = times
        self._task = task
        self._task_text = task_text
        self._ceiling = ceiling
        self._course = Course(plan)
        self._children: dict[int, tuple[Flow, Bound, _Graph]] = {}
        self._around_loops: dict[frozenset[int], Bound] = {}

    @cached_property
    def _agents(self) -> dict[int, AgentEstimate]:
        found: dict[int, AgentEstimate] = {}
        for node in self._plan.nodes:
            if isinstance(node.config, AgentNode):
                name = self._name(node)
                config = node.config.config
                facts = self._facts.agents.get(name) or AgentFacts(config.provider, config.name)
                stores, ceiling = self._plan.graph.memory, self._ceiling_of(node)
                found[node.index] = AgentEstimate(name, node.config, facts, stores, ceiling)
        return found

    @cached_property
    def _traffic(self) -> tuple[dict[int, Arrivals], dict[int, Flow]]:
        return Traffic(
            self._course,
            self._prefix,
            self._times,
            self._task,
            self._task_text,
            self._facts.units,
            answer=lambda node: self._agents[node.index].answer,
            words=lambda node: self._agents[node.index].words,
            inner=lambda node, task, runs: self._child(node, task, runs).answer,
        ).arrivals()

    @property
    def _seen(self) -> dict[int, Arrivals]:
        return self._traffic[0]

    def _child(self, node: PlanNode, task: Flow, runs: Bound) -> _Graph:
        """The graph inside of a node, for a task; it stays while neither changes."""
        known = self._children.get(node.index)
        if known is not None and known[:2] == (task, runs):
            return known[2]
        plan, name = self._plan.subplans[node.id], self._name(node)
        ceiling = self._ceiling_of(node).under(plan.graph.limits, name, runs)
        child = _Graph(plan, f"{name}/", self._facts, runs, task, None, ceiling)
        self._children[node.index] = (task, runs, child)
        return child

    @property
    def answer(self) -> Flow:
        """What it says as a node of another graph, in all its runs together."""
        seen, said = self._traffic
        found = Flow()
        largest, once, kept = NOTHING, NOTHING, False
        for index in sorted(may_answer(self._plan)):
            node = self._plan.nodes[index]
            units = seen[index].units
            speaks_once = not isinstance(node.config, SubgraphNode) and (
                said[index].count == seen[index].runs
            )
            if not speaks_once and units is None:
                found += said[index]
                continue
            largest = largest.most(said[index].largest)
            once = once.most(units.once if units is not None else ONE)
            kept = kept or said[index].is_kept
        if self._plan.graph.is_majority_voting:
            once = ONE
        spoken = Flow.of(self._times * once, largest)
        found += Flow(spoken.count, spoken.tokens, spoken.largest, kept)
        return found

    def value(self, least_times: int) -> GraphValue:
        """All that is known, where the graph runs so often at least."""
        nodes = {node.index: self._node(node, least_times) for node in self._plan.nodes}
        values = [value for value, _, _ in nodes.values()]
        largest = Largest()
        for _, each, _ in nodes.values():
            largest = largest.most(each)
        whole = added([value.cost for value in values])
        cost = under(whole, largest, self._ceiling, around=False)
        least = Least()
        for value in values:
            least += value.least
        outermost = self._plan.regions.outermost()
        seconds = self._path(outermost, {i: value.seconds for i, (value, _, _) in nodes.items()})
        bound = self._ceiling.limits.max_seconds
        costs = {index: (value.cost, each) for index, (value, each, _) in nodes.items()}
        return GraphValue(
            self._prefix.removesuffix("/"),
            self._stages(outermost, costs),
            tuple(values),
            tuple(inner for _, _, inner in nodes.values() if inner is not None),
            cost,
            largest,
            least,
            seconds.capped(bound, self._ceiling.label("max_seconds")),
        )

    def _node(
        self, node: PlanNode, least_times: int
    ) -> tuple[NodeValue, Largest, GraphValue | None]:
        """A node, the largest of its model calls, and the graph inside of it."""
        seen, name = self._seen[node.index], self._name(node)
        ceiling = self._ceiling_of(node)
        times = least_times if node.index in self._course.certain else 0
        least, cost, largest, each = Least(times), Cost(), Largest(), Cost()
        inner: GraphValue | None = None
        agent: AgentValue | None = None
        seconds = NOTHING
        if node.index in self._agents:
            known = self._agents[node.index]
            cost, largest = known.cost(seen.runs, seen.seen, seen.once)
            each, _ = known.cost(ONE, seen.once, seen.once)
            skips = _skips_units(self._plan, node)
            least = Least(times) if skips else known.least(times)
            seconds = known.seconds
            agent = _agent_value(known, node, seen, largest)
        elif isinstance(node.config, SubgraphNode):
            task = Flow(seen.messages.most(seen.runs), seen.seen, seen.largest, seen.is_kept)
            is_sure = node.config.on_error == "fail" and node.index not in self._plan.dynamics
            inner = self._child(node, task, seen.runs).value(times if is_sure else 0)
            cost, largest, seconds = inner.cost, inner.largest, inner.seconds
            least = Least(times) + replace(inner.least, runs=0)
        elif isinstance(node.config, PythonNode):
            seconds = Bound(node.config.config.timeout_seconds + 2 * GRACE)
        return (
            NodeValue(
                name,
                node.config.type,
                seen.runs,
                least,
                under(cost, largest, ceiling),
                self._seconds(node, seconds),
                under(each, largest, ceiling),
                _units(seen),
                agent,
            ),
            largest,
            inner,
        )

    def _seconds(self, node: PlanNode, each: Bound) -> Bound:
        """Seconds of one run of a node, all its units included."""
        units = self._seen[node.index].units
        if units is not None:
            each = each * units.waves
        name = self._name(node)
        each = each.capped(node.config.timeout, f"timeout of node {name}")
        label = f"limits.max_seconds of node {name}"
        return each.capped(node.config.limits.max_seconds, label)

    def _path(self, order: Order, each: dict[int, Bound]) -> Bound:
        """Seconds of the longest path through a round."""
        waits = [item.before for item in order.items]
        begins = [NOTHING for _ in order.items]
        ready = [at for at, count in enumerate(waits) if not count]
        found = NOTHING
        for at in ready:  # it grows
            item = order.items[at]
            own = each[item.members[0]]
            if item.is_loop:
                own = self._around(self._course.loop(item.members), each)
            ends = begins[at] + own
            found = found.most(ends)
            for follower in item.after:
                begins[follower] = begins[follower].most(ends)
                waits[follower] -= 1
                if not waits[follower]:
                    ready.append(follower)
        return found

    def _around(self, loop: Loop, each: dict[int, Bound]) -> Bound:
        """Seconds of a loop, each time it is entered."""
        known = self._around_loops.get(loop.members)
        if known is None:
            known = self._around_loops[loop.members] = self._worked_out(loop, each)
        return known

    def _worked_out(self, loop: Loop, each: dict[int, Bound]) -> Bound:
        if not self._course.is_counted(loop):
            return unbounded("", "limits.max_seconds", "a loop has too many orders to look at")
        once = NOTHING
        for order in loop.orders():
            once = once.most(self._path(order, each))
        found = once * loop.rounds.most
        for node, seconds in loop.rounds.timers:
            # It begins in the first round, and looks once in each.
            by_timer = once * 2 + Bound(seconds)
            found = found.capped(by_timer.value, f"max_duration of {self._prefix}{node}")
        return found

    def _stages(self, order: Order, costs: dict[int, tuple[Cost, Largest]]) -> tuple[Stage, ...]:
        """What may run side by side, one after the other."""
        levels: dict[int, list[Step]] = {}
        for item in order.items:
            step: Step = self._name(self._plan.nodes[item.members[0]])
            if item.is_loop:
                step = self._loop(self._course.loop(item.members), costs)
            levels.setdefault(item.level, []).append(step)
        return tuple(tuple(levels[level]) for level in sorted(levels))

    def _loop(self, loop: Loop, costs: dict[int, tuple[Cost, Largest]]) -> LoopValue:
        members = sorted(loop.members)
        largest = Largest()
        for index in members:
            largest = largest.most(costs[index][1])
        return LoopValue(
            tuple(self._name(self._plan.nodes[index]) for index in members),
            loop.rounds,
            under(added([costs[index][0] for index in members]), largest, self._ceiling),
            self._stages(self._course.widest(loop), costs),
        )

    def _ceiling_of(self, node: PlanNode) -> Ceiling:
        return self._ceiling.under(node.config.limits, f"node {self._name(node)}", self._times)

    def _name(self, node: PlanNode) -> str:
        return self._prefix + node.id


def _agent_value(
    known: AgentEstimate, node: PlanNode, seen: Arrivals, largest: Largest
) -> AgentValue:
    assert isinstance(node.config, AgentNode)
    config = node.config.config
    return AgentValue(
        known.asked.provider,
        known.asked.model,
        known.asked.window,
        known.answer,
        known.asked.is_given,
        known.prompt,
        seen.once,
        largest,
        known.calls,
        largest.attempts,
        known.turns,
        known.repairs,
        known.thoughts,
        known.facts.sources,
        tuple(card.name for card in known.facts.skills),
        tuple(attachment.name for attachment in config.memories),
    )


def _skips_units(plan: Plan, node: PlanNode) -> bool:
    """Whether units that fail are left out."""
    dynamic = plan.dynamics.get(node.index)
    return dynamic is not None and dynamic.config.on_unit_error == "skip"


def _units(seen: Arrivals) -> Units | None:
    if seen.units is None:
        return None
    if seen.units.is_assumed:
        return "assumed"
    return "known" if seen.units.once.is_known else "unknown"
