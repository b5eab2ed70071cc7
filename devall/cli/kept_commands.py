"""Commands that go on with runs that were kept: their options and help."""

from __future__ import annotations

from typing import Annotated

import typer

from devall.cli.parameters import (
    AnswerAsJson,
    Answers,
    AnswersFile,
    Debug,
    EnvFile,
    LogsDir,
    MaxSeconds,
    MaxUsd,
    Quiet,
    RunId,
    RunReports,
    Variables,
    VarsFile,
    Verbose,
)

RESUME_EXAMPLES = """Examples:

\b
  devall resume last
  devall resume 20261130-140312-5f3a9c --answer reviewer=accept
  devall resume last --from writer
  devall resume last --in-doubt retry

\b
Calls that were finished are not made again. Where the file was edited since,
the nodes that were changed run again, and what comes after them.
Exit codes are those of `devall run`.
"""


REPLAY_EXAMPLES = """Examples:

\b
  devall replay last
  devall replay last --live critic
  devall replay last --set nodes.poet.config.role="Write a limerick." --live poet+

\b
Nothing is called: no key, no network. `--live NODE` makes the calls of that
node anew, `NODE+` those of what follows it too; such a replay is kept as a run
of its own, and how the two differ is shown. A request that is not in the
recording ends the replay (exit 1) and shows how it differs from the nearest.
"""


def add_kept_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command(epilog=RESUME_EXAMPLES)(resume)
    app.command(epilog=REPLAY_EXAMPLES)(replay)


def resume(
    run: RunId,
    answer: Answers = None,
    answers: AnswersFile = None,
    again: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="NODE", help="Run this node again, and what follows; repeatable."
        ),
    ] = None,
    in_doubt: Annotated[
        str | None,
        typer.Option(
            metavar="retry|fail|ask",
            help="What is done with tool calls that were under way and may have been done.",
        ),
    ] = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    logs_dir: LogsDir = None,
    report: RunReports = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    as_json: AnswerAsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> int:
    """Go on with a run that was interrupted, waits for a human, failed or reached a limit."""
    from devall.cli.resume import ResumeOptions, execute

    return execute(
        ResumeOptions(
            run_id=run,
            answers=answer or (),
            answers_file=answers,
            again=again or (),
            in_doubt=in_doubt,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            logs_dir=logs_dir,
            reports=report or (),
            max_usd=max_usd,
            max_seconds=max_seconds,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
            debug=debug,
        )
    )


def replay(
    run: RunId,
    live: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NODE[+]",
            help="Make this node's calls anew (+: and those of what follows); repeatable.",
        ),
    ] = None,
    change: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="PATH=VALUE",
            help="Another value in the file, such as nodes.writer.config.role=...; repeatable.",
        ),
    ] = None,
    answer: Answers = None,
    answers: AnswersFile = None,
    logs_dir: LogsDir = None,
    report: RunReports = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    as_json: AnswerAsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> int:
    """Run a kept run again from its journal, without a key and without the network."""
    from devall.cli.replay import ReplayOptions, execute

    return execute(
        ReplayOptions(
            run_id=run,
            live=live or (),
            changes=change or (),
            answers=answer or (),
            answers_file=answers,
            logs_dir=logs_dir,
            reports=report or (),
            max_usd=max_usd,
            max_seconds=max_seconds,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
            debug=debug,
        )
    )
