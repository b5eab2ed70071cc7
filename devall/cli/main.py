"""The command line: commands, their options and help; what they do stands in one module each."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NoReturn, cast

import typer

from devall.cli.failures import Reporter, terminate_as_interrupt
from devall.cli.history_commands import add_history_commands
from devall.cli.kept_commands import add_kept_commands
from devall.cli.leaving import end_children
from devall.cli.options import one_of
from devall.cli.parameters import (
    AnswerAsJson,
    Answers,
    AnswersFile,
    AsJson,
    Debug,
    EnvFile,
    ExTools,
    File,
    Files,
    FunctionsDir,
    LogsDir,
    MaxSeconds,
    MaxUsd,
    Models,
    Providers,
    Quiet,
    RunReports,
    Variables,
    VarsFile,
    Verbose,
)
from devall.cli.plan_commands import add_plan_command
from devall.cli.provider_commands import add_provider_commands
from devall.cli.rewriting_commands import add_rewriting_commands
from devall.cli.runs_commands import runs_app
from devall.cli.testing_commands import Commands, add_test_commands
from devall.cli.tool_commands import mcp_app, tools_app
from devall.core.errors import DevallError, UsageError

RUN_EXAMPLES = """Examples:

\b
  devall run poem.yaml --task "1 100"
  devall run poem.yaml --task-file task.txt --var TOPIC=autumn --json
  echo "write a haiku" | devall run poem.yaml -
  devall run poem.yaml --task "1 100" --provider local --model smollm2
  devall run review.yaml --task "the draft" --answer reviewer=accept

\b
Exit codes:
  0 completed          1 failed              2 wrong usage
  3 invalid file       4 missing key, server or extra, or a
                         report that could not be written
  5 budget reached     6 timeout or limit    75 waits for a human
  130 interrupted      143 terminated

\b
Values of --var: a JSON number, true, false and null are what they say, all
else is text; '"5"' is the text 5. Lists and objects: --vars-file.
Answers: one text for a node is given every time it asks; several --answer
for one node, or a list in the --answers file, are given in order.
"""
VALIDATE_EXAMPLES = """Examples:

