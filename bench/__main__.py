"""All benchmarks; writes bench/RESULTS.md. Exit code 1 where a bound does not hold."""

from __future__ import annotations

import contextlib
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).with_name("RESULTS.md")
IMPORTS = "import pydantic, ruamel.yaml, networkx, typer"
WORKFLOW = """graph:
  start: A
  nodes:
    - {id: A, type: literal, config: {content: hello}}
    - {id: B, type: agent, config: {provider: openai, name: m, api_key: "none"}}
  edges:
    - {from: A, to: B}
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One figure."""

    what: str
    figure: str
    bound: str = ""
    holds: bool = True


def work(name: str, *arguments: object, env: dict[str, str] | None = None) -> dict[str, float]:
    """What `bench.work` measured in a process of its own."""
    command = [sys.executable, "-m", "bench.work", name, *map(str, arguments)]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | (env or {}), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"bench: {' '.join(command)} failed\n{done.stderr}")
    return json.loads(done.stdout)


@contextlib.contextmanager
def chat_server(**latencies: float) -> Iterator[dict[str, str]]:
    """A chat server in a process of its own; gives the environment that points to it."""
    command = [sys.executable, "-m", "bench.work", "server"]
    command += [f"{name}={seconds}" for name, seconds in latencies.items()]
    with subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        yield json.loads(process.stdout.readline())
        process.stdin.close()


def ratio(one: float, other: float, bound: float | None = None) -> tuple[str, str, bool]:
    """The figure, the bound, and whether it holds."""
    found = one / other
    return (
        f"{found:.2f}",
        "" if bound is None else f"at most {bound:g}",
        not bound or found <= bound,
    )


def chains() -> Iterator[Row]:
    """CPU for a chain, beside others, side by side."""
    names = ["devall"]
    for package, name in (("pydantic-graph", "pydantic_graph"), ("langgraph", "langgraph")):
        with contextlib.suppress(PackageNotFoundError):
            version(package)
            names.append(name)
    found: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(3):
        for name in names:
            arguments = ("devall_run", "chain", 1000) if name == "devall" else (name, 1000)
            found[name].append(work(*arguments)["seconds"])
    own = statistics.median(found["devall"])
    per_node = own / 1000 * 1e6
    yield Row(
        "CPU of `devall.run` on a loaded chain of 1,000 literal and passthrough nodes, no logs",
        f"{per_node:.0f} µs a node",
        "at most 40 µs",
        per_node <= 40,
    )
    for name in names[1:]:
        other = statistics.median(found[name])
        text = f"{other / own:.1f} times devall's ({other / 1000 * 1e6:.0f} µs a step)"
        yield Row(
            f"the same chain of 1,000 no-op steps in {name}", text, "more than 1", other > own
        )
    logged = work("devall_run", "chain", 1000, "logs")["seconds"]
    yield Row("the same with events.jsonl and run.log", f"{logged / 1000 * 1e6:.0f} µs a node")


def growth() -> Iterator[Row]:
    """10,000 nodes beside 1,000."""
    for kind in ("chain", "wide"):
        small = work("devall_run", kind, 1000)
        large = work("devall_run", kind, 10_000)
        yield Row(
            f"10,000 nodes beside 1,000, {kind}: the run",
            *ratio(large["seconds"], small["seconds"], 12),
        )
        yield Row(
            f"10,000 nodes beside 1,000, {kind}: checking and planning",
            *ratio(large["made"], small["made"], 12),
        )
    found = work("memory", 10_000)
    yield Row(
        "peak memory of a run of 10,000 nodes, beyond the loaded workflow",
        f"{found['run']:.0f} MiB (the workflow itself: {found['loaded']:.0f} MiB)",
    )


def models() -> Iterator[Row]:
    """Agents beside bare calls."""
    with chat_server(m=0.2) as env:
        found = work("parallel", 200, 0.2, env=env)
    yield Row(
        "200 parallel agents, model latency 200 ms: wall time beside a bare script",
        *ratio(found["devall"], found["bare"], 1.15),
    )
    with chat_server(slow=0.8, quick=0.2) as env:
        found = work("branches", 0.8, 0.2, env=env)
    yield Row(
        "two branches of unequal nodes: wall time beside the longest path",
        *ratio(found["devall"], found["longest"], 1.05),
    )


def starts() -> Iterator[Row]:
    """Commands from a cold start, in CPU time, beside the imports alone."""
    with tempfile.TemporaryDirectory() as folder, chat_server(m=0.0) as env:
        file = Path(folder) / "two.yaml"
        file.write_text(WORKFLOW, encoding="utf-8")
        commands = {
            "imports": ["-c", IMPORTS],
            "devall --help": ["-m", "devall", "--help"],
            "devall validate FILE": ["-m", "devall", "validate", str(file)],
            "devall run FILE (one model call)": ["-m", "devall", "run", str(file), "--quiet"],
        }
        found: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(7):
            for name, command in commands.items():
                found[name].append(cpu_of([sys.executable, *command], folder, env))
    base = statistics.median(found.pop("imports"))
    for name, times in found.items():
        bound = None if "run" in name else 2
        yield Row(f"`{name}` beside `{IMPORTS}`", *ratio(statistics.median(times), base, bound))


def cpu_of(command: Sequence[str], folder: str, env: dict[str, str]) -> float:
    """CPU seconds of a child process and its children."""
    before = os.times()
    subprocess.run(
        command,
        cwd=folder,
        env=os.environ | env | {"PYTHONPATH": str(ROOT)},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    after = os.times()
    return (after.children_user - before.children_user) + (
        after.children_system - before.children_system
    )


def files() -> Iterator[Row]:
    """Reading and checking a file, beside ruamel's own load of it."""
    for count in (30, 1000):
        found = work("loading", count)
        yield Row(
            f"loading a file of {count} nodes with all rules, beside ruamel's plain safe load",
            *ratio(found["devall"], found["ruamel"]),
        )


def main() -> int:
    """Run everything, write the results."""
    began = time.monotonic()
    rows: list[Row] = []
    for part in (chains, growth, models, starts, files):
        for row in part():
            rows.append(row)
            mark = "" if row.holds else "   OVER THE BOUND"
            print(f"{row.what}: {row.figure} {row.bound}{mark}", flush=True)
    packages = (
        "devall",
        "openai",
        "pydantic",
        "ruamel.yaml",
        "networkx",
        "pydantic-graph",
        "langgraph",
    )
    versions: list[str] = []
    for package in packages:
        with contextlib.suppress(PackageNotFoundError):
            versions.append(f"{package} {version(package)}")
    lines = [
        "# Results",
        "",
        "Written by `make bench`: ratios of medians, measured side by side in one run.",
        "",
        f"{datetime.now(UTC).date().isoformat()}, Python {platform.python_version()} on {platform.system()}, "
        f"{os.cpu_count()} cores; {', '.join(versions)}.",
        "",
        "| what | figure | bound | |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row.what} | {row.figure} | {row.bound} | {'' if row.holds else 'over'} |"
            for row in rows
        ),
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print(f"{RESULTS.relative_to(ROOT)} written in {time.monotonic() - began:.0f} s")
    return 0 if all(row.holds for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
