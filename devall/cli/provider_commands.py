"""The commands `devall providers` and `devall doctor`: their options and help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from devall.cli.parameters import (
    AsJson,
    Debug,
    EnvFile,
    FunctionsDir,
    LogsDir,
    Models,
    Providers,
    Variables,
    VarsFile,
)

PROVIDERS_EXAMPLES = """Examples:

\b
  devall providers
  devall providers --json | jq -r '.providers[].name'
"""
DOCTOR_EXAMPLES = """Examples:

\b
  devall doctor
  devall doctor poem.yaml
  devall doctor poem.yaml --connect
  devall doctor poem.yaml --provider anthropic --model claude-sonnet-4-5 --json

\b
Keys are never shown, only where they come from. With --connect each endpoint
is asked for its list of models, or where it has none, the model for one token.
Exit codes: 0 all is there, 2 wrong usage, 3 the file is wrong, 4 something is
missing that is needed.
"""


def add_provider_commands(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    app.command("providers", epilog=PROVIDERS_EXAMPLES)(providers)
    app.command("doctor", epilog=DOCTOR_EXAMPLES)(doctor)


def providers(env_file: EnvFile = None, as_json: AsJson = False, debug: Debug = False) -> int:
    """Show the providers of models, and the variables that they read."""
    from devall.cli.providers import execute

    return execute(env_file, as_json=as_json, debug=debug)


def doctor(
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="A workflow to look at as well.")
    ] = None,
    connect: Annotated[
        bool, typer.Option("--connect", help="Try each endpoint with the cheapest call.")
    ] = False,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    model: Models = None,
    provider: Providers = None,
    logs_dir: LogsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Say which endpoint and model a workflow would really use, and what is missing here."""
    from devall.cli.doctor import DoctorOptions, execute

    return execute(
        DoctorOptions(
            file=file,
            connect=connect,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            models=model or (),
            providers=provider or (),
            logs_dir=logs_dir,
            as_json=as_json,
            debug=debug,
        )
    )
