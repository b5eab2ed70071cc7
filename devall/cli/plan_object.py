"""An estimate as the object that `devall plan --json` prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isfinite

from devall.core.messages import JsonValue
from devall.estimates.bounds import ONE, Bound
from devall.estimates.costs import Cost, Least
from devall.estimates.values import AgentValue, GraphValue, LoopValue, NodeValue, Stage

Object = dict[str, JsonValue]


@dataclass(slots=True)
class Shown:
    """Puts graphs into objects; loops get their positions."""

    loops: list[Object] = field(default_factory=list[Object])
    graphs: list[Object] = field(default_factory=list[Object])

    def graph(self, value: GraphValue) -> None:
        """Add a graph, and those inside of it."""
        self.graphs.append(
            {
                "graph": value.name,
                "order": self._order(value.stages, value.name),
                "cost": cost_object(value.cost),
                "at_least": _least(value.least),
                "seconds": bound_object(value.seconds),
            }
        )
        for inner in value.subgraphs:
            self.graph(inner)

    def _order(self, stages: tuple[Stage, ...], graph: str) -> JsonValue:
        return [
            [
                {"node": step, "loop": None}
                if isinstance(step, str)
                else {"node": None, "loop": self._loop(step, graph)}
                for step in stage
            ]
            for stage in stages
        ]

    def _loop(self, loop: LoopValue, graph: str) -> int:
        position = len(self.loops)
        told: Object = {}
        self.loops.append(told)
        told |= {
            "graph": graph,
            "nodes": list(loop.nodes),
            "rounds": {
                "at_most": loop.rounds.most,
                "key": loop.rounds.key,
                "node": loop.rounds.node or None,
                "loose_counters": list(loop.rounds.loose),
                "timers": [name for name, _ in loop.rounds.timers],
                "trusted_functions": list(loop.rounds.trusted),
            },
            "cost": cost_object(loop.cost),
            "order": self._order(loop.stages, graph),
        }
        return position


def bound_object(bound: Bound) -> Object:
    """A bound: whole numbers as such."""
    value = bound.value
    if value is not None and isfinite(value) and value == int(value):
        value = int(value)
    return {
        "at_most": round(value, 8) if isinstance(value, float) else value,
        "rests_on": list(bound.held_by),
        "missing": [
            {"node": each.node or None, "key": each.key or None, "why": each.why}
            for each in bound.missing
        ],
    }


def cost_object(cost: Cost) -> Object:
    """Bounds of what is used."""
    return {
        "model_calls": bound_object(cost.model_calls),
        "attempts": bound_object(cost.attempts),
        "tool_calls": bound_object(cost.tool_calls),
        "input_tokens": bound_object(cost.input_tokens),
        "output_tokens": bound_object(cost.output_tokens),
        "tokens": bound_object(cost.tokens),
        "usd": bound_object(cost.usd),
    }


def node_object(node: NodeValue) -> Object:
    """A node in all its runs."""
    return {
        "node": node.name,
        "type": node.type,
        "runs": bound_object(node.runs),
        "units": node.units,
        "cost": cost_object(node.cost),
        "each": cost_object(node.each),
        "at_least": _least(node.least),
        "seconds": bound_object(node.seconds),
        "agent": None if node.agent is None else _agent(node.agent),
    }


def largest_object(value: GraphValue) -> Object:
    """The largest model call of a graph."""
    largest = value.largest
    sent, written = largest.input_tokens, largest.output_tokens
    has_calls = value.cost.model_calls.value != 0
    calls = ONE if has_calls else Bound(0)
    attempts = calls * largest.attempts
    return cost_object(Cost(calls, Bound(0), sent, written, sent + written, largest.usd, attempts))


def _least(least: Least) -> Object:
    usd = None if least.usd is None else round(least.usd, 10)
    return {
        "runs": least.runs,
        "model_calls": least.model_calls,
        "input_tokens": least.input_tokens,
        "usd": usd,
    }


def _agent(agent: AgentValue) -> Object:
    prompt = agent.prompt
    return {
        "provider": agent.provider,
        "model": agent.model,
        "window": agent.window,
        "answer_tokens": bound_object(agent.answer),
        "prompt": {
            "role": prompt.role,
            "skills": prompt.skills,
            "output_schema": prompt.schema,
            "tools": prompt.tools,
            "inputs": bound_object(agent.inputs),
            "largest_request": bound_object(agent.largest.input_tokens),
        },
        "calls_per_run": bound_object(agent.calls),
        "turns": bound_object(agent.turns),
        "thoughts": bound_object(agent.thoughts),
        "repairs": agent.repairs,
        "attempts": agent.attempts,
        "sources": [
            {
                "source": side.label,
                "state": side.state,
                "tools": [tool.schema.name for tool in side.tools] if side.is_known else None,
            }
            for side in agent.sources
        ],
        "skills": list(agent.skills),
        "memories": list(agent.memories),
    }
