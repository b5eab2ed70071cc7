"""One measurement in a process of its own: `python -m bench.work NAME ARGS` prints JSON."""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, TypedDict

REPEAT = 7


async def _median(work: Callable[[], Awaitable[Any]], repeat: int = REPEAT) -> float:
    """Median CPU seconds of a piece of work, after one time to warm up."""
    await work()
    found: list[float] = []
    for _ in range(repeat):
        began = time.process_time()
        await work()
        found.append(time.process_time() - began)
    return statistics.median(found)


async def devall_run(kind: str, count: str, *options: str) -> dict[str, float]:
    """CPU seconds of a run of a loaded workflow, without listeners; `logs` writes its files."""
    import devall
    from bench import graphs
    from devall.graph.compile import compile_graph
    from devall.loading.loader import load_mapping

    data = getattr(graphs, kind)(int(count))
    began = time.process_time()
    loaded = load_mapping(data)
    compile_graph(loaded.root)
    made = time.process_time() - began
    with tempfile.TemporaryDirectory() as folder:
        logs: dict[str, Any] = {"logs_dir": folder} if "logs" in options else {}

        async def work() -> None:
            result = await devall.run(loaded, task="x", **logs)
            assert result.status == "completed"

        return {"seconds": await _median(work), "made": made}


async def pydantic_graph(count: str) -> dict[str, float]:
    """CPU seconds of a chain of no-op steps in pydantic-graph, built beforehand."""
    from pydantic_graph import GraphBuilder, StepContext

    builder = GraphBuilder(input_type=str, output_type=str, auto_instrument=False)

    async def step(ctx: StepContext[None, None, str]) -> str:
        return ctx.inputs

    steps = [builder.step(step, node_id=f"n{at}") for at in range(int(count))]
    edges = [builder.edge_from(builder.start_node).to(steps[0])]
    edges += [builder.edge_from(a).to(b) for a, b in pairwise(steps)]
    edges.append(builder.edge_from(steps[-1]).to(builder.end_node))
    builder.add(*edges)
    graph = builder.build()

    async def work() -> None:
        assert await graph.run(inputs="x") == "x"

    return {"seconds": await _median(work)}


class State(TypedDict):
    """The state of a LangGraph run."""

    text: str


async def langgraph(count: str) -> dict[str, float]:
    """CPU seconds of a chain of no-op nodes in LangGraph, compiled beforehand."""
    from langgraph.graph import END, START, StateGraph

    total = int(count)
    builder = StateGraph(State)

    async def step(state: Any) -> Any:
        return {"text": state["text"]}

    for at in range(total):
        builder.add_node(f"n{at}", step)
    builder.add_edge(START, "n0")
    for at in range(total - 1):
        builder.add_edge(f"n{at}", f"n{at + 1}")
    builder.add_edge(f"n{total - 1}", END)
    graph = builder.compile()

    async def work() -> None:
        assert (await graph.ainvoke({"text": "x"}, {"recursion_limit": total + 10}))["text"] == "x"

    return {"seconds": await _median(work, 3)}


async def parallel(count: str, latency: str) -> dict[str, float]:
    """Wall seconds of so many agents, and of a bare script that makes the same calls."""
    import openai

    import devall
    from bench import graphs
    from devall.loading.loader import load_mapping

    total = int(count)
    loaded = load_mapping(graphs.agents(total))

    async def by_devall() -> None:
        result = await devall.run(loaded)
        assert result.status == "completed"
        assert result.usage.model_calls == total

    async def bare() -> None:
        async with openai.AsyncOpenAI(
            base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0
        ) as client:

            async def one() -> str:
                stream = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "hello"}],
                    stream=True,
                    stream_options={"include_usage": True},
                )
                texts = [
                    chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices
                ]
                return "".join(texts)

            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(one()) for _ in range(total)]
            assert all(task.result() for task in tasks)

    found: dict[str, list[float]] = {"devall": [], "bare": []}
    for turn in range(5):
        for name, work in (("bare", bare), ("devall", by_devall)):
            began = time.perf_counter()
            await work()
            if turn:
                found[name].append(time.perf_counter() - began)
    return {name: statistics.median(times) for name, times in found.items()} | {
        "ideal": float(latency)
    }


async def branches(slow: str, quick: str) -> dict[str, float]:
    """Wall seconds of two branches of unequal nodes, and of the calls of one branch alone."""
    import devall
    from bench import graphs
    from devall.loading.loader import load_mapping

    loaded = load_mapping(graphs.branches())
    times: list[float] = []
    for turn in range(6):
        began = time.perf_counter()
        result = await devall.run(loaded)
        assert result.status == "completed"
        if turn:
            times.append(time.perf_counter() - began)
    return {"devall": statistics.median(times), "longest": float(slow) + float(quick)}


async def memory(count: str) -> dict[str, float]:
    """Peak memory of a run in MiB, what the imports and a small run take left out."""
    import devall
    from bench import graphs
    from devall.loading.loader import load_mapping

    await devall.run(load_mapping(graphs.chain(10)), task="x")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    loaded = load_mapping(graphs.chain(int(count)))
    made = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    result = await devall.run(loaded, task="x")
    assert result.status == "completed"
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"loaded": (made - before) / 1024, "run": (after - made) / 1024}


async def loading(count: str) -> dict[str, float]:
    """CPU seconds of loading a file with all rules, and of ruamel's own safe load of it."""
    from ruamel.yaml import YAML

    import devall
    from bench import graphs

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "chain.yaml"
        with place.open("w", encoding="utf-8") as file:
            writer = YAML()
            writer.dump(graphs.chain(int(count)), file)

        async def by_devall() -> None:
            devall.load_workflow(place)

        async def plain() -> None:
            YAML(typ="safe", pure=True).load(place.read_text(encoding="utf-8"))

        return {"devall": await _median(by_devall, 3), "ruamel": await _median(plain, 3)}


async def server(*latencies: str) -> None:
    """A chat server that answers each model name after its latency, until stdin ends."""
    from devall.testing.chat_server import ChatServer

    delays = dict(item.split("=") for item in latencies)
    script: dict[str, Any] = {
        name: [{"text": "hello there", "delay": float(delay)}] * 100_000
        for name, delay in delays.items()
    }
    async with ChatServer(script) as chat:
        print(json.dumps(chat.env), flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Measure what the arguments say."""
    name, *arguments = sys.argv[1:]
    found = asyncio.run(globals()[name](*arguments))
    if found is not None:
        print(json.dumps(found))


if __name__ == "__main__":
    main()
