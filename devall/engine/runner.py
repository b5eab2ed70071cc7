"""One graph's run: the thin asynchronous shell around the scheduler."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import assert_never

from devall.config.nodes import LoopCounterNode
from devall.core.errors import (
    AnswerNeeded,
    JournalError,
    LimitReached,
    NodeError,
    NodeTimeout,
    RunError,
)
from devall.core.events import (
    EdgeFired,
    LoopLeft,
    LoopRound,
    NodeFailed,
    NodeFinished,
    NodeSkipped,
    NodeStarted,
    Warned,
)
from devall.core.ids import node_path
from devall.core.messages import JsonValue, Message, from_json, to_json
from devall.core.ports import NodeResult
from devall.engine.answer import end_outputs, may_answer
from devall.engine.context import EdgeRule, NodeScope, NodeSummary, Run
from devall.engine.fanout import first_leaf, run_units
from devall.engine.freshness import Freshness
from devall.engine.limits import NEAR, Deadline, Meter, near_text
from devall.engine.scheduler import (
    Command,
    Delivery,
    LoopEnded,
    RoundStarted,
    Scheduler,
    Skipped,
    Start,
)
from devall.engine.units import Units
from devall.graph.model import Plan, PlanEdge, PlanNode

BREATH = 200
"""Nodes that run without waiting, after which other tasks of the loop get their turn."""


class GraphRun:
    """A graph on its way: nodes start when the scheduler says so, each in its own task.

    Nodes that never wait for anything (literals, passthroughs, counters) run where they stand.
    """

    def __init__(
        self,
        run: Run,
        plan: Plan,
        *,
        name: str = "",
        path: str = "",
        meters: tuple[Meter, ...] = (),
        deadlines: tuple[Deadline, ...] = (),
        since: int = 0,
    ) -> None:
        self._run = run
        self._plan = plan
        self._name = name
        self._path = path
        limits = plan.graph.limits
        self._where = name.removesuffix("/")
        self._deadline = self._clock(limits.max_seconds, self._where)
        self._deadlines = (*deadlines, self._deadline)
        self._meters = (*meters, Meter(limits, self._where)) if limits.is_bounding else meters
        bounded = [node for node in plan.nodes if node.config.limits.is_bounding]
        self._node_meters = {
            node.index: Meter(node.config.limits, f"node {name}{node.id}") for node in bounded
        }
        self._node_clocks = {
            node.index: self._clock(node.config.limits.max_seconds, f"node {name}{node.id}")
            for node in bounded
        }
        self._long_loops: set[tuple[int, ...]] = set()
        """Loops of which it was said that their bound is near."""
        self._last_rounds: dict[tuple[int, ...], int] = {}
        """By loop, what `LoopRound.bound` says."""
        self._parts = run.assemble(plan, name)
        self.freshness = Freshness(plan, run.cuts, name, since) if run.cuts.nodes or since else None
        self._scheduler = Scheduler(plan)
        self._group: asyncio.TaskGroup | None = None
        self._questions: list[tuple[str, str]] = []
        self._breath = 0
        self._may_answer = may_answer(plan)
        self.outputs: dict[int, tuple[Message, ...]] = {}
        """By node that may answer: what its last run that said something said."""
        self._at_once = [self._never_waits(node) for node in plan.nodes]
        for node in plan.nodes:
            run.nodes.setdefault(name + node.id, NodeSummary())

    def _clock(self, seconds: float | None, where: str) -> Deadline:
        def say() -> None:
            bound = seconds or 0
            text = near_text("max_seconds", NEAR * bound, bound, where)
            self._run.emit(Warned(path=self._path, code="limit_near", message=text))

        return Deadline(seconds, say)

    def _never_waits(self, node: PlanNode) -> bool:
        """Whether neither the node nor what happens along its edges ever waits for anything."""
        if not self._parts.immediate[node.index] or node.config.timeout is not None:
            return False
        for edge in node.out_edges:
            rule = self._parts.rules[edge]
            if rule is not None and not rule.immediate:
                return False
        return node.index not in self._plan.dynamics

    async def complete(self, task: Sequence[Message]) -> None:
        """Run the graph to its end; `outputs` has what the nodes said.

        Raises:
            NodeError: a node failed, and the others were cancelled.
            LimitReached: a bound of the graph was reached.
            AnswerNeeded: all that could run has run; the rest waits for humans.
        """
        bound = self._plan.graph.limits.max_seconds or 0
        try:
            async with (
                self._deadline.within(LimitReached("max_seconds", bound, self._where)),
                asyncio.TaskGroup() as self._group,
            ):
                await self._carry_out(self._scheduler.start(task))
        except BaseExceptionGroup as group:
            leaf = first_leaf(group)
            raise leaf from leaf.__cause__
        finally:
            for close in self._parts.closers:
                await close()
        if self._questions:
            raise AnswerNeeded(self._questions)
        if not self._scheduler.is_over:
            names = ", ".join(self._plan.names(self._scheduler.running)) or "nothing"
            raise RunError(f"the run stands still, and only {names} is under way: a bug of devall")

    async def _carry_out(self, commands: Sequence[Command]) -> None:
        todo = deque(commands)
        while todo:
            command = todo.popleft()
            match command:
                case Start():
                    if not self._at_once[command.node]:
                        assert self._group is not None
                        self._group.create_task(self._own_task(command))
                        continue
                    todo.extend(await self._run_node(command))
                    self._breath += 1
                    if self._breath % BREATH == 0:
                        await asyncio.sleep(0)
                case Skipped():
                    self._skip(command)
                case RoundStarted():
                    self._watch_rounds(command)
                    if self._run.sinks:
                        self._tell_round(command)
                case LoopEnded():
                    self._loop_ended(command)
                case _:
                    assert_never(command)

    async def _own_task(self, start: Start) -> None:
        await self._carry_out(await self._run_node(start))

    def _skip(self, command: Skipped) -> None:
        node = self._plan.nodes[command.node]
        if self._run.sinks and not self._run.nodes[self._name + node.id].runs:
            self._run.emit(NodeSkipped(path=self._path, node=self._name + node.id))

    def _is_logged(self, node: PlanNode) -> bool:
        """Whether what a node says may stand in logs."""
        return node.config.log_output and self._name + node.id not in self._run.hidden

    def _tell_round(self, command: RoundStarted) -> None:
        loop = command.loop
        if loop not in self._last_rounds:
            self._last_rounds[loop] = self._plan.last_round(loop)
        self._run.emit(
            LoopRound(
                path=self._path,
                loop=self._plan.names(loop),
                round=command.round,
                bound=self._last_rounds[loop],
            )
        )

    def _watch_rounds(self, command: RoundStarted) -> None:
        """Warn once of a loop that comes near its bound; a counter in it would end it anyway."""
        limits = self._plan.graph.limits
        loop, bound = command.loop, limits.max_loop_iterations
        if command.round < NEAR * bound or limits.on_loop_limit == "continue" or bound == 1:
            return
        if loop in self._long_loops:
            return
        self._long_loops.add(loop)
        if not any(isinstance(self._plan.nodes[n].config, LoopCounterNode) for n in loop):
            where = f"loop {', '.join(self._plan.names(loop))}"
            text = near_text("max_loop_iterations", command.round, bound, where)
            self._run.emit(Warned(path=self._path, code="limit_near", message=text))

    def _loop_ended(self, command: LoopEnded) -> None:
        names = self._plan.names(command.loop)
        if self._run.sinks:
            self._run.emit(
                LoopLeft(
                    path=self._path,
                    loop=names,
                    rounds=command.rounds,
                    exited=command.how == "exit",
                )
            )
        if command.how == "limit" and self._plan.graph.limits.on_loop_limit == "fail":
            raise LimitReached(
                "max_loop_iterations",
                command.rounds,
                f"loop {', '.join(names)}",
                hint="give the loop a way out that is taken, raise `limits.max_loop_iterations`, "
                "or let it end silently by `limits.on_loop_limit: continue`",
            )

    async def _run_node(self, start: Start) -> Sequence[Command]:
        """Run a node once, and answer with what follows."""
        node = self._plan.nodes[start.node]
        scope = self._scope(node, start.visit)
        run = self._run
        summary = run.nodes[scope.node]
        summary.status = "running"
        began = time.perf_counter()
        if run.sinks:
            seen = (*start.messages, *start.units)
            run.emit(NodeStarted(path=scope.path, node=scope.node, visit=start.visit, inputs=seen))
        try:
            if self._at_once[node.index]:
                summary.runs += 1
                executor = self._parts.executors[node.index]
                result = await executor.run(scope, start.messages)
            else:
                result = await self._in_time(node, scope, start, summary)
            if result is None:
                summary.status = "completed" if summary.runs else "skipped"
                self._skip(Skipped(node.index))
                return self._scheduler.finished(node.index, ())
            over = _gone_over(scope)
            if over is not None and self._is_continued(node, scope, over):
                return self._failed(node, scope, start.visit, began, over)
            deliveries = [] if over else await self._fire(node, scope, result.outputs)
        except asyncio.CancelledError:
            summary.status = "cancelled"
            raise
        except AnswerNeeded as need:
            summary.status = "waiting"
            self._questions.extend(need.questions)
            return ()
        except BaseExceptionGroup as group:
            return self._failed(node, scope, start.visit, began, first_leaf(group))
        except Exception as error:  # noqa: BLE001 - a node's run is a boundary
            return self._failed(node, scope, start.visit, began, error)
        summary.status = "completed"
        if self.freshness is not None:
            self.freshness.ended(node.index, scope.since)
        if result.outputs and node.index in self._may_answer:
            self.outputs[node.index] = result.outputs
        if run.sinks:
            self._tell(node, scope, start.visit, time.perf_counter() - began, result, deliveries)
        if over is not None:
            # The reply is kept: the node has finished, and nothing follows.
            raise NodeError(scope.node, scope.path, over) from over
        return self._scheduler.finished(node.index, deliveries, _own_words(node, result))

    def _scope(self, node: PlanNode, visit: int) -> NodeScope:
        meters = self._meters
        if node.index in self._node_meters:
            meters = (*meters, self._node_meters[node.index])
        path = node_path(self._path, node.id, visit)
        since = self.freshness.since(node.index) if self.freshness else 0
        return NodeScope(self._run, self._name + node.id, path, meters, self._deadlines, since)

    async def _in_time(
        self, node: PlanNode, scope: NodeScope, start: Start, summary: NodeSummary
    ) -> NodeResult | None:
        """The node's run, or that of all its units, within its time; None: no unit at all."""
        deadline = Deadline(node.config.timeout)
        bound = node.config.limits.max_seconds
        scope.deadlines = (*scope.deadlines, deadline)
        executor = self._parts.executors[node.index]
        dynamic = self._plan.dynamics.get(node.index)

        async with AsyncExitStack() as times:
            if bound is not None:
                clock = self._node_clocks[node.index]  # of all runs of the node together
                scope.deadlines = (*scope.deadlines, clock)
                reached = LimitReached("max_seconds", bound, f"node {scope.node}")
                await times.enter_async_context(clock.within(reached))
            timeout = NodeTimeout(node.config.timeout or 0)
            await times.enter_async_context(deadline.within(timeout))
            if dynamic is None:
                summary.runs += 1
                return await executor.run(scope, start.messages)
            units = Units(executor, scope, summary, dynamic.config, self._is_logged(node))
            try:
                return await run_units(dynamic, start.messages, start.units, units.run)
            finally:
                units.tell()

    async def _fire(
        self, node: PlanNode, scope: NodeScope, outputs: Sequence[Message]
    ) -> list[Delivery]:
        """What goes along which edge: by output, then in the order of the file."""
        found: list[Delivery] = []
        rules = self._parts.rules
        for at, message in enumerate(outputs):
            for index in node.out_edges:
                edge = self._plan.edges[index]
                rule = rules[index]
                carried: Message | None = message
                if rule is not None:
                    if rule.immediate:
                        carried = await rule(message)
                    else:
                        carried = await _decided(rule, scope, f"edge:{index}.{at}", message)
                    if carried is None:
                        continue
                arriving = _arriving(carried, edge) if edge.config.carry_data else None
                found.append(Delivery(index, at, arriving))
        return found

    def _failed(
        self, node: PlanNode, scope: NodeScope, visit: int, began: float, error: BaseException
    ) -> Sequence[Command]:
        """Note a failure: the end of the run, or (`on_error: continue`) of this branch."""
        self._run.nodes[scope.node].status = "failed"
        own = isinstance(error, NodeError)
        failure = error if own else NodeError(scope.node, scope.path, error)
        continued = self._is_continued(node, scope, failure.cause)
        self._run.emit(
            NodeFailed(
                path=scope.path,
                node=scope.node,
                visit=visit,
                seconds=time.perf_counter() - began,
                code=failure.cause_code,
                message=str(failure.cause),
                hint=failure.hint,
                continued=continued,
            )
        )
        if continued:
            return self._scheduler.finished(node.index, ())
        if own:
            raise error
        raise failure from error

    def _is_continued(self, node: PlanNode, scope: NodeScope, cause: BaseException) -> bool:
        """Whether the run goes on without the node: not where a bound of more than it is met."""
        if node.config.on_error != "continue" or isinstance(cause, JournalError):
            return False
        if not isinstance(cause, LimitReached):
            return True
        bounded = cause.where.removeprefix("node ")
        return bool(bounded) and not scope.node.startswith(f"{bounded}/")

    def _tell(
        self,
        node: PlanNode,
        scope: NodeScope,
        visit: int,
        seconds: float,
        result: NodeResult,
        deliveries: Sequence[Delivery],
    ) -> None:
        self._run.emit(
            NodeFinished(
                path=scope.path,
                node=scope.node,
                visit=visit,
                seconds=seconds,
                outputs=result.outputs,
                log_output=self._is_logged(node),
            )
        )
        for delivery in deliveries:
            target = self._plan.nodes[self._plan.edges[delivery.edge].target].id
            self._run.emit(
                EdgeFired(
                    path=self._path,
                    source=scope.node,
                    target=self._name + target,
                    edge=delivery.edge,
                )
            )


