"""Commands for tests of workflows: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from devall.cli.parameters import AsJson, Debug, LogsDir, RunId

TEST_EXAMPLES = """Examples:

\b
  devall test
  devall test tests/workflows/poem -j 1
  devall test -k poem --update
  devall test --report junit=out/tests.xml --report markdown=out/tests.md

\b
A case is a folder with a case.yaml: a workflow, a task, a recording or
scripted replies, and what is expected; `devall test add RUN NAME` makes one
of a run, `devall schema --output test-case` prints its JSON Schema. No model
is called, except by --update where requests changed.
Exit codes: 0 all pass, 7 one does not, 2 wrong usage or no cases,
3 a case's file is wrong, 4 a report could not be written.
"""
ADD_EXAMPLES = """Examples:

\b
  devall test add last poem
  devall test add 20261130-140312-5f3a9c review/accepted --force
"""


class Commands(TyperGroup):
    """Commands of which some have a name of two words, the first of them being a command too."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that arguments begin with, and the rest of them."""
        two = " ".join(args[:2])
        return super().resolve_command(ctx, [two, *args[2:]] if two in self.commands else args)


def add_test_commands(app: typer.Typer) -> None:
    """Add the commands to the command line, whose class is `Commands`."""
    app.command("test", epilog=TEST_EXAMPLES)(run_cases)
    app.command("test add", epilog=ADD_EXAMPLES)(add_case)


def run_cases(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="PATH", help="Folders with cases, or cases; default: tests/workflows."
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option("-k", metavar="NAME", help="Only cases with this in their name; repeatable."),
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option("-j", metavar="N", help="Cases at one time; default: one a processor."),
    ] = None,
    update: Annotated[
        bool,
        typer.Option(
            "--update",
            help="Write anew what is not as a case says; changed requests go to live models.",
        ),
    ] = False,
    report: Annotated[
        list[str] | None,
        typer.Option(
            metavar="junit|markdown=PATH",
            help="Write a report of the cases; may be repeated.",
        ),
    ] = None,
    as_json: AsJson = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Say nothing unless something is wrong.")
    ] = False,
    debug: Debug = False,
) -> int:
    """Run tests of workflows, without a key and without models.

    What went wrong and the summary go to standard output, a line for each case meanwhile to
    standard error.
    """
    from devall.cli.testing import CasesOptions, execute

    return execute(
        CasesOptions(
            paths=paths or (),
            names=names or (),
            at_once=at_once,
            is_update=update,
            reports=report or (),
            as_json=as_json,
            quiet=quiet,
            debug=debug,
        )
    )


def add_case(
    run: RunId,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="The case's name: a folder, or group/name.")
    ],
    logs_dir: LogsDir = None,
    folder: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Where cases are; default: tests/workflows."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Replace a case that has this name.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Make a test of a run: its recording, and its answer and node runs as expectations."""
    from devall.cli.testing_add import AddOptions, execute

    return execute(
        AddOptions(
            run_id=run,
            name=name,
            logs_dir=logs_dir,
            folder=folder,
            replaces=force,
            as_json=as_json,
            debug=debug,
        )
    )
