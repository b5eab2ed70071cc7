"""Other engines, in a process of .venv/bench: `python -m bench.rivals ENGINE COUNT`.

Each line on standard input is one run of a chain of so many no-op steps, built beforehand;
each line on standard output is the CPU time that it took, in seconds.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable
from itertools import pairwise
from typing import TypedDict


class State(TypedDict):
    """What LangGraph's steps hand on."""

    text: str


def langgraph(count: int) -> Callable[[], object]:
    """Plain functions and `invoke`, which takes less than coroutines and `ainvoke`."""
    from langgraph.graph import END, START, StateGraph

    def step(state: State) -> State:
        return {"text": state["text"]}

    builder = StateGraph(State)
    names = [f"n{at}" for at in range(count)]
    for name in names:
        builder.add_node(name, step)
    for source, target in pairwise([START, *names, END]):
        builder.add_edge(source, target)
    graph = builder.compile()
    return lambda: graph.invoke({"text": "x"}, {"recursion_limit": count + 10})


def pydantic_graph(count: int) -> Callable[[], object]:
    """Coroutines, without the spans for its tracing, which take a seventh more."""
    from pydantic_graph import GraphBuilder, StepContext

    builder = GraphBuilder(input_type=str, output_type=str, auto_instrument=False)

    async def step(ctx: StepContext[None, None, str]) -> str:
        return ctx.inputs

    steps = [builder.step(step, node_id=f"n{at}") for at in range(count)]
    ways = pairwise([builder.start_node, *steps, builder.end_node])
    builder.add(*(builder.edge_from(source).to(target) for source, target in ways))
    graph = builder.build()
    runner = asyncio.Runner()
    return lambda: runner.run(graph.run(inputs="x"))


ENGINES = {"langgraph": langgraph, "pydantic-graph": pydantic_graph}


def main() -> None:
    engine, count = sys.argv[1:]
    once = ENGINES[engine](int(count))
    for _ in sys.stdin:
        began = time.process_time()
        once()
        print(time.process_time() - began, flush=True)


if __name__ == "__main__":
    main()
