"""Commands that look at one run, or at two: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devall.cli.parameters import AsJson, Debug, LogsDir, RunId

SHOW_EXAMPLES = """Examples:

\b
  devall show last
  devall show last poet
  devall show 20261130-1403 S/critic@2 --full
  devall show last poet --json | jq '.visits[0].model_calls[0].request'

\b
NODE is a node's id, `S/X` in a subgraph, or `X` wherever it is; `X@2` is its
second run. On a terminal long texts are cut: --full and --json have them
whole.
"""
WHY_EXAMPLES = """Examples:

\b
  devall why last critic
  devall why last S/critic@2

\b
For each edge into the node: whether it fired, in which run of its source, and
what in the text decided it; what the node waited for; why it was skipped, or
has not run; in a loop: which round it was, and why the loop was left.
"""
DIFF_EXAMPLES = """Examples:

\b
  devall diff 20261130-140312-5f3a9c last
  devall diff RUN RUN --all

\b
Times, durations and ids are no differences.
Exit codes: 0 the runs do not differ, 1 they do, 2 there is no such run.
"""

REPORT_EXAMPLES = """Examples:

\b
  devall report last
  devall report 20261130-1403 -o poem.html
  devall report last -o - | gzip > report.html.gz

\b
One HTML file that needs no network and can be mailed: how the run ended and
why, its answer, its graph, a timeline, costs, and for each node its prompts,
calls and outputs. Texts that would make it too large are cut, and say so.
"""

Full = Annotated[bool, typer.Option("--full", help="Show long texts whole on a terminal too.")]


def add_history_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog=SHOW_EXAMPLES)(show)
    app.command(epilog=WHY_EXAMPLES)(why)
    app.command(epilog=DIFF_EXAMPLES)(diff)
    app.command(epilog=REPORT_EXAMPLES)(report)


def show(
    run: RunId,
    node: Annotated[
        str | None, typer.Argument(metavar="[NODE]", help="A node; default: all, an overview.")
    ] = None,
    logs_dir: LogsDir = None,
    full: Full = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show what happened in a run: inputs, prompts, calls, outputs."""
    from devall.cli.show import ShowOptions, execute

    return execute(
        ShowOptions(run=run, node=node, logs_dir=logs_dir, full=full, as_json=as_json, debug=debug)
    )


def why(
    run: RunId,
    node: Annotated[str, typer.Argument(metavar="NODE", help="A node, or one run of it: X@2.")],
    logs_dir: LogsDir = None,
    full: Full = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Say why a node ran, was skipped, or has not run."""
    from devall.cli.why import WhyOptions, execute

    return execute(
        WhyOptions(run=run, node=node, logs_dir=logs_dir, full=full, as_json=as_json, debug=debug)
    )


def diff(
    first: Annotated[str, typer.Argument(metavar="RUN", help="A run: its id, or `last`.")],
    second: Annotated[str, typer.Argument(metavar="RUN", help="The other one.")],
    every: Annotated[
        bool, typer.Option("--all", help="Show every difference, not only the first.")
    ] = False,
    logs_dir: LogsDir = None,
    full: Full = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show where two runs begin to differ, node by node."""
    from devall.cli.diff import DiffOptions, execute

    return execute(
        DiffOptions(
            first=first,
            second=second,
            every=every,
            logs_dir=logs_dir,
            full=full,
            as_json=as_json,
            debug=debug,
        )
    )


def report(
    run: RunId,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="PATH",
            help="The file to write; -: standard output; default: report.html in the run's folder.",
        ),
    ] = None,
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Write a run as one HTML file, to look at and to mail."""
    from devall.cli.report import ReportOptions, execute

    return execute(
        ReportOptions(run=run, output=output, logs_dir=logs_dir, as_json=as_json, debug=debug)
    )
