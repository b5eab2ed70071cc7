"""`devall validate`: all findings about workflow files, as text, JSON or annotations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, assert_never

from devall.cli.failures import (
    Reporter,
    diagnostics_text,
    error_text,
    summary_of,
    to_line,
    to_object,
)
from devall.cli.run import gather_variables
from devall.cli.streams import write_answer, write_note
from devall.core.diagnostics import Diagnostic
from devall.core.errors import UsageError
from devall.core.messages import JsonValue
from devall.core.outcome import ErrorReport
from devall.telemetry.redaction import without_named

Format = Literal["text", "json", "github"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """The options of `devall validate`, as they were written."""

    files: Sequence[Path]
    format: Format = "text"
    strict: bool = False
    variables: Sequence[str] = ()
    vars_file: Path | None = None
    env_file: Path | None = None
    functions_dir: Path | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in one file."""

    file: Path
    diagnostics: tuple[Diagnostic, ...] = ()
    error: ErrorReport | None = None
    """Why the file could not be looked at."""
    strict: bool = False

    @property
    def exit_code(self) -> int:
        """0, 2 if it could not be looked at, 3 if it is wrong."""
        if self.error is not None:
            return 2
        bad = ("error", "warning") if self.strict else ("error",)
        return 3 if any(d.severity in bad for d in self.diagnostics) else 0


def execute(options: ValidateOptions) -> int:
    """Look at each file and print what was found; the exit code is the gravest of all."""
    return Reporter(debug=options.debug).guard(lambda: _execute(options))


def _execute(options: ValidateOptions) -> int:
    variables = gather_variables(options.vars_file, options.variables)
    findings = [_inspect(file, options, variables) for file in options.files]
    match options.format:
        case "text":
            _print_text(findings)
        case "json":
            write_answer(to_line(_as_object(findings)))
        case "github":
            write_answer("".join(f"{line}\n" for f in findings for line in to_annotations(f)))
        case _:
            assert_never(options.format)
    return max((finding.exit_code for finding in findings), default=0)


def _inspect(file: Path, options: ValidateOptions, variables: dict[str, JsonValue]) -> Finding:
    from devall.app import inspect_workflow

    try:
        _, diagnostics = inspect_workflow(
            file,
            variables=variables,
            env_file=options.env_file,
            functions_dir=options.functions_dir,
        )
    except UsageError as error:
        return Finding(file, error=ErrorReport(error.code, str(error), hint=error.hint))
    return Finding(file, tuple(diagnostics), strict=options.strict)


def _print_text(findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.error is not None:
            write_note(error_text(finding.error))
        elif finding.diagnostics:
            write_answer(without_named(diagnostics_text(finding.diagnostics)) + "\n\n")
        else:
            write_answer(f"{finding.file}: ok\n")
    if len(findings) > 1:
        found = [diagnostic for finding in findings for diagnostic in finding.diagnostics]
        write_note(f"{len(findings)} files: {summary_of(found)}")


def _as_object(findings: Sequence[Finding]) -> dict[str, JsonValue]:
    return {
        "exit_code": max((finding.exit_code for finding in findings), default=0),
        "files": [
            {
                "file": str(finding.file),
                "valid": finding.exit_code == 0,
                "diagnostics": [to_object(d) for d in finding.diagnostics],
                "error": finding.error
                and {
                    "code": finding.error.code,
                    "message": finding.error.message,
                    "hint": finding.error.hint or None,
                },
            }
            for finding in findings
        ],
    }


def to_annotations(finding: Finding) -> list[str]:
    """The findings as workflow commands of GitHub Actions, one a line."""
    if finding.error is not None:
        file = _property(str(finding.file))
        return [f"::error file={file},title=devall::{_data(finding.error.message)}"]
    lines: list[str] = []
    for diagnostic in finding.diagnostics:
        place = diagnostic.position
        settings = f"file={_property(place.file)}"
        if place.line:
            settings += f",line={place.line},col={place.column}"
        settings += f",title={_property(f'devall {diagnostic.code}')}"
        hint = f"\n{diagnostic.hint}" if diagnostic.hint else ""
        text = _data(without_named(diagnostic.message + hint))
        lines.append(f"::{diagnostic.severity} {settings}::{text}")
    return lines


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
