"""What is measured, in a process of its own: `python -m bench.work WHAT ARGUMENTS`.

Each line on standard input names a piece of work; each line on standard output is what it
took, in seconds or MiB. One process does it again and again, so that its start is left out,
and others can do theirs in between.
"""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from bench import graphs

Once = Callable[[str], Awaitable[float]]


async def run(folder: Path, kind: str, count: str) -> Once:
    """CPU time of runs of a file.

    - `load`: load, check and plan it, as if nothing were loaded yet;
    - `plain`: run what was loaded, without logs and listener;
    - `frozen`: the same with what was loaded out of the garbage collector's sight;
    - `first`: run what was loaded just before, which plans it;
    - `logs`: run with `logs_dir`.

    With a number behind it: the mean of so many.
    """
    import devall
    from devall.graph.compile import compile_graph

    file = folder / f"{kind}.yaml"
    file.write_text(getattr(graphs, kind)(int(count)), encoding="utf-8")
    loaded = devall.load_workflow(file)

    async def once(line: str) -> float:
        how, _, times = line.partition(" ")
        gc.unfreeze()
        if how in {"frozen", "load"}:
            gc.freeze()
        return statistics.fmean([await timed(how) for _ in range(int(times or 1))])

    async def timed(how: str) -> float:
        workflow = devall.load_workflow(file) if how == "first" else loaded
        options: dict[str, Any] = {"logs_dir": folder / "logs"} if how == "logs" else {}
        began = time.process_time()
        if how == "load":
            compile_graph(devall.load_workflow(file).root).regions.outermost()
        else:
            result = await devall.run(workflow, task="x", **options)
            assert result.status == "completed"
        return time.process_time() - began

    return once


async def parallel(folder: Path, count: str) -> Once:
    """Wall time of so many agents (`devall`), and of a bare script's same calls (`bare`).

    `devall-whole` and `bare-whole` ask for answers that are not streamed.
    """
    import openai

    import devall

    total = int(count)
    loaded: dict[bool, Any] = {}
    for stream in (False, True):
        file = folder / f"agents-{stream}.yaml"
        file.write_text(graphs.agents(total, stream=stream), encoding="utf-8")
        loaded[stream] = devall.load_workflow(file)

    async def by_devall(*, stream: bool) -> None:
        result = await devall.run(loaded[stream])
        assert result.status == "completed"
        assert result.usage.model_calls == total

    async def bare(*, stream: bool) -> None:
        async with (
            openai.AsyncOpenAI(
                base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0
            ) as client,
            asyncio.TaskGroup() as group,
        ):
            work = streamed if stream else whole
            tasks = [group.create_task(work(client)) for _ in range(total)]
        assert all(task.result() for task in tasks)

    async def once(name: str) -> float:
        who, _, whole = name.partition("-")
        began = time.perf_counter()
        await (bare if who == "bare" else by_devall)(stream=not whole)
        return time.perf_counter() - began

    return once


async def whole(client: Any) -> str:
    answer = await client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": "hello"}]
    )
    return answer.choices[0].message.content


async def streamed(client: Any, model: str = "m") -> str:
    stream = await client.chat.completions.create(
        model=model,
        messages=[{"role": "user", "content": "hello"}],
        stream=True,
        stream_options={"include_usage": True},
    )
    return "".join(
        [chunk.choices[0].delta.content or "" async for chunk in stream if chunk.choices]
    )


async def branches(folder: Path, one: str, other: str) -> Once:
    """Wall time of two branches (`devall`), and of the calls of the first one alone (`bare`)."""
    import openai

    import devall

    file = folder / "branches.yaml"
    file.write_text(graphs.branches(one.split(","), other.split(",")), encoding="utf-8")
    loaded = devall.load_workflow(file)

    async def once(name: str) -> float:
        began = time.perf_counter()
        if name == "devall":
            result = await devall.run(loaded)
            assert result.status == "completed"
        else:
            async with openai.AsyncOpenAI(
                base_url=os.environ["BASE_URL"], api_key=os.environ["API_KEY"], max_retries=0
            ) as client:
                for model in one.split(","):
                    await streamed(client, model)
        return time.perf_counter() - began

    return once


async def memory(folder: Path, count: str) -> Once:
    """Peak memory so far in MiB, after `small` (a run of ten nodes), `load` and `run` of many."""
    import devall

    file = folder / "chain.yaml"
    loaded: list[Any] = []

    async def once(name: str) -> float:
        if name == "small":
            file.write_text(graphs.chain(10), encoding="utf-8")
            await devall.run(file, task="x")
            file.write_text(graphs.chain(int(count)), encoding="utf-8")
        elif name == "load":
            loaded.append(devall.load_workflow(file))
        else:
            result = await devall.run(loaded[0], task="x")
            assert result.status == "completed"
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    return once


async def loading(folder: Path, count: str) -> Once:
    """CPU time of loading a file with all rules (`devall`), and of ruamel's load (`ruamel`)."""
    from ruamel.yaml import YAML

    import devall

    file = folder / "chain.yaml"
    text = graphs.chain(int(count))
    file.write_text(text, encoding="utf-8")

    async def once(name: str) -> float:
        began = time.process_time()
        if name == "devall":
            devall.load_workflow(file)
        else:
            YAML(typ="safe").load(text)
        return time.process_time() - began

    return once


async def server(_folder: Path, *latencies: str) -> Once:
    """A chat server that answers each model name after its latency; says its URL and its key."""
    from devall.testing.chat_server import ChatServer
    from devall.testing.script import Reply

    delays = dict(item.split("=") for item in latencies)
    script = {
        model: [Reply("hello there", delay=float(delay))] * 100_000
        for model, delay in delays.items()
    }
    async with ChatServer(script) as chat:
        print(chat.url, chat.env["API_KEY"], flush=True)
        await asyncio.to_thread(sys.stdin.read)
    raise SystemExit


WORK = {each.__name__: each for each in (run, parallel, branches, memory, loading, server)}


async def main() -> None:
    name, *arguments = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        once = await WORK[name](Path(folder), *arguments)
        for line in sys.stdin:  # blocks the loop on purpose: nothing else is to run
            print(await once(line.strip()), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
