"""A whole graph as one node."""

from __future__ import annotations

from collections.abc import Sequence

from devall.core.messages import Message, user
from devall.core.ports import NodeResult
from devall.engine.context import NodeScope
from devall.graph.model import Plan


class SubgraphExecutor:
    """Runs a graph afresh each time; it shares all that is the run's."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    async def run(self, scope: NodeScope, inputs: Sequence[Message], /) -> NodeResult:
        """The outputs of the graph's end node; the inputs are its task."""
        return NodeResult(tuple(await scope.run_graph(self._plan, inputs or (user(""),))))
