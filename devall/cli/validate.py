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
    to_line,
)
from devall.cli.inputs import gather_variables, load
from devall.cli.streams import write_answer, write_note
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, UsageError
from devall.core.messages import JsonValue
from devall.core.outcome import ErrorReport

Format = Literal["text", "json", "github"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """The options of `devall validate`, as they were written."""

    files: Sequence[Path]
    format: Format = "text"
    strict: bool = False
    connect: bool = False
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
    is_usable: bool = True
    """False: a source of tools that is needed cannot be used."""

    @property
    def exit_code(self) -> int:
        """0, 2 if it could not be looked at, 3 if it is wrong, 4 if a server is missing."""
        if self.error is not None:
            return 2
        if not self.is_usable:
            return 4
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
            lines = [_annotations(finding) for finding in findings]
            write_answer("".join(f"{line}\n" for line in lines if line))
        case _:
            assert_never(options.format)
    return max((finding.exit_code for finding in findings), default=0)


def _inspect(file: Path, options: ValidateOptions, variables: dict[str, JsonValue]) -> Finding:
    try:
        loaded = load(file, variables, options.env_file, options.functions_dir)
    except ConfigError as error:
        return Finding(file, error.diagnostics, strict=options.strict)
    except UsageError as error:
        return Finding(file, error=ErrorReport(error.code, str(error), hint=error.hint))
    if not options.connect:
        return Finding(file, loaded.warnings, strict=options.strict)
    from devall.cli.connect import connect

    found, is_usable = connect(loaded, options.functions_dir)
    return Finding(file, (*loaded.warnings, *found), strict=options.strict, is_usable=is_usable)


def _print_text(findings: Sequence[Finding]) -> None:
    for finding in findings:
        if finding.error is not None:
            write_note(error_text(finding.error))
        elif finding.diagnostics:
            write_answer(diagnostics_text(finding.diagnostics) + "\n")
        else:
            write_answer(f"{finding.file}: ok\n")
    if len(findings) > 1:
        wrong = sum(finding.exit_code != 0 for finding in findings)
        write_note(f"{len(findings)} files, {wrong} of them wrong")


def _as_object(findings: Sequence[Finding]) -> dict[str, JsonValue]:
    from devall.loading.reports import as_json

    return {
        "exit_code": max((finding.exit_code for finding in findings), default=0),
        "files": [
            {
                "file": str(finding.file),
                "valid": finding.exit_code == 0,
                "diagnostics": [as_json(each) for each in finding.diagnostics],
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


def _annotations(finding: Finding) -> str:
    """The findings as commands of GitHub Actions, one a line."""
    from devall.loading.reports import render_github

    if finding.error is None:
        return render_github(finding.diagnostics)
    error = finding.error
    found = Diagnostic(error.code, error.message, Position(str(finding.file)), error.hint)
    return render_github([found])
