"""Which output of a graph is its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from devall.core.messages import Message
from devall.graph.model import Plan

Outputs = Mapping[int, tuple[Message, ...]]
"""By node that may answer: what its last run that said something said."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a graph's run, if it has one, and where it comes from."""

    message: Message | None = None
    node: str | None = None
    warning: str = ""

    @property
    def text(self) -> str | None:
        """The answer's text."""
        return None if self.message is None else self.message.text


def may_answer(plan: Plan) -> frozenset[int]:
    """The nodes whose outputs decide the answer; those of all others need not be kept."""
    if plan.graph.is_majority_voting:
        return frozenset(range(len(plan.nodes)))
    return frozenset((*plan.ends, *plan.sinks))


def find_answer(plan: Plan, outputs: Outputs) -> Answer:
    """The last output of the first node in `end` that has one, else of the first such sink."""
    if plan.graph.is_majority_voting:
        return _majority(plan, outputs)
    for node in plan.ends:
        if outputs.get(node):
            return Answer(outputs[node][-1], plan.nodes[node].id)
    for node in plan.sinks:
        if outputs.get(node):
            name = plan.nodes[node].id
            ends = ", ".join(plan.names(plan.ends))
            warning = f"no node of `end` ({ends}) has an output; {name} answers" if ends else ""
            return Answer(outputs[node][-1], name, warning)
    return Answer(warning="the run has no answer: no node that could give one has an output")


def end_outputs(plan: Plan, outputs: Outputs) -> tuple[Message, ...]:
    """All outputs of the node that gives the answer: what a subgraph's node says."""
    answer = find_answer(plan, outputs)
    if answer.message is None:
        return ()
    if plan.graph.is_majority_voting:
        return (answer.message,)
    return next(outputs[node.index] for node in plan.nodes if node.id == answer.node)


def _majority(plan: Plan, outputs: Outputs) -> Answer:
    """The commonest output that is not empty; among equals the first in the file."""
    last = {node.id: said[-1] for node in plan.nodes if (said := outputs.get(node.index))}
    votes = Counter(text for message in last.values() if (text := message.text.strip()))
    if not votes:
        return Answer(warning="the run has no answer: every vote is empty")
    winner = max(votes.values())
    name = next(n for n, m in last.items() if votes.get(m.text.strip()) == winner)
    return Answer(last[name], name)
