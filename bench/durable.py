"""Runs that are kept: the figures, and what is measured: `python -m bench.durable WHAT`."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

from bench import graphs
from bench.figures import Row, ratio
from bench.processes import RIVALS, Worker, side_by_side

Once = Callable[[str], Awaitable[float]]
CHAIN = 300
RUNS, STEPS, SECONDS = 200, 5, 0.2
ROUNDS = {"1,001": 143, "10,003": 1429}
"""Rounds of a loop of seven steps, by how many steps that makes."""
ENGINES = {
    "langgraph": "langgraph, in memory",
    "langgraph_sqlite": "langgraph, its SQLite checkpointer",
    "dbos": "DBOS on SQLite, as it ships",
}


def steps(env: Mapping[str, str]) -> Iterator[Row]:
    """Wall time per step of one run of 300 steps, one after the other, that do nothing: what the
    journal adds is what is bounded. Beside it other engines' chains of the same length, and an
    fsync of this disk, which `--durability full` waits for.
    """
    with ExitStack() as stack:
        own = stack.enter_context(Worker("bench.durable", "steps", env=env))
        agents = stack.enter_context(Worker("bench.durable", "agents", env=env))
        work = {how: (own, how) for how in ("memory", "normal", "full", "fsync")}
        work |= {f"run {how}": (agents, how) for how in ("memory", "sqlite")}
        for engine in ENGINES:
            rival = Worker("bench.rivals_durable", engine, env=env, python=RIVALS)
            work[engine] = (stack.enter_context(rival), f"chain {CHAIN}")
        found = {name: took / CHAIN * 1000 for name, took in side_by_side(work, 7).items()}
    added = found["normal"] - found["memory"]
    yield Row("a step, `--durability normal`", f"{added:.2f} ms", "at most 0.3 ms", added <= 0.3)
    full = found["full"] - found["memory"]
    yield Row("a step, `--durability full`", f"{full:.2f} ms")
    yield Row("an fsync", f"{found['fsync']:.2f} ms")
    whole, bare = found["run sqlite"], found["run memory"]
    yield Row("`devall.run`, an agent with its logs, journal in memory", f"{bare:.2f} ms")
    yield Row("the same, `journal: sqlite`", f"{whole:.2f} ms")
    yield ratio("`devall.run`: journal on SQLite : in memory", whole, bare)
    for engine, name in ENGINES.items():
        yield Row(name, f"{found[engine]:.2f} ms")
    for engine in ("langgraph_sqlite", "dbos"):
        yield ratio(f"a step in our journal : {ENGINES[engine]}", found["normal"], found[engine], 1)
        yield ratio(f"`devall.run` with an agent : {ENGINES[engine]}", whole, found[engine])


def many(env: Mapping[str, str]) -> Iterator[Row]:
    """Wall time of 200 runs at once of five steps of 200 ms each : one second, the ideal."""
    piece = f"many {RUNS} {STEPS} {SECONDS}"
    with ExitStack() as stack:
        own = stack.enter_context(Worker("bench.durable", "steps", env=env))
        agents = stack.enter_context(Worker("bench.durable", "agents", env=env))
        work = {f"journal {how}": (own, f"{piece} {how}") for how in ("normal", "full")}
        work |= {f"run {how}": (agents, f"{piece} {how}") for how in ("memory", "sqlite")}
        for engine in ENGINES:
            rival = Worker("bench.rivals_durable", engine, env=env, python=RIVALS)
            work[engine] = (stack.enter_context(rival), piece)
        found = side_by_side(work, 3)
    ideal = STEPS * SECONDS
    yield ratio("runs of our journal's steps", found["journal normal"], ideal, 1.15)
    yield ratio("the same, `--durability full`", found["journal full"], ideal)
    for engine, name in ENGINES.items():
        yield ratio(name, found[engine], ideal)
    yield ratio("`devall.run` with agents and their logs", found["run sqlite"], ideal)
    both = found["run sqlite"], found["run memory"]
    yield ratio("`devall.run`: journal on SQLite : in memory", *both)


def replays(env: Mapping[str, str]) -> Iterator[Row]:
    """CPU time of going through a finished run again: `devall.replay`, and `devall.resume`, which
    writes its logs too. The run is a loop of an agent that calls four tools at once in each round:
    seven steps (the tools it is offered, two model calls, four tool calls).
    """
    with Worker("bench.durable", "again", env=env) as worker:
        work = {
            f"{how} {n}": (worker, f"{how} {n}") for how in ("replay", "resume") for n in ROUNDS
        }
        found = side_by_side(work, 5)
    few, lots = ROUNDS
    took = found[f"replay {lots}"]
    yield Row(f"a replay of {lots} steps", f"{took:.2f} s", "at most 1.5 s", took <= 1.5)
    yield ratio(f"a replay: {lots} steps : {few}", took, found[f"replay {few}"], 12)
    yield Row(f"a resumed run of {lots} steps", f"{found[f'resume {lots}']:.2f} s")
    yield ratio(
        f"a resumed run: {lots} steps : {few}", found[f"resume {lots}"], found[f"resume {few}"], 12
    )


SECTIONS = {"A step in the journal": steps, "200 runs at once": many, "Replays": replays}


class Model:
    """A model in process, which answers after a time; where it has tools it calls them first."""

    provider = "openai"
    url = ""

    def __init__(self, name: str, source: Models) -> None:
        self.name = name
        self.source = source

    async def complete(self, request: Any, _on_text: Any) -> Any:
        """Tool calls, or a text."""
        from devall.core.messages import Message, ToolCall
        from devall.models.base import ChatReply

        source = self.source
        if source.seconds:
            await asyncio.sleep(source.seconds)
        if request.tools and request.messages[-1].role != "tool":
            source.rounds += 1
            calls = tuple(
                ToolCall(f"c{source.rounds}_{at}", "note", json.dumps({"text": f"number {at}"}))
                for at in range(4)
            )
            return ChatReply(Message("assistant", "", tool_calls=calls), "tool_calls")
        is_over = source.rounds == source.last
        return ChatReply(Message("assistant", "stop" if is_over else "hello there"))


class Models:
    """A source of such models."""

    def __init__(self, seconds: float = 0, last: int = -1) -> None:
        self.seconds = seconds
        self.last = last
        self.rounds = 0

    def model(self, choice: Any) -> Model:
        """The model of that name."""
        return Model(choice.name, self)

    async def aclose(self) -> None:
        """Nothing to close."""


async def kept_steps(folder: Path) -> Once:
    """Wall time of steps alone: `memory`, `normal`, `full`; `fsync`: of as many fsyncs."""
    from devall.engine.steps import take_step
    from devall.journal.base import Journal, Step, fingerprint
    from devall.journal.memory import MemoryJournal
    from devall.journal.sqlite import NewRun, SqliteStore

    store = SqliteStore(folder / "devall.db")
    store.open()
    names = count()

    async def journal(how: str) -> Journal:
        if how == "memory":
            return MemoryJournal()
        new = NewRun(id=f"r{next(names)}", workflow="", task="", settings={}, sources={}, nodes={})
        return await store.begin(new, lambda value: value, "full" if how == "full" else "normal")

    async def run(how: str, steps: int, seconds: float) -> None:
        kept = await journal(how)

        async def effect() -> Any:
            if seconds:
                await asyncio.sleep(seconds)
            return {"message": {"role": "assistant", "content": "hello there"}}

        for at in range(steps):
            request = {"model": "m", "messages": [{"role": "user", "content": f"hello {at}"}]}
            key = f"/A@{at + 1}/turn:1"
            await take_step(kept, Step(key, "model", request, fingerprint(request)), effect)
        await kept.finish("completed", None)

    async def once(line: str) -> float:
        what, *rest = line.split()
        began = time.perf_counter()
        if what == "many":
            runs, steps, seconds, how = int(rest[0]), int(rest[1]), float(rest[2]), rest[3]
            await asyncio.gather(*(run(how, steps, seconds) for _ in range(runs)))
        elif what == "fsync":
            handle = os.open(folder / "synced", os.O_WRONLY | os.O_CREAT)
            for _ in range(CHAIN):
                os.pwrite(handle, b"x" * 4096, 0)
                os.fsync(handle)
            os.close(handle)
        else:
            await run(what, CHAIN, 0)
        return time.perf_counter() - began

    return once


async def kept_agents(folder: Path) -> Once:
    """Wall time of whole runs of agents: `memory` and `sqlite` name the journal."""
    import devall

    loaded: dict[int, Any] = {}
    for steps in (CHAIN, STEPS):
        file = folder / f"agents-{steps}.yaml"
        file.write_text(graphs.branches(["m"] * steps, []), encoding="utf-8")
        loaded[steps] = devall.load_workflow(file)

    async def once(line: str) -> float:
        what, *rest = line.split()
        runs, steps, seconds, how = 1, CHAIN, 0.0, what
        if what == "many":
            runs, steps, seconds, how = int(rest[0]), int(rest[1]), float(rest[2]), rest[3]
        gc.collect()
        began = time.perf_counter()
        found = await asyncio.gather(
            *(
                devall.run(
                    loaded[steps],
                    task="x",
                    logs_dir=folder / "logs",
                    journal=how,  # pyright: ignore[reportArgumentType]
                    model_source=Models(seconds),
                )
                for _ in range(runs)
            )
        )
        took = time.perf_counter() - began
        assert all(each.usage.model_calls == steps for each in found)
        return took

    return once


async def again(folder: Path) -> Once:
    """CPU time of `replay` and `resume` of a finished run of so many steps."""
    import devall
    from devall.app import replay, resume

    place = folder / "functions/function_calling/kit.py"
    place.parent.mkdir(parents=True)
    place.write_text("async def note(text: str) -> str:\n    return text\n", encoding="utf-8")
    file = folder / "loop.yaml"
    file.write_text(graphs.tool_loop(max(ROUNDS.values()) + 10), encoding="utf-8")
    loaded = devall.load_workflow(file)
    logs = folder / "logs"
    for name, rounds in ROUNDS.items():
        run = name.replace(",", "")
        source = Models(last=rounds)
        result = await devall.run(loaded, task="x", run_id=run, logs_dir=logs, model_source=source)
        assert result.answer == "stop"
    gc.freeze()

    async def once(line: str) -> float:
        how, _, name = line.partition(" ")
        run = name.replace(",", "")
        gc.collect()
        began = time.process_time()
        if how == "replay":
            result = await replay(run, logs_dir=logs)
        else:
            result = await resume(run, logs_dir=logs, model_source=Models())
        took = time.process_time() - began
        assert result.answer == "stop"
        assert result.usage.tool_calls == 4 * ROUNDS[name]
        return took

    return once


WORK = {"steps": kept_steps, "agents": kept_agents, "again": again}


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        once = await WORK[sys.argv[1]](Path(folder))
        for line in sys.stdin:  # blocks the loop on purpose: nothing else is to run
            print(await once(line.strip()), flush=True)
        os._exit(0)  # a journal's thread is open


if __name__ == "__main__":
    asyncio.run(main())
