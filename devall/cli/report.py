"""`devall report`: one run as one HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, to_line
from devall.cli.pages import past_of, redactor_of_today, size, workflow_of
from devall.cli.streams import write_answer, write_note
from devall.core.errors import DevallError, UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.history.past import Past
    from devall.history.story import Story
    from devall.loading.loader import LoadedWorkflow
    from devall.page.document import Document
    from devall.telemetry.redaction import Redactor

FILE_NAME = "report.html"
"""The page's file, in the run's folder, unless `-o` names another one."""
PRIVATE = 0o600
"""Who may read it there: the user alone, as with all that is kept of a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions:
    """The options of `devall report`, as they were written."""

    run: str
    output: Path | None = None
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


def execute(options: ReportOptions) -> int:
    """Write the page; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: ReportOptions) -> int:
    is_printed = options.output is not None and str(options.output) == "-"
    if is_printed and options.as_json:
        raise UsageError(
            "--output -: standard output is for the object of --json",
            hint="name a file, or leave --json out",
        )
    past = past_of(options.logs_dir, options.run)
    document = _document(past)
    if is_printed:
        write_answer(document.html)
        return 0
    file = past.folder / FILE_NAME if options.output is None else options.output
    _write(file, document.html, None if options.output is not None else PRIVATE)
    length = len(document.html.encode())
    if options.as_json:
        told: dict[str, JsonValue] = {
            "run_id": past.id,
            "state": past.state,
            "file": str(file),
            "bytes": length,
            "events": document.events,
            "nodes": document.nodes,
            "picture": document.has_picture,
            "cut_texts": document.cut,
        }
        write_answer(to_line(redactor_of_today().value(told)))
        return 0
    write_note(f"report of run {past.id} ({past.state}): {size(length)} in {file}")
    if document.note:
        write_note(f"note: {document.note}")
    if document.cut:
        write_note(f"note: texts of more than {document.longest:,} characters are cut")
    write_answer(f"{file}\n")
    return 0


def _document(past: Past) -> Document:
    from devall import __version__
    from devall.cli.runs import continue_command
    from devall.history.story import story_of
    from devall.page.document import document_of

    events = past.events()
    story = story_of(events)
    workflow, note, redactor = _workflow(past, story)
    return document_of(
        past,
        events,
        story,
        version=__version__,
        workflow=workflow,
        notes=[note] if note else [],
        go_on=continue_command(past) or "",
        redact=redactor.text,
    )


def _workflow(past: Past, story: Story) -> tuple[LoadedWorkflow | None, str, Redactor]:
    """What ran, what is doubtful about it, and what takes its secrets out."""
    from devall.telemetry.redaction import environment_secrets

    try:
        loaded, note = workflow_of(past, story)
    except DevallError:
        return None, "", redactor_of_today()
    secrets = loaded.secrets | environment_secrets(loaded.environment.values)
    return loaded, note if past.is_kept else "", redactor_of_today(secrets)


def _write(file: Path, html: str, mode: int | None) -> None:
    from devall.reports.files import write_report

    try:
        write_report(file, html, mode)
    except (OSError, ValueError) as error:  # ValueError: no path can be written so
        why = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{file} cannot be written: {why}", hint="name another file with -o, or - to print it"
        ) from error
