"""Other durable engines, in a process of .venv/bench: `python -m bench.rivals_durable ENGINE`.

Each line on standard input names a piece of work; each line on standard output is the wall time
that it took, in seconds: `chain COUNT`, a run of so many steps that do nothing, and
`many RUNS STEPS SECONDS`, so many runs at once of so many steps of that time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from typing import TypedDict

Run = Callable[[int, float, str], Awaitable[object]]
"""One run of so many steps of that time, under that name."""


class State(TypedDict):
    """What LangGraph's steps hand on."""

    text: str


async def langgraph(_folder: Path) -> Run:
    """In memory, without a checkpointer."""
    return _langgraph(None)


async def langgraph_sqlite(folder: Path) -> Run:
    """With its own checkpointer on SQLite."""
    import aiosqlite
    from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

    return _langgraph(AsyncSqliteSaver(await aiosqlite.connect(folder / "langgraph.db")))


def _langgraph(saver: object) -> Run:
    from langgraph.graph import END, START, StateGraph

    graphs: dict[tuple[int, float], object] = {}

    def graph_of(steps: int, seconds: float) -> object:
        async def step(state: State) -> State:
            if seconds:
                await asyncio.sleep(seconds)
            return {"text": state["text"]}

        builder = StateGraph(State)
        names = [f"n{at}" for at in range(steps)]
        for name in names:
            builder.add_node(name, step)
        for source, target in pairwise([START, *names, END]):
            builder.add_edge(source, target)
        return builder.compile(checkpointer=saver)

    async def run(steps: int, seconds: float, name: str) -> object:
        graph = graphs.get((steps, seconds))
        if graph is None:
            graph = graphs[steps, seconds] = graph_of(steps, seconds)
        config = {"recursion_limit": steps + 10, "configurable": {"thread_id": name}}
        return await graph.ainvoke({"text": "x"}, config)

    return run


async def dbos(folder: Path) -> Run:
    """On SQLite, as it ships."""
    from dbos import DBOS, SetWorkflowID

    logging.disable(logging.WARNING)
    place = f"sqlite:///{folder / 'dbos.sqlite'}"
    DBOS(config={"name": "bench", "system_database_url": place, "run_admin_server": False})

    @DBOS.step()
    async def step(text: str, seconds: float) -> str:
        if seconds:
            await asyncio.sleep(seconds)
        return text

    @DBOS.workflow()
    async def chain(steps: int, seconds: float) -> str:
        text = "x"
        for _ in range(steps):
            text = await step(text, seconds)
        return text

    DBOS.launch()

    async def run(steps: int, seconds: float, name: str) -> object:
        with SetWorkflowID(name):
            return await chain(steps, seconds)

    return run


ENGINES = {each.__name__: each for each in (langgraph, langgraph_sqlite, dbos)}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = await ENGINES[sys.argv[1]](Path(folder))
        for turn, line in enumerate(sys.stdin):
            what, *numbers = line.split()
            if what == "many":
                runs, steps, seconds = int(numbers[0]), int(numbers[1]), float(numbers[2])
            else:
                runs, steps, seconds = 1, int(numbers[0]), 0.0
            began = time.perf_counter()
            await asyncio.gather(*(run(steps, seconds, f"{turn}-{at}") for at in range(runs)))
            print(time.perf_counter() - began, flush=True)
    os._exit(0)  # pools and pollers of the engines would be waited for


if __name__ == "__main__":
    asyncio.run(main())
