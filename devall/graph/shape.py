"""What a graph is made of, in the plain values that stand in events."""

from __future__ import annotations

from devall.config.edges import Always, Condition
from devall.core.messages import JsonValue
from devall.core.shape import EdgeShape, GraphShape, LoopShape, NodeShape
from devall.graph.model import Plan, PlanEdge


def shape_of(plan: Plan) -> GraphShape:
    """The nodes, edges and loops of a graph, those of its subgraphs included."""
    return GraphShape(
        id=plan.graph.id or plan.file.stem,
        nodes=tuple(
            NodeShape(
                node.id,
                node.config.type,
                shape_of(plan.subplans[node.id]) if node.id in plan.subplans else None,
            )
            for node in plan.nodes
        ),
        edges=tuple(map(_edge, plan.edges)),
        loops=tuple(
            LoopShape(plan.names(loop), plan.last_round(loop)) for loop in plan.regions.loops()
        ),
        start=plan.names(plan.starts),
        end=plan.names(plan.ends),
    )


def _edge(edge: PlanEdge) -> EdgeShape:
    config = edge.config
    return EdgeShape(
        config.from_,
        config.to,
        config.trigger,
        config.dynamic.type if config.dynamic is not None else "",
        _condition(config.condition),
    )


def _condition(condition: Condition) -> JsonValue:
    if isinstance(condition, Always) and condition.value:
        return None
    written = condition.model_dump(mode="json", exclude_defaults=True)
    return {"type": condition.type, **written}
