"""The scheduler, without an event loop: whatever finishes first, the run is the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devall.config.edges import KeywordCondition
from devall.core.messages import Message, assistant, user
from devall.edges.conditions import keyword_test
from devall.engine.scheduler import (
    Command,
    Delivery,
    LoopEnded,
    RoundStarted,
    Scheduler,
    Skipped,
    Start,
)
from devall.graph.compile import compile_graph
from devall.graph.model import Plan
from devall.loading.loader import load_mapping

Say = Callable[[str, int], Sequence[str]]
"""What a node says in its run of that number."""


def plan_of(edges: Sequence[Mapping[str, Any]], **graph: Any) -> Plan:
    """The plan of passthrough nodes, named by the edges and `nodes`."""
    nodes = graph.pop("nodes", None)
    if nodes is None:
        nodes = dict.fromkeys(name for edge in edges for name in (edge["from"], edge["to"]))
    listed = [
        node if isinstance(node, dict) else {"id": node, "type": "passthrough"} for node in nodes
    ]
    data = {"graph": {"start": ["A"], **graph, "nodes": listed, "edges": list(edges)}}
    return compile_graph(load_mapping(data).root)


def arrow(source: str, target: str, word: str | None = None, **options: Any) -> dict[str, Any]:
    """An edge; `word` must stand in the message."""
    condition = (
        {} if word is None else {"condition": {"type": "keyword", "config": {"any": [word]}}}
    )
    return {"from": source, "to": target, **condition, **options}


@dataclass
class Trace:
    """What happened in a run, as a reader of it would see."""

    seen: dict[tuple[str, int], list[tuple[str, str, str]]] = field(default_factory=dict)
    """(node, visit) to the (role, text, source) of what it saw."""
    ended: list[tuple[tuple[str, ...], int, str]] = field(default_factory=list)
    triggers: dict[str, int] = field(default_factory=dict)

    @property
    def runs(self) -> dict[str, int]:
        found: dict[str, int] = {}
        for node, _ in self.seen:
            found[node] = found.get(node, 0) + 1
        return found


def run(plan: Plan, say: Say, choose: Callable[[int], int] = lambda _: 0) -> Trace:
    """Run a plan to its end; `choose` picks which of so many running nodes is done next."""
    trace = Trace()
    scheduler = Scheduler(plan)
    running: list[Start] = []

    def absorb(commands: Sequence[Command]) -> None:
        for command in commands:
            match command:
                case Start():
                    name = plan.nodes[command.node].id
                    assert command.node not in [other.node for other in running]
                    assert trace.triggers.get(name, 0) > 0, f"{name} starts without a trigger"
                    trace.triggers[name] = 0
                    trace.seen[name, command.visit] = [
                        (message.role, message.text, message.source) for message in command.messages
                    ]
                    running.append(command)
                case LoopEnded():
                    trace.ended.append((plan.names(command.loop), command.rounds, command.how))
                case Skipped() | RoundStarted():
                    pass

    for start in plan.starts:
        trace.triggers[plan.nodes[start].id] = 1
    absorb(scheduler.start([user("task")]))
    while running:
        done = running.pop(choose(len(running)))
        node = plan.nodes[done.node]
        words = [assistant(text, node.id) for text in say(node.id, done.visit)]
        deliveries: list[Delivery] = []
        for at, message in enumerate(words):
            for index in node.out_edges:
                edge = plan.edges[index]
                condition = edge.config.condition
                if isinstance(condition, KeywordCondition) and not keyword_test(condition.config)(
                    message.text
                ):
                    continue
                arriving = replace(message, role="user", keep=edge.config.keep_message)
                deliveries.append(Delivery(index, at, arriving if edge.config.carry_data else None))
                if edge.config.trigger:
                    trace.triggers[edge.config.to] = trace.triggers.get(edge.config.to, 0) + 1
        absorb(scheduler.finished(done.node, deliveries, words))
    assert scheduler.is_over
    return trace


def echo(node: str, visit: int) -> Sequence[str]:
    return [f"{node}{visit}"]


def script(**texts: Sequence[str]) -> Say:
    """Each node's words by visit; its name and visit when they are used up."""

    def say(node: str, visit: int) -> Sequence[str]:
        given = texts.get(node, ())
        return [given[visit - 1]] if visit <= len(given) else echo(node, visit)

    return say


def texts(trace: Trace, node: str, visit: int = 1) -> list[str]:
    return [text for _, text, _ in trace.seen[node, visit]]


def test_a_join_runs_once_with_its_inputs_in_the_order_of_the_edges() -> None:
    plan = plan_of([arrow("A", "B"), arrow("A", "C"), arrow("C", "D"), arrow("B", "D")])
    trace = run(plan, echo, choose=lambda count: count - 1)
    assert texts(trace, "D") == ["C1", "B1"]
    assert trace.runs == {"A": 1, "B": 1, "C": 1, "D": 1}


