"""Commands that write workflow files anew: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devall.cli.parameters import AsJson, Debug, EnvFile, FunctionsDir, Variables

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
IMPORT_EXAMPLES = """Examples:

\b
  devall import chatdev yaml_instance
  devall import chatdev react.yaml --write
  devall import chatdev yaml_instance --write --output ../mine

\b
Of each file: whether it runs as it is, what is changed and why, what you have
to decide, and which servers, commands and keys it needs. Only that is changed
which means one thing; copies are called NAME.devall.yaml.
Exit codes: 0 all run, as they are or after the changes, 1 something is left
to decide, 2 wrong usage, 3 a file is no YAML.
"""

import_app = typer.Typer(
    help="Bring workflows of other programs here.",
    epilog=IMPORT_EXAMPLES,
    rich_markup_mode=None,
)


def add_rewriting_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("fmt", epilog=FMT_EXAMPLES)(fmt)
    import_app.command("chatdev", epilog=IMPORT_EXAMPLES)(import_chatdev)
    app.add_typer(import_app, name="import")


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


def import_chatdev(
    place: Annotated[
        Path, typer.Argument(metavar="FILE|DIR", help="A workflow of ChatDev 2.0, or a folder.")
    ],
    write: Annotated[bool, typer.Option("--write", help="Write the changed copies.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where copies of all files go; default: beside them."),
    ] = None,
    in_place: Annotated[bool, typer.Option("--in-place", help="Write over the originals.")] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace copies that are there already.")
    ] = False,
    var: Variables = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Check workflows of ChatDev 2.0, and write what has to change."""
    from devall.cli import importing

    return importing.execute(
        importing.ImportOptions(
            place=place,
            write=write,
            output=output,
            in_place=in_place,
            force=force,
            functions_dir=functions_dir,
            variables=var or (),
            env_file=env_file,
            as_json=as_json,
            debug=debug,
        )
    )
