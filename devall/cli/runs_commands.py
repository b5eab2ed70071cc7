"""The commands `devall runs`: their options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from devall.cli.parameters import AsJson, Debug, LogsDir, RunId

RUNS_EXAMPLES = """Examples:

\b
  devall runs list
  devall runs show last
  devall runs tail last --follow
  devall runs prune --older-than 30d --dry-run

\b
RUN is a run's id, a beginning of it that fits one only, or `last`.
"""
LIST_EXAMPLES = """Examples:

\b
  devall runs list
  devall runs list --status waiting
  devall runs list --limit 5 --json | jq -r '.runs[].run_id'
"""
SHOW_EXAMPLES = """Examples:

\b
  devall runs show last
  devall runs show 20261130-1403 --json

\b
What happened in it, node by node: devall show RUN.
"""
TAIL_EXAMPLES = """Examples:

\b
  devall runs tail last
  devall runs tail last --follow
  devall runs tail last --json | jq .event.event

\b
With --json each event is an object on a line of its own. Ctrl-C ends the
command and not the run.
"""
CANCEL_EXAMPLES = """Examples:

\b
  devall runs cancel last
  devall runs cancel 20261130-140312-5f3a9c

\b
Its process gets SIGTERM and ends the run in order; what was done is kept, and
`devall resume` goes on with it. Exit codes: 0 the run is not alive (any
more), 1 it does not end, 2 there is no such run, or its process cannot be
told.
"""
PRUNE_EXAMPLES = """Examples:

\b
  devall runs prune --dry-run
  devall runs prune --older-than 12h --status completed --yes
  devall runs prune --keep 100 --yes

\b
Runs that are alive are never deleted. Without --older-than and --keep, those
go that ended more than 30 days ago. Ages: 90m, 12h, 30d, 2w.
"""

ANSWER_EXAMPLES = """Examples:

\b
  devall runs answer last reviewer=accept
  devall runs answer last /ask@1/unit:1=yes /ask@1/unit:2=no
  $(devall runs answer last reviewer=accept)

\b
The answers are kept; printed is the command that goes on with the run. A
question goes by its node, or by its id where a node has asked several.
"""

runs_app = typer.Typer(
    help="The runs of a folder: list them, look at one, end one, delete old ones.",
    epilog=RUNS_EXAMPLES,
    rich_markup_mode=None,
)

Status = Annotated[
    str | None,
    typer.Option(
        metavar="S",
        help="Only those that are: completed, failed, limit_reached, waiting, cancelled, running,"
        " interrupted.",
    ),
]


@runs_app.command("list", epilog=LIST_EXAMPLES)
def runs_list(
    status: Status = None,
    limit: Annotated[int | None, typer.Option(metavar="N", help="Only the newest so many.")] = None,
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show the runs, the newest first."""
    from devall.cli.runs import ListOptions, show_all

    return show_all(
        ListOptions(status=status, limit=limit, logs_dir=logs_dir, as_json=as_json, debug=debug)
    )


@runs_app.command("show", epilog=SHOW_EXAMPLES)
def runs_show(
    run: RunId,
    logs_dir: LogsDir = None,
    full: Annotated[
        bool, typer.Option("--full", help="Show long texts whole on a terminal too.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Show all about a run: settings, result, open questions, how to go on."""
    from devall.cli.runs import RunOptions, show_one

    return show_one(RunOptions(run=run, logs_dir=logs_dir, full=full, as_json=as_json, debug=debug))


@runs_app.command("tail", epilog=TAIL_EXAMPLES)
def runs_tail(
    run: RunId,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run ends.")
    ] = False,
    logs_dir: LogsDir = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each event as a JSON object.")
    ] = False,
    debug: Debug = False,
) -> int:
    """Show the events of a run as lines."""
    from devall.cli.runs_tail import TailOptions, execute

    return execute(
        TailOptions(run=run, follow=follow, logs_dir=logs_dir, as_json=as_json, debug=debug)
    )


@runs_app.command("answer", epilog=ANSWER_EXAMPLES)
def runs_answer(
    run: RunId,
    answers: Annotated[
        list[str], typer.Argument(metavar="NODE=TEXT", help="An answer to an open question.")
    ],
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Answer the open questions of a run that waits."""
    from devall.cli.resume import AnswerOptions, answer

    return answer(
        AnswerOptions(run_id=run, answers=answers, logs_dir=logs_dir, as_json=as_json, debug=debug)
    )


@runs_app.command("cancel", epilog=CANCEL_EXAMPLES)
def runs_cancel(
    run: RunId,
    others_too: Annotated[
        bool,
        typer.Option("--others-too", help="Also where its process carries out other runs."),
    ] = False,
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """End a run that another process of this machine carries out."""
    from devall.cli.runs_cancel import CancelOptions, execute

    return execute(
        CancelOptions(
            run=run, others_too=others_too, logs_dir=logs_dir, as_json=as_json, debug=debug
        )
    )


@runs_app.command("prune", epilog=PRUNE_EXAMPLES)
def runs_prune(
    older_than: Annotated[
        str | None, typer.Option(metavar="AGE", help="Those that ended so long ago: 30d, 12h.")
    ] = None,
    keep: Annotated[
        int | None, typer.Option(metavar="N", help="The newest N stay in any case.")
    ] = None,
    status: Status = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be deleted.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Delete old runs: their steps, logs and files."""
    from devall.cli.runs_prune import PruneOptions, execute

    return execute(
        PruneOptions(
            older_than=older_than,
            keep=keep,
            status=status,
            dry_run=dry_run,
            yes=yes,
            logs_dir=logs_dir,
            as_json=as_json,
            debug=debug,
        )
    )
