"""Measures everything and writes bench/RESULTS.md; `python -m bench WORD...` measures the
sections with such a word in their names, and writes nothing.

Ends with 1 where a bound does not hold.
"""

from __future__ import annotations

import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from bench.durable import SECTIONS as DURABLE
from bench.figures import SECTIONS, Row
from bench.memories import SECTIONS as MEMORIES
from bench.processes import RIVALS, ROOT, environment
from bench.tools import SECTIONS as TOOLS
from bench.views import SECTIONS as VIEWS

RESULTS = Path(__file__).with_name("RESULTS.md")
PACKAGES = (
    "devall",
    "openai",
    "fastmcp",
    "mcp",
    "httpx2",
    "pydantic",
    "ruamel.yaml",
    "networkx",
    "typer",
)
RIVAL_PACKAGES = ("pydantic-graph", "langgraph", "langgraph-checkpoint-sqlite", "dbos")
VERSIONS = """
import sys
from importlib.metadata import version
print(*(f"{name} {version(name)}" for name in sys.argv[1:]), sep=", ")
"""


def machine() -> str:
    """The processor, by what the system calls it, and what else it had to do."""
    processor = platform.processor() or platform.machine()
    place = Path("/proc/cpuinfo")
    if place.exists():
        lines = place.read_text(encoding="utf-8").splitlines()
        names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = names[0] if names else processor
    return f"{processor}, {os.cpu_count()} cores, {platform.system()} {platform.release()}"


def versions() -> str:
    """Of the packages that are measured."""
    own = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    command = [RIVALS, "-c", VERSIONS, *RIVAL_PACKAGES]
    rivals = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return f"Python {platform.python_version()}, {own}; {rivals}"


def table(rows: Sequence[Row]) -> list[str]:
    """The rows of a section in Markdown."""
    marks = {(True, True): "holds", (True, False): "**does not hold**"}
    return [
        "| | figure | bound | |",
        "| --- | --- | --- | --- |",
        *(
            f"| {row.what} | {row.figure} | {row.bound} |"
            f" {marks.get((bool(row.bound), row.holds), '')} |"
            for row in rows
        ),
    ]


def main(words: Sequence[str]) -> int:
    """The exit code."""
    began = time.monotonic()
    if not RIVALS.exists():
        raise SystemExit("bench: the other engines are missing; call bench/setup.sh or make bench")
    chosen = {
        title: section
        for title, section in (SECTIONS | MEMORIES | TOOLS | VIEWS | DURABLE).items()
        if not words or any(word.lower() in title.lower() for word in words)
    }
    load_before = os.getloadavg()[0]
    text: list[str] = []
    holds = True
    with tempfile.TemporaryDirectory() as cache:
        for title, section in chosen.items():
            print(title, flush=True)
            section_began = time.monotonic()
            rows: list[Row] = []
            for row in section(environment(Path(cache))):
                rows.append(row)
                mark = "" if row.holds else "  DOES NOT HOLD"
                print(f"  {row.what}: {row.figure}  {row.bound}{mark}", flush=True)
            print(f"  {time.monotonic() - section_began:.0f} s", flush=True)
            holds = holds and all(row.holds for row in rows)
            about = " ".join((section.__doc__ or "").split())
            text += [f"## {title}", "", about, "", *table(rows), ""]
    if not words:
        head = [
            "# Results",
            "",
            "Written by `make bench`. Each figure is a median of repetitions that took turns with"
            " those it is compared with, in one run.",
            "",
            f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
            f"- {machine()}; load average {load_before:.1f} before, {os.getloadavg()[0]:.1f} after",
            f"- {versions()}",
            "",
        ]
        RESULTS.write_text("\n".join([*head, *text]), encoding="utf-8")
        print(f"{RESULTS.relative_to(ROOT)} written", end=" ")
    print(f"after {time.monotonic() - began:.0f} s")
    return 0 if holds else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
