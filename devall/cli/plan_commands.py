"""The command `devall plan`: its options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devall.cli.parameters import (
    AsJson,
    Debug,
    EnvFile,
    ExTools,
    File,
    FunctionsDir,
    LogsDir,
    Models,
    Providers,
    Variables,
    VarsFile,
)

PLAN_EXAMPLES = """Examples:

\b
  devall plan poem.yaml --task "1 100"
  devall plan poem.yaml --task "1 100" --max-usd 0.50
  devall plan demo_dynamic.yaml --task "a, b" --units 20
  devall plan poem.yaml --task x --json | jq '.graphs[0].cost.usd.at_most'

\b
Nothing runs, no model or server is asked, no key is needed. Where there is no
bound, the plan says so, and which key would give one.

\b
Exit codes: 0 the plan was made, 2 wrong usage, 3 the file is wrong,
4 a skill or the schema of an answer is missing,
5 the worst case costs more than --max-usd or has no known cost,
6 it goes over --max-tokens or --max-seconds, or has no bound there.
"""


def add_plan_command(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command(epilog=PLAN_EXAMPLES)(plan)


def plan(
    file: File,
    task: Annotated[
        str | None, typer.Option(metavar="TEXT", help="The task, for its length.")
    ] = None,
    task_file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="File with the task.")
    ] = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    model: Models = None,
    provider: Providers = None,
    functions_dir: FunctionsDir = None,
    ex_tools: ExTools = None,
    logs_dir: LogsDir = None,
    units: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            help="Units of each dynamic edge, where their number is not known beforehand.",
        ),
    ] = None,
    max_usd: Annotated[
        float | None,
        typer.Option(metavar="X", help="Fail (5) if the worst case may cost more dollars."),
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Fail (6) if it may use more tokens.")
    ] = None,
    max_seconds: Annotated[
        float | None, typer.Option(metavar="N", help="Fail (6) if it may take longer.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Say what a run will do and at most cost; nothing runs.

    The order, loops and their bounds, tools and prompts of each agent, and the worst case of calls,
    tokens, money and time.
    """
    from devall.cli.plan import PlanOptions, execute

    return execute(
        PlanOptions(
            file=file,
            task=task,
            task_file=task_file,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            models=model or (),
            providers=provider or (),
            functions_dir=functions_dir,
            ex_tools=ex_tools or (),
            logs_dir=logs_dir,
            units=units,
            max_usd=max_usd,
            max_tokens=max_tokens,
            max_seconds=max_seconds,
            as_json=as_json,
            debug=debug,
        )
    )
