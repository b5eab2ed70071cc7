"""`make examples`: the workflows of yaml_instance/, run on the embedded model.

Each one is run as a user would, and a line says how it went; what the embedded model (135M
parameters) cannot do is skipped with the reason. With API_KEY in the environment the model is the
one at BASE_URL, and only what needs more than a model is skipped. `examples.py demo_human` runs
those that are named, whatever the model.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
FOLDER = PROJECT / "yaml_instance"
DEVALL = [sys.executable, "-m", "devall"]
TOGETHER = 110.0
"""Seconds for all runs on the embedded model; what is left then is skipped."""
SECONDS = {"embedded": 40, "other": 300}
"""Seconds for one run."""

NO_TOOLS = "it calls tools only where it has no choice, and not in order"
NO_JSON = "it takes minutes for JSON, and what it puts there is nonsense"
NO_JUDGEMENT = "it repeats a text instead of working on it"


@dataclass(frozen=True, slots=True)
class Example:
    """A workflow, and how it is run here."""

    name: str
    task: str = ""
    options: tuple[str, ...] = ()
    too_small: str = ""
    """Why the embedded model is not asked."""
    needs: str = ""
    """What there has to be beside a model: it is run only when it is named."""


PARAGRAPHS = """\
The library opened in 1903. It had 4,000 books.

In 1954 a fire burned the roof. No book was lost.

Today 300 people come each day. They borrow films as well.

A new wing will open in 2027.
"""
DIFF = """\
--- a/pages.py
+++ b/pages.py
@@ -1,1 +1,1 @@
-for number in range(1, last + 1):
+for number in range(1, last):
"""
INVOICE = "Invoice 17 of Miller Ltd, 2026-03-01: paint 20.00 EUR, brush 5.50 EUR. Total 25.50 EUR."
PYTHON = ("--var", f"PYTHON={sys.executable}")

EXAMPLES = (
    Example("demo_mcp_local", "Draw a number from 1 to 100.", PYTHON),
    Example("demo_human", "A slogan for a bakery", ("--answer", "Editor=ACCEPT")),
    Example("demo_reflection", "What is the capital of France?"),
    Example("demo_simple_memory", "My daughter Ida is allergic to nuts."),
    Example("demo_simple_memory", "What is my daughter Ida allergic to?"),
    Example("demo_dynamic_tree", PARAGRAPHS),
    Example("demo_loop_timer", "A toast for a wedding, two sentences.", ("--var", "SECONDS=5")),
    Example("demo_loop_counter", "Write two sentences about rain."),
    # It fits its schema, whatever stands in it.
    Example("demo_structured_output", INVOICE),
    Example("demo_template", "My lamp 4711 came broken, and the box was wet."),
    Example("demo_function_call", "What is the weather in Beijing?", too_small=NO_TOOLS),
    Example(
        "demo_code",
        "Print the first ten prime numbers.",
        too_small="it writes no code that does what is asked",
    ),
    Example(
        "demo_context_reset",
        "A leaflet for a bicycle repair shop",
        ("--answer", "Client=OK"),
        too_small=NO_JUDGEMENT,
    ),
    Example(
        "demo_edge_transform",
        "A lamp that follows the sun",
        too_small="it does not end with the line that the edge looks for",
    ),
    Example(
        "demo_expression",
        "An apology for a late delivery",
        ("--answer", "Boss=Enough."),
        too_small=NO_JSON,
    ),
    Example("demo_dynamic", "Moving to a city without a car", too_small=NO_JSON),
    Example(
        "demo_majority_voting",
        "What is 17 times 3?",
        too_small="it goes on after the answer, so that no two are equal",
    ),
    Example("demo_sub_graph", "A story about a lighthouse", too_small=NO_JUDGEMENT),
    Example("demo_sub_graph_path", PARAGRAPHS, too_small=NO_JUDGEMENT),
    Example("parts/review", "Aim: spelling. Text: Teh sea is bleu.", too_small=NO_JUDGEMENT),
    Example(
        "demo_file_memory",
        "What does exit code 75 mean?",
        too_small="it repeats the passages instead of answering from them",
    ),
    Example("demo_blackboard", "A street festival for 300 guests", too_small=NO_JUDGEMENT),
    Example("demo_skills", "Export orders as CSV\nFix a crash at login", too_small=NO_TOOLS),
    Example(
        "demo_attachments",
        "For our shop.",
        ("--attach", str(FOLDER / "data" / "sales.csv")),
        too_small="it takes no images",
    ),
    Example("write_article", "Why cities plant trees, 100 words", too_small=NO_JUDGEMENT),
    Example("software_team", "Roman numerals to numbers and back", too_small=NO_TOOLS),
    Example(
        "data_analysis",
        "Which region grows?",
        ("--attach", str(FOLDER / "data" / "sales.csv")),
        too_small=NO_TOOLS,
    ),
    Example("triage_issue", "The help text of `run` has a typo.", too_small=NO_JSON),
    Example("code_review", DIFF, too_small=NO_JSON),
    Example("translate_text", PARAGRAPHS, too_small="it speaks English only"),
    Example("support_desk", "The app shows error 12. What can I do?", too_small=NO_JSON),
    Example(
        "demo_mcp",
        "Draw a number from 1 to 100.",
        needs="a server that is started first: `make demo` does both",
    ),
    Example(
        "deep_research",
        "How do cities cool themselves in summer?",
        needs="the web, and some minutes",
    ),
    Example(
        "blender_builder",
        "A low-poly lighthouse on a rock",
        needs="uvx, and Blender with its add-on",
    ),
)


def main(names: list[str]) -> int:
    """Run the examples; 1 if one of them failed, 2 for a name that there is not."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    known = {each.name for each in EXAMPLES}
    if unknown := [name for name in names if name not in known]:
        print(
            f"examples: there is no example {unknown[0]!r} in scripts/examples.py", file=sys.stderr
        )
        return 2
    is_embedded = not os.environ.get("API_KEY")
    options = embedded_model() if is_embedded else []
    began = time.monotonic()
    counts = {"ok": 0, "skip": 0, "FAIL": 0}
    with tempfile.TemporaryDirectory(prefix="devall-examples-") as kept:
        for example in EXAMPLES:
            if names and example.name not in names:
                continue
            over = is_embedded and not names and time.monotonic() - began > TOGETHER
            reason = "" if names else why_not(example, is_embedded=is_embedded, is_over=over)
            if reason:
                counts["skip"] += 1
                print(f"skip  {example.name:<22}        {reason}", flush=True)
                continue
            limit = SECONDS["embedded" if is_embedded else "other"]
            counts[run(example, [*options, "--max-seconds", str(limit)], Path(kept))] += 1
    print(
        f"{counts['ok']} ok, {counts['FAIL']} failed, {counts['skip']} skipped"
        f" in {time.monotonic() - began:.0f} s"
    )
    return 1 if counts["FAIL"] else 0


