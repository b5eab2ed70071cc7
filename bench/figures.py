"""The figures, by section; each is measured when it is asked for."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench import graphs
from bench.processes import RIVALS, Worker, chat_server, cpu_of, side_by_side

IMPORTS = "import pydantic, ruamel.yaml, networkx, typer"


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    what: str
    figure: str
    bound: str = ""
    holds: bool = True


def ratio(what: str, one: float, other: float, bound: float | None = None) -> Row:
    """How many times `other` the one is."""
    found = one / other
    if bound is None:
        return Row(what, f"{found:.2f}")
    return Row(what, f"{found:.2f}", f"at most {bound:g}", found <= bound)


def chain(env: Mapping[str, str]) -> Iterator[Row]:
    """CPU time per node of a chain of 1,000 nodes: literals and passthroughs by turns in devall,
    steps that do nothing in the others. Built or loaded beforehand.
    """
    with ExitStack() as stack:
        own = stack.enter_context(Worker("bench.work", "run", "chain", 1000, env=env))
        work = {how: (own, how) for how in ("plain", "logs", "first")}
        for name in ("pydantic-graph", "langgraph"):
            rival = Worker("bench.rivals", name, 1000, env=env, python=RIVALS)
            work[name] = (stack.enter_context(rival), "")
        found = {name: each * 1000 for name, each in side_by_side(work, 9).items()}  # µs a node
    plain = found["plain"]
    yield Row(
        "`devall.run`, no `logs_dir`, no listener", f"{plain:.0f} µs", "at most 40 µs", plain <= 40
    )
    yield Row("the same, the first run of a loaded file (plans it)", f"{found['first']:.0f} µs")
    yield Row("the same with `logs_dir` (events.jsonl, run.log)", f"{found['logs']:.0f} µs")
    for name in ("pydantic-graph", "langgraph"):
        yield Row(f"{name}", f"{found[name]:.0f} µs")
        yield ratio(f"devall : {name}", plain, found[name], 1)


def growth(env: Mapping[str, str]) -> Iterator[Row]:
    """CPU time of 10,000 nodes : that of 1,000.

    The garbage collector looks through all that was loaded now and then, which falls into each
    run of 10,000 nodes side by side, and into few of 1,000; a process that runs one workflow
    for long does well to call `gc.freeze()` behind the loading, as `devall run` does.
    """
    for kind in ("chain", "wide"):
        with (
            Worker("bench.work", "run", kind, 1000, env=env) as small,
            Worker("bench.work", "run", kind, 10_000, env=env) as large,
        ):
            # As many nodes for both: the machine's moods and garbage collections weigh the same.
            both = (("small", small, 10), ("large", large, 1))
            found: dict[str, float] = {}
            for how, repeat in (("plain", 5), ("frozen", 5), ("load", 3)):
                found |= side_by_side(
                    {f"{how} {size}": (worker, f"{how} {times}") for size, worker, times in both},
                    repeat,
                    warm=int(how != "load"),
                )
        shape = {"chain": "a chain", "wide": "nodes side by side"}[kind]
        yield ratio(
            f"{shape}: a run, after `gc.freeze()`", found["frozen large"], found["frozen small"], 12
        )
        yield ratio(
            f"{shape}: a run",
            found["plain large"],
            found["plain small"],
            12 if kind == "chain" else None,
        )
        yield ratio(f"{shape}: load, check and plan", found["load large"], found["load small"], 12)


def memory(env: Mapping[str, str]) -> Iterator[Row]:
    """Peak memory of a fresh process that runs a chain of 10,000 nodes, beyond that of a run of
    ten nodes (imports).
    """
    with Worker("bench.work", "memory", 10_000, env=env) as worker:
        small, loaded, peak = (worker.measure(name) for name in ("small", "load", "run"))
    yield Row("imports and a run of ten nodes", f"{small:.0f} MiB")
    yield Row("10,000 nodes loaded and run, beyond that", f"{peak - small:.0f} MiB")
    yield Row("of it the run, beyond the peak of the loading", f"{peak - loaded:.0f} MiB")


def agents(env: Mapping[str, str]) -> Iterator[Row]:
    """Wall time of 200 agents side by side, over real HTTP to a server in another process that
    answers after 200 ms : that of a bare script that makes the same calls with one
    `AsyncOpenAI` client in a task group.
    """
    with (
        chat_server(env, m=0.2) as there,
        Worker("bench.work", "parallel", 200, env=there) as worker,
    ):
        names = ("bare", "devall", "bare-whole", "devall-whole")
        found = side_by_side({name: (worker, name) for name in names}, 4)
    yield ratio("streamed answers", found["devall"], found["bare"], 1.15)
    yield ratio("whole answers", found["devall-whole"], found["bare-whole"], 1.15)


def branches(env: Mapping[str, str]) -> Iterator[Row]:
    """Wall time of two branches of three agents each, where the slow nodes of one stand beside
    the quick ones of the other : that of the longest path, 2.25 s.
    """
    latencies = {"quick": 0.25, "slow": 1.0}
    one, other = ("slow", "quick", "slow"), ("quick", "slow", "slow")
    longest = sum(latencies[model] for model in one)
    with (
        chat_server(env, **latencies) as there,
        Worker("bench.work", "branches", ",".join(one), ",".join(other), env=there) as worker,
    ):
        found = side_by_side({name: (worker, name) for name in ("devall", "bare")}, 3)
    yield ratio(
        "devall : a bare script that makes the longest path's calls",
        found["devall"],
        found["bare"],
        1.05,
    )
    yield ratio("devall : the sum of these latencies", found["devall"], longest)


def starts(env: Mapping[str, str]) -> Iterator[Row]:
    """CPU time of commands from their start to their end : that of
    `python -c "import pydantic, ruamel.yaml, networkx, typer"`.
    """
    with tempfile.TemporaryDirectory() as name, chat_server(env, m=0) as there:
        folder = Path(name)
        texts = {"two": graphs.TWO, "loop": graphs.LOOP}
        texts["agents"] = graphs.branches(["m"], ["m"])
        for file, text in texts.items():
            (folder / f"{file}.yaml").write_text(text, encoding="utf-8")
        commands = {
            "imports": ("-c", IMPORTS),
            "`devall --help`": ("-m", "devall", "--help"),
            "`devall validate FILE`": ("-m", "devall", "validate", "two.yaml"),
            "`devall validate FILE`, with a loop": ("-m", "devall", "validate", "loop.yaml"),
            "`devall run FILE`, two nodes without a model": ("-m", "devall", "run", "two.yaml"),
            "`devall run FILE`, two agents": ("-m", "devall", "run", "agents.yaml"),
        }
        found: dict[str, list[float]] = {what: [] for what in commands}
        for turn in range(6):
            for what, command in commands.items():
                seconds = cpu_of(command, folder, there)
                if turn:  # the first compiles the modules
                    found[what].append(seconds)
    base = statistics.median(found.pop("imports"))
    for what, times in found.items():
        yield ratio(what, statistics.median(times), base, None if "run" in what else 2)


def loading(env: Mapping[str, str]) -> Iterator[Row]:
    """CPU time of loading a file, with positions, variables, models and all rules : that of
    ruamel.yaml's plain safe load of its text.
    """
    for count in (30, 1000):
        with Worker("bench.work", "loading", count, env=env) as worker:
            names = ("devall", "ruamel")
            found = side_by_side({name: (worker, name) for name in names}, 5)
        yield ratio(f"{count:,} nodes", found["devall"], found["ruamel"])


SECTIONS = {
    "A chain of 1,000 nodes": chain,
    "Growth": growth,
    "Memory": memory,
    "200 agents side by side": agents,
    "Two branches": branches,
    "Starts": starts,
    "Loading": loading,
}