\b
  devall validate poem.yaml
  devall validate yaml_instance/*.yaml --strict
  devall validate poem.yaml --report sarif=out/devall.sarif
  devall validate poem.yaml --connect

\b
Exit codes: 0 valid, 2 a file is missing, 3 a file is wrong,
4 a server that is needed cannot be used.
"""
GRAPH_EXAMPLES = """Examples:

\b
  devall graph poem.yaml
  devall graph poem.yaml --format ascii
  devall graph poem.yaml -o poem.svg
  devall graph --run last -o run.png --theme dark

\b
png needs `pip install devall[pictures]`; the others need nothing.
"""
SCHEMA_EXAMPLES = """Examples:

\b
  devall schema > workflow.schema.json
  devall schema --output run
  devall schema --output "tools list"
"""
MODELS_EXAMPLES = """Examples:

\b
  devall models list
  devall models pull smollm2
"""
APP_EXAMPLES = """Examples:

\b
  devall run poem.yaml --task "1 100"
  devall validate poem.yaml
  devall COMMAND --help
"""

app = typer.Typer(
    name="devall",
    cls=Commands,
    help="Run workflows of language model agents: one YAML file, from graph to answer.",
    epilog=APP_EXAMPLES,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
models_app = typer.Typer(
    help="Weights of models that run in this process, without a key.",
    epilog=MODELS_EXAMPLES,
    rich_markup_mode=None,
)


def _print_version(value: bool) -> None:
    if value:
        from devall import __version__

        typer.echo(f"devall {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None: ...


@app.command(epilog=RUN_EXAMPLES)
def run(
    file: File,
    dash: Annotated[
        str | None, typer.Argument(metavar="-", help="Read the task from standard input.")
    ] = None,
    task: Annotated[str | None, typer.Option(metavar="TEXT", help="The task.")] = None,
    task_file: Annotated[
        Path | None, typer.Option(metavar="PATH", help="File with the task.")
    ] = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="PATH",
            help="File that goes with the task: image, audio, PDF, text or any other;"
            " may be repeated.",
        ),
    ] = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    answer: Answers = None,
    answers: AnswersFile = None,
    model: Models = None,
    provider: Providers = None,
    functions_dir: FunctionsDir = None,
    ex_tools: ExTools = None,
    run_id: Annotated[
        str | None, typer.Option(metavar="ID", help="Name of the run; default: made of the time.")
    ] = None,
    logs_dir: LogsDir = None,
    report: RunReports = None,
    max_usd: MaxUsd = None,
    max_seconds: MaxSeconds = None,
    journal: Annotated[
        str | None,
        typer.Option(
            metavar="sqlite|memory",
            help="Where steps are kept; `memory`: nowhere, the run cannot be gone on with.",
        ),
    ] = None,
    durability: Annotated[
        str | None,
        typer.Option(
            metavar="normal|full", help="`full`: what is kept outlives a power cut as well."
        ),
    ] = None,
    as_json: AnswerAsJson = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
    debug: Debug = False,
) -> int:
    """Run a workflow and print its answer.

    The answer alone goes to standard output; what happens meanwhile to standard error.
    """
    from devall.cli.run import RunOptions, execute

    return execute(
        RunOptions(
            file=file,
            dash=dash,
            task=task,
            task_file=task_file,
            attach=attach or (),
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            answers=answer or (),
            answers_file=answers,
            models=model or (),
            providers=provider or (),
            functions_dir=functions_dir,
            ex_tools=ex_tools or (),
            run_id=run_id,
            logs_dir=logs_dir,
            reports=report or (),
            max_usd=max_usd,
            max_seconds=max_seconds,
            journal=journal,
            durability=durability,
            as_json=as_json,
            quiet=quiet,
            verbose=verbose,
            debug=debug,
        )
    )


# After `run`: the help lists commands in the order in which they are added.
add_kept_commands(app)
add_history_commands(app)
add_test_commands(app)


add_plan_command(app)


@app.command(epilog=VALIDATE_EXAMPLES)
def validate(
    files: Files,
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option(metavar="text|json|github", help="How findings are printed.")
    ] = "text",
    strict: Annotated[bool, typer.Option("--strict", help="Warnings are errors too.")] = False,
    connect: Annotated[
        bool, typer.Option("--connect", help="Start or reach every server of tools as well.")
    ] = False,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    report: Annotated[
        list[str] | None,
        typer.Option(metavar="sarif=PATH", help="Write the findings to a file as well."),
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Say everything that is wrong with workflow files.

    Nothing runs, and without --connect no server is asked.
    """
    from devall.cli import validate as command

    one_of(format, ("text", "json", "github"), "--format")
    return command.execute(
        command.ValidateOptions(
            files=files,
            format="json" if as_json else cast(command.Format, format),
            strict=strict,
            connect=connect,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            reports=report or (),
            debug=debug,
        )
    )


@app.command(epilog=GRAPH_EXAMPLES)
def graph(
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="The workflow file; with --run it may be left out."),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            metavar="mermaid|dot|svg|png|ascii",
            help="The kind of picture; default: that of the suffix of --output, else mermaid.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="PATH", help="Write it to this file.")
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="Show what this run did: its id, a beginning of it, or `last`."
        ),
    ] = None,
    theme: Annotated[
        str | None,
        typer.Option(
            metavar="light|dark|auto",
            help="Colours of svg (default: auto, as its viewer has it) and png (light).",
        ),
    ] = None,
    scale: Annotated[
        float, typer.Option(metavar="N", help="How large png is drawn, from 0.25 to 8.")
    ] = 2,
    logs_dir: LogsDir = None,
    var: Variables = None,
    vars_file: VarsFile = None,
    env_file: EnvFile = None,
    functions_dir: FunctionsDir = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Draw a workflow's graph, and what a run of it did."""
    from devall.cli import graph as command

    return command.execute(
        command.GraphOptions(
            file=file,
            format=format,
            output=output,
            run=run,
            theme=theme,
            scale=scale,
            logs_dir=logs_dir,
            variables=var or (),
            vars_file=vars_file,
            env_file=env_file,
            functions_dir=functions_dir,
            as_json=as_json,
            debug=debug,
        )
    )


@app.command(epilog=SCHEMA_EXAMPLES)
def schema(
    output: Annotated[
        str | None,
        typer.Option(metavar="COMMAND", help="Of what this command prints with --json, instead."),
    ] = None,
    debug: Debug = False,
) -> int:
    """Print the JSON Schema of the file format, for editors."""
    from devall.cli import schema as command

    return command.execute(output, debug=debug)


add_rewriting_commands(app)
add_provider_commands(app)
app.add_typer(runs_app, name="runs")
app.add_typer(tools_app, name="tools")
app.add_typer(mcp_app, name="mcp")
app.add_typer(models_app, name="models")


@models_app.command("pull")
def models_pull(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `devall models list`.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> int:
    """Fetch a model's weights into the user's cache folder."""
    from devall.cli import models as command

    return command.pull(name, as_json=as_json, debug=debug)


@models_app.command("list")
def models_list(as_json: AsJson = False, debug: Debug = False) -> int:
    """Show which models can be pulled, and which are here."""
    from devall.cli import models as command

    return command.show(as_json=as_json, debug=debug)


def call(arguments: Sequence[str]) -> int:
    """The exit code of the command line with these arguments; prints what it has to say."""
    reporter = Reporter("--json" in arguments, "--debug" in arguments, _file_of(arguments))
    return reporter.guard(lambda: _call(list(arguments)))


def main() -> NoReturn:
    """Run the command line with the process's arguments and end the process."""
    terminate_as_interrupt()
    with contextlib.suppress(OSError):
        # As `python -m devall` has it: tools of one's own (`mine:Search`) may lie right here.
        if (here := str(Path.cwd())) not in sys.path:
            sys.path.append(here)
    leave(call(sys.argv[1:]))


def leave(code: int) -> NoReturn:
    """End the process; threads that never end do not keep it, and children do not outlive it."""
    end_children()
    threads = [t for t in threading.enumerate() if t is not threading.main_thread()]
    if any(not thread.daemon for thread in threads):
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(code)
    sys.exit(code)


def _call(arguments: list[str]) -> int:
    try:
        code = typer.main.get_command(app)(arguments, prog_name="devall", standalone_mode=False)
    except typer.TyperException as error:
        raise _as_usage_error(error, arguments) from error
    return code if isinstance(code, int) else 0


def _as_usage_error(error: typer.TyperException, arguments: Sequence[str]) -> DevallError:
    """Typer's complaint about the options as one of ours."""
    command = next((a for a in arguments if a in _commands()), "")
    text = error.format_message().strip().rstrip(".")
    hint = f"`devall {command + ' ' if command else ''}--help` shows what there is"
    return UsageError(text[:1].lower() + text[1:] or "no command was given", hint=hint)


def _commands() -> set[str]:
    """The names of commands, and of groups of them."""
    found = typer.main.get_command(app)
    return set(getattr(found, "commands", {}))


def _file_of(arguments: Sequence[str]) -> str:
    """The workflow, as far as it can be known before the options are understood."""
    return next((a for a in arguments if a.endswith((".yaml", ".yml"))), "")
