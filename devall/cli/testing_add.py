"""`devall test add`: a case made of a run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path

from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import logs_folder
from devall.cli.streams import write_answer, write_note


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOptions:
    """The options of `devall test add`, as they were written."""

    run_id: str
    name: str
    logs_dir: Path | None = None
    folder: Path | None = None
    replaces: bool = False
    as_json: bool = False
    debug: bool = False


def execute(options: AddOptions) -> int:
    """Make the case and print its file; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _make(options))


def _make(options: AddOptions) -> int:
    from devall.cli.testing import failures_to_json
    from devall.testing.cases.making import make_case
    from devall.testing.cases.reading import FOLDER

    made = asyncio.run(
        make_case(
            options.run_id,
            options.name,
            logs_dir=logs_folder(options.logs_dir),
            folder=options.folder or FOLDER,
            replaces=options.replaces,
        )
    )
    for failure in made.result.failures:
        write_note(f"warning: it does not pass with the workflow as it is now: {failure}")
    if options.as_json:
        write_answer(
            to_line(
                {
                    "name": options.name,
                    "file": str(made.file),
                    "passed": made.result.is_passed,
                    "failures": failures_to_json(made.result.failures),
                }
            )
        )
    else:
        write_answer(f"{made.file}\n")
    return 0
