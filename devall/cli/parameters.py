"""Arguments and options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Workflow files.")]
File = Annotated[Path, typer.Argument(metavar="FILE", help="The workflow file.")]
Variables = Annotated[
    list[str] | None,
    typer.Option("--var", metavar="K=V", help="A variable of the file; may be repeated."),
]
VarsFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="YAML or JSON file with variables; --var stands over it."),
]
EnvFile = Annotated[
    Path | None,
    typer.Option(metavar="PATH", help="Read instead of the .env beside the workflow."),
]
FunctionsDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="Folder of your own functions, if it is not `functions` upwards of the file.",
    ),
]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks of errors.")]
ExTools = Annotated[
    list[str] | None,
    typer.Option(
        "--ex-tools",
        metavar="A,B",
        help="Tools beside those of the file: package.module:attribute, or names of functions;"
        " those of EX_TOOLS (a YAML list) are added.",
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", metavar="[NODE=]NAME", help="Model for all agents, or for one; repeatable."
    ),
]
Providers = Annotated[
    list[str] | None,
    typer.Option(
        "--provider", metavar="[NODE=]NAME", help="Provider for all agents, or one; repeatable."
    ),
]
Answers = Annotated[
    list[str] | None,
    typer.Option(
        "--answer",
        metavar="NODE=TEXT",
        help="What a human node is answered; may be repeated.",
    ),
]
AnswersFile = Annotated[
    Path | None,
    typer.Option(
        "--answers",
        metavar="PATH",
        help="YAML or JSON file: node to a text or list of texts.",
    ),
]
RunReports = Annotated[
    list[str] | None,
    typer.Option(
        "--report",
        metavar="junit|markdown=PATH",
        help="Write a report of the run, however it ends; may be repeated.",
    ),
]
MaxUsd = Annotated[
    float | None,
    typer.Option(metavar="X", help="Dollars that the run may cost; never loosens the file's."),
]
MaxSeconds = Annotated[
    float | None,
    typer.Option(metavar="N", help="Seconds that the run may take; never loosens the file's."),
]
AnswerAsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON object instead of the answer.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show only errors.")]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show every event, a line for each.")
]
RunId = Annotated[
    str,
    typer.Argument(
        metavar="RUN", help="The run: its id, a beginning of it, or `last` for the newest."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
LogsDir = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR", help="Where folders of runs are made; default: DEVALL_LOGS_DIR or logs."
    ),
]
