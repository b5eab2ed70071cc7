"""Commands that write workflow files anew: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devall.cli.parameters import AsJson, Debug

FMT_EXAMPLES = """Examples:

\b
  devall fmt poem.yaml
  devall fmt yaml_instance/*.yaml --check
  devall fmt poem.yaml --diff
  devall fmt - < poem.yaml

\b
Lines are indented in one way; comments, order, quotes and values stay. With
--check or --diff nothing is written.
Exit codes: 0 formatted, 1 with --check: a file would change, 2 a file is
missing, 3 a file is no YAML.
"""


def add_rewriting_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("fmt", epilog=FMT_EXAMPLES)(fmt)


def fmt(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE", help="Workflow files; `-`: standard input to output."),
    ],
    check: Annotated[
        bool, typer.Option("--check", help="Only say which files would change.")
    ] = False,
    diff: Annotated[bool, typer.Option("--diff", help="Only show what would change.")] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Format workflow files."""
    from devall.cli import formatting

    return formatting.execute(
        formatting.FormatOptions(files=files, check=check, diff=diff, as_json=as_json, debug=debug)
    )