async def _decided(rule: EdgeRule, scope: NodeScope, name: str, message: Message) -> Message | None:
    """What a rule of the user's code makes of a message, as a step: it may decide by anything."""

    async def call() -> JsonValue:
        carried = await rule(message)
        return None if carried is None else to_json(carried)

    value = await scope.step("edge", name, to_json(message), call)
    return None if value is None else from_json(value)


def _gone_over(scope: NodeScope) -> LimitReached | None:
    """The bound that the run of the node went over with what it has done, if any."""
    for meter in scope.meters:
        over = meter.over(scope.path)
        if over is not None:
            return over
    return None


def _own_words(node: PlanNode, result: NodeResult) -> Sequence[Message]:
    """What the node remembers of what it said: as the assistant, none of it kept."""
    if node.config.context_window == 0:
        return ()
    if result.remembered is not None:
        return result.remembered
    return [replace(message, role="assistant", keep=False) for message in result.outputs]


def _arriving(message: Message, edge: PlanEdge) -> Message:
    """The message as it lies in the target's inbox.

    A kept message that is passed on stays kept, as its role stays when it is preserved.
    """
    role = "user"
    if message.preserve_role:
        role = message.role
    elif edge.source == edge.target:
        role = "assistant"
    keep = edge.config.keep_message or message.keep
    source = edge.config.from_
    if message.role == role and message.keep == keep and message.source == source:
        return message
    return Message(role, message.content, source, keep, message.preserve_role)


async def run_inside(
    run: Run, plan: Plan, scope: NodeScope, task: Sequence[Message]
) -> Sequence[Message]:
    """The outputs of a graph that runs inside of a node's run, sharing all that is the run's."""
    graph = GraphRun(
        run,
        plan,
        name=f"{scope.node}/",
        path=scope.path,
        meters=scope.meters,
        deadlines=scope.deadlines,
        since=scope.since,
    )
    await graph.complete(task)
    if graph.freshness is not None:
        scope.since = max(scope.since, graph.freshness.newest)
    return end_outputs(plan, graph.outputs)
