"""`devall validate`: all findings about workflow files, as text, JSON, annotations or SARIF."""

from __future__ import annotations

import os
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
from devall.cli.reports import UNWRITTEN, Target, annotate, parse_targets
from devall.cli.streams import write_answer, write_note
from devall.core.diagnostics import Diagnostic, Position
from devall.core.errors import ConfigError, UsageError
from devall.core.messages import JsonValue
from devall.core.outcome import ErrorReport

Format = Literal["text", "json", "github"]
KINDS = ("sarif",)
"""The kinds of reports of `devall validate`."""


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
    reports: Sequence[str] = ()
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
    def told(self) -> tuple[Diagnostic, ...]:
        """What was found, or why nothing could be, as findings about the file."""
        if self.error is None:
            return self.diagnostics
        error = self.error
        return (Diagnostic(error.code, error.message, Position(str(self.file)), error.hint),)

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
    reporter = Reporter(options.format == "json", options.debug)
    return reporter.guard(lambda: _execute(options))


def _execute(options: ValidateOptions) -> int:
    targets = parse_targets(options.reports, KINDS)
    variables = gather_variables(options.vars_file, options.variables)
    findings = [_inspect(file, options, variables) for file in options.files]
    code = max((finding.exit_code for finding in findings), default=0)
    written = [_write_report(target, findings, code) for target in targets]
    if not all(written):
        code = code or UNWRITTEN
    told = [each for finding in findings for each in finding.told]
    match options.format:
        case "text":
            _print_text(findings)
        case "json":
            write_answer(to_line(_as_object(findings, code)))
        case "github":
            from devall.loading.reports import render_github

            write_answer(f"{render_github(told)}\n" if told else "")
        case _:
            assert_never(options.format)
    if options.format != "github":
        annotate(told, os.environ)
    return code


def _write_report(target: Target, findings: Sequence[Finding], code: int) -> bool:
    """Write a report; False, and said, if it cannot be written."""
    from devall import __version__
    from devall.reports.files import write_report
    from devall.reports.sarif import sarif

    root = Path(os.environ.get("GITHUB_WORKSPACE") or ".")
    told = [each for finding in findings for each in finding.told]
    found = sarif(told, version=__version__, root=root, exit_code=code)
    try:
        write_report(target.path, to_line(found))
    except OSError as error:
        why = error.strerror or error
        write_note(f"error [report]: report {target.kind}={target.path} not written: {why}")
        return False
    return True


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


def _as_object(findings: Sequence[Finding], code: int) -> dict[str, JsonValue]:
    from devall.loading.reports import as_json

    return {
        "exit_code": code,
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