def test_a_node_that_nothing_triggers_is_skipped_and_settles_its_followers() -> None:
    plan = plan_of([arrow("A", "B", "never"), arrow("B", "C"), arrow("A", "C")])
    trace = run(plan, echo)
    assert trace.runs == {"A": 1, "C": 1}
    assert texts(trace, "C") == ["A1"]


def test_a_slow_source_of_a_data_edge_is_waited_for() -> None:
    plan = plan_of(
        [arrow("A", "B"), arrow("A", "C"), arrow("B", "D", trigger=False), arrow("C", "D")]
    )
    trace = run(plan, echo, choose=lambda count: count - 1)
    assert texts(trace, "D") == ["B1", "C1"]


def test_a_data_edge_that_closes_a_cycle_orders_nothing() -> None:
    plan = plan_of([arrow("A", "B"), arrow("B", "A", trigger=False)])
    assert run(plan, echo).runs == {"A": 1, "B": 1}
    assert plan.regions.loops() == ()


def test_an_exit_of_the_inner_loop_into_the_outer_body_does_not_end_the_outer_loop() -> None:
    plan = plan_of(
        [
            arrow("A", "B"),
            arrow("B", "C"),
            arrow("C", "B", "inner"),
            arrow("C", "D", "out"),
            arrow("D", "A", "outer"),
            arrow("D", "E", "end"),
        ]
    )
    say = script(C=["inner", "out", "inner", "inner", "out"], D=["outer", "end"])
    trace = run(plan, say)
    assert trace.runs == {"A": 2, "B": 5, "C": 5, "D": 2, "E": 1}
    assert trace.ended == [
        (("B", "C"), 2, "exit"),
        (("B", "C"), 3, "exit"),
        (("A", "B", "C", "D"), 2, "exit"),
    ]


def test_five_by_five_nested_rounds_run_five_and_twenty_five_times() -> None:
    plan = plan_of(
        [
            arrow("A", "B"),
            arrow("B", "B", "more"),
            arrow("B", "C", "enough"),
            arrow("C", "A", "again"),
            arrow("C", "E", "end"),
        ]
    )
    trace = run(plan, script(B=(["more"] * 4 + ["enough"]) * 5, C=["again"] * 4 + ["end"]))
    assert trace.runs == {"A": 5, "B": 25, "C": 5, "E": 1}


def test_two_cycles_that_share_a_node_take_turns() -> None:
    plan = plan_of(
        [
            arrow("A", "B", "x"),
            arrow("A", "C", "y"),
            arrow("B", "A"),
            arrow("C", "A"),
            arrow("A", "E", "exit"),
        ]
    )
    trace = run(plan, script(A=["x", "y", "x", "exit"]))
    assert trace.runs == {"A": 4, "B": 2, "C": 1, "E": 1}


def test_parallel_edges_between_the_same_nodes_each_count() -> None:
    plan = plan_of([arrow("A", "B", "x"), arrow("A", "B", "y"), arrow("A", "B", "z")])
    assert texts(run(plan, script(A=["x z"])), "B") == ["x z", "x z"]


def test_a_loop_that_nothing_enters_is_skipped_with_all_that_follows() -> None:
    plan = plan_of([arrow("A", "B", "never"), arrow("B", "C"), arrow("C", "B"), arrow("C", "D")])
    assert run(plan, echo).runs == {"A": 1}


def test_a_loop_without_another_trigger_ends_quietly() -> None:
    plan = plan_of([arrow("A", "B"), arrow("B", "A", "again")])
    trace = run(plan, script(B=["again", "no"]))
    assert trace.ended == [(("A", "B"), 2, "quiet")]


def test_a_loop_stops_at_its_bound() -> None:
    plan = plan_of([arrow("A", "A")], limits={"max_loop_iterations": 7})
    trace = run(plan, echo)
    assert trace.runs == {"A": 7}
    assert trace.ended == [(("A",), 7, "limit")]


def test_a_counter_with_a_larger_count_raises_the_bound_of_its_loop() -> None:
    counter = {"id": "N", "type": "loop_counter", "config": {"max_iterations": 9}}
    plan = plan_of(
        [arrow("A", "N"), arrow("N", "A")],
        nodes=["A", counter],
        limits={"max_loop_iterations": 3},
    )
    assert run(plan, echo).runs == {"A": 9, "N": 9}