def why_not(example: Example, *, is_embedded: bool, is_over: bool) -> str:
    """Why an example is not run; empty: it is."""
    if example.needs:
        return f"needs {example.needs}"
    if is_embedded and example.too_small:
        return f"too much for the embedded model: {example.too_small}"
    return "the time for all of them is over" if is_over else ""


def embedded_model() -> list[str]:
    """The options that name the embedded model, which is there then."""
    print("examples: no API_KEY: the embedded model, 135M parameters small", file=sys.stderr)
    # Where the file is goes to stdout, and is of no interest here.
    pull = [*DEVALL, "models", "pull", "smollm2"]
    subprocess.run(pull, check=True, cwd=PROJECT, stdout=subprocess.DEVNULL)
    return ["--provider", "local", "--model", "smollm2", "--var", "EMBEDDING=local"]


def run(example: Example, options: list[str], kept: Path) -> str:
    """How it went: `ok` or `FAIL`."""
    files = ("--var", f"MEMORY={kept / 'memory.json'}", "--var", f"INDEX={kept / 'index'}")
    command = [*DEVALL, "run", str(FOLDER / f"{example.name}.yaml"), "--task", example.task]
    command += [*example.options, *files, "--logs-dir", str(kept / "logs"), "--quiet", *options]
    began = time.monotonic()
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=PROJECT
    ) as process:
        try:
            answer, told = process.communicate()
        except BaseException:
            process.terminate()
            raise
    went = "ok" if process.returncode == 0 else "FAIL"
    said = " ".join((answer if went == "ok" else told).split())
    shown = said if len(said) <= 90 or went == "FAIL" else f"{said[:89]}…"
    print(f"{went:<4}  {example.name:<22} {time.monotonic() - began:4.0f} s  {shown}", flush=True)
    return went


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