def test_clearing_takes_nothing_that_comes_later() -> None:
    node = {"id": "D", "type": "passthrough", "context_window": -1}
    plan = plan_of(
        [arrow("A", "B"), arrow("B", "C"), arrow("C", "D"), arrow("A", "D", clear_context=True)],
        nodes=["A", "B", "C", node],
    )
    assert texts(run(plan, echo), "D") == ["A1", "C1"]


@pytest.mark.parametrize("count", [3000])
def test_a_long_chain_of_skipped_nodes_needs_no_deep_stack(count: int) -> None:
    edges = [arrow("A", "0", "never")]
    edges += [arrow(str(at), str(at + 1)) for at in range(count)]
    assert run(plan_of(edges), echo).runs == {"A": 1}


NAMES = "ABCDEFG"
WORDS = ("left", "right", "again", "on")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Nodes and edges of a small graph with whatever loops come of it."""
    names = NAMES[: draw(st.integers(2, len(NAMES)))]
    nodes = [
        {
            "id": name,
            "type": "passthrough",
            "context_window": draw(st.sampled_from([0, 0, 0, 1, 2, -1])),
        }
        for name in names
    ]
    edges: list[dict[str, Any]] = []
    for at, name in enumerate(names[1:], 1):
        edges.append(arrow(draw(st.sampled_from(names[:at])), name, draw(words)))
    for _ in range(draw(st.integers(0, len(names) + 2))):
        source, target = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        edges.append(arrow(source, target, draw(words), **draw(options)))
    return nodes, draw(st.permutations(edges))


words = st.sampled_from([None, None, *WORDS])
options = st.fixed_dictionaries(
    {},
    optional={
        "trigger": st.just(False),
        "carry_data": st.just(False),
        "keep_message": st.just(True),
        "clear_context": st.just(True),
        "clear_kept_context": st.just(True),
    },
).filter(lambda found: not ("trigger" in found and "carry_data" in found))


def babble(seed: int) -> Say:
    """Words that depend on nothing but the node, the visit and the seed."""

    def say(node: str, visit: int) -> Sequence[str]:
        number = crc32(f"{seed} {node} {visit}".encode())
        count = (1, 1, 1, 2, 0)[number % 5]
        return [f"{node}{visit}.{at} {WORDS[(number >> 4 * at) % 4]}" for at in range(count)]

    return say


def made(nodes: Sequence[Any], edges: Sequence[Any]) -> Plan:
    return plan_of(edges, nodes=nodes, limits={"max_loop_iterations": 6})


@settings(max_examples=120)
@given(graphs(), st.integers(0, 1000), st.randoms(use_true_random=False))
def test_every_order_of_completions_gives_the_same_messages(
    graph: tuple[list[Any], list[Any]], seed: int, chance: Any
) -> None:
    plan = made(*graph)
    first = run(plan, babble(seed))
    for _ in range(3):
        other = run(plan, babble(seed), choose=chance.randrange)
        assert other.seen == first.seen
        assert sorted(other.ended) == sorted(first.ended)


@settings(max_examples=80)
@given(graphs(), st.integers(0, 1000), st.data())
def test_listing_the_nodes_in_another_order_changes_nothing(
    graph: tuple[list[Any], list[Any]], seed: int, data: st.DataObject
) -> None:
    nodes, edges = graph
    shuffled = data.draw(st.permutations(nodes))
    first, other = run(made(nodes, edges), babble(seed)), run(made(shuffled, edges), babble(seed))
    assert other.seen == first.seen


@settings(max_examples=80)
@given(graphs(), st.integers(0, 1000))
def test_a_plan_serves_any_number_of_runs(graph: tuple[list[Any], list[Any]], seed: int) -> None:
    plan = made(*graph)
    assert run(plan, babble(seed)).seen == run(plan, babble(seed)).seen


def test_messages_of_one_moment_keep_the_order_of_edges_then_outputs() -> None:
    plan = plan_of([arrow("A", "B"), arrow("A", "B")])

    def say(node: str, visit: int) -> Sequence[str]:
        return ["one", "two"] if node == "A" else [node]

    assert texts(run(plan, say), "B") == ["one", "two", "one", "two"]


def test_a_start_message_is_the_first_thing_a_start_node_sees() -> None:
    plan = plan_of([arrow("A", "B")], start=["A", "B"])
    trace = run(plan, echo)
    assert texts(trace, "B") == ["task", "A1"]
    assert [role for role, _, _ in trace.seen["B", 1]] == ["user", "user"]


def test_a_message_is_never_changed_by_the_scheduler() -> None:
    plan = plan_of([arrow("A", "B")])
    message = Message("user", "x", "A")
    scheduler = Scheduler(plan)
    scheduler.start([user("task")])
    commands = scheduler.finished(0, [Delivery(0, 0, message)])
    assert [c.messages for c in commands if isinstance(c, Start)] == [(message,)]
