"""`devall test`: cases run side by side, and what of them is not as expected."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Reporter, diagnostics_text, to_line
from devall.cli.interruption import Interruption
from devall.cli.reports import KINDS, UNWRITTEN, Target, annotate, parse_targets
from devall.cli.streams import one_line, write_answer, write_note
from devall.cli.words import duration
from devall.core.errors import ConfigError, DevallError, UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.core.diagnostics import Diagnostic
    from devall.reports.junit import Suite
    from devall.testing.cases.reading import Case
    from devall.testing.cases.running import CaseResult, Failure

FAILED = 7
"""Exit code where a case did not pass."""
SUITE = "workflow tests"
_LONGEST = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class CasesOptions:
    """The options of `devall test`, as they were written."""

    paths: Sequence[Path] = ()
    names: Sequence[str] = ()
    at_once: int | None = None
    is_update: bool = False
    reports: Sequence[str] = ()
    as_json: bool = False
    quiet: bool = False
    debug: bool = False
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)


def execute(options: CasesOptions) -> int:
    """Run the cases and say how they went; the exit code."""
    reporter = Reporter(options.as_json, options.debug)
    return reporter.guard(lambda: _find_and_run(options))


def _find_and_run(options: CasesOptions) -> int:
    from devall.testing.cases.reading import read_cases

    targets = parse_targets(options.reports, KINDS)
    if options.at_once is not None and options.at_once < 1:
        raise UsageError(f"-j {options.at_once}: at least one case runs at a time")
    found = _chosen(options)
    try:
        cases = read_cases(found)
    except ConfigError as error:
        with suppress(OSError, DevallError):  # the files are what is to be mended
            _report(targets, _suite_of_broken(error.diagnostics), error.diagnostics, options)
        raise
    return _run(options, cases, targets)


def _chosen(options: CasesOptions) -> list[tuple[str, Path]]:
    """The cases that are to be run, by name and file.

    Raises:
        UsageError: there is none.
    """
    from devall.testing.cases.reading import FOLDER, find_cases

    paths = options.paths or [FOLDER]
    is_missing = not options.paths and not FOLDER.is_dir()
    found = [] if is_missing else find_cases(paths)
    if not found:
        raise UsageError(
            f"there are no cases in {', '.join(map(str, paths))}",
            hint="make one of a run: devall test add last NAME; or write NAME/case.yaml there"
            " (docs/testing.md)",
        )
    chosen = [(n, f) for n, f in found if not options.names or any(k in n for k in options.names)]
    if not chosen:
        known = [name for name, _ in found]
        near = [each for k in options.names for each in difflib.get_close_matches(k, known, 2)]
        raise UsageError(
            f"no case has {' or '.join(options.names)} in its name",
            hint=f"there is {', '.join(near or known[:8])}",
        )
    return chosen


def _run(options: CasesOptions, cases: Sequence[Case], targets: Sequence[Target]) -> int:
    from devall.testing.cases.running import run_case, run_cases
    from devall.testing.cases.updating import update_case

    began = time.perf_counter()
    width = max(len(case.name) for case in cases)

    def on_done(result: CaseResult) -> None:
        if not options.quiet:
            write_note(_line(result, width))

    results = Interruption(write_note).run(
        run_cases(
            cases,
            at_once=options.at_once or os.cpu_count() or 1,
            on_done=on_done,
            run=update_case if options.is_update else run_case,
        )
    )
    seconds = time.perf_counter() - began
    findings = [_finding(failure) for each in results for failure in each.failures]
    problems = _report(targets, _suite(results, seconds), findings, options)
    failed = sum(not each.is_passed for each in results)
    code = FAILED if failed else UNWRITTEN if problems else 0
    if options.as_json:
        write_answer(to_line(_object(results, code, seconds, problems)))
    elif failed or not options.quiet:
        write_answer(_words(results, seconds))
    return code


def _line(result: CaseResult, width: int) -> str:
    """A case on one line, as it ends."""
    text = f"{'ok  ' if result.is_passed else 'FAIL'} {result.name:{width}} "
    text += f"({duration(result.seconds)})"
    if result.updated:
        text += f"; written anew: {' and '.join(result.updated)}"
    if result.failures:
        first, *more = result.failures
        text += f" {first.what}: {first.message}"
        text = one_line(text, _LONGEST) + (f" (and {len(more)} more)" if more else "")
    return text


def _words(results: Sequence[CaseResult], seconds: float) -> str:
    """All that is not as expected, and how many passed."""
    parts: list[str] = []
    for result in results:
        if result.failures:
            head = f"{result.name} ({result.file})"
            told = "\n".join(str(each) for each in result.failures)
            parts.append("\n".join([head, *(f"  {line}" for line in told.splitlines()), "", ""]))
    failed = sum(not each.is_passed for each in results)
    said = [f"{len(results) - failed} passed", *([f"{failed} failed"] if failed else [])]
    return f"{''.join(parts)}{', '.join(said)} in {duration(seconds)}\n"


def failures_to_json(failures: Sequence[Failure]) -> list[JsonValue]:
    """What is not as expected, as `--json` has it."""
    return [
        {
            "what": each.what,
            "message": each.message,
            "difference": each.difference,
            "file": each.position.file,
            "line": each.position.line,
            "column": each.position.column,
        }
        for each in failures
    ]


def _object(
    results: Sequence[CaseResult], code: int, seconds: float, problems: Sequence[str]
) -> JsonValue:
    failed = sum(not each.is_passed for each in results)
    return {
        "exit_code": code,
        "passed": len(results) - failed,
        "failed": failed,
        "seconds": round(seconds, 3),
        "cases": [
            {
                "name": each.name,
                "file": str(each.file),
                "passed": each.is_passed,
                "seconds": round(each.seconds, 3),
                "status": each.run.status,
                "model_calls": each.run.usage.model_calls,
                "tool_calls": each.run.usage.tool_calls,
                "updated": list(each.updated),
                "failures": failures_to_json(each.failures),
            }
            for each in results
        ],
        "warnings": list(problems),
    }


def _finding(failure: Failure) -> Diagnostic:
    from devall.core.diagnostics import Diagnostic

    message = f"{failure.what}: {failure.message}"
    if failure.difference:
        message += f"\n{failure.difference}"
    return Diagnostic("workflow-test", message, failure.position)


def _suite(results: Sequence[CaseResult], seconds: float) -> Suite:
    from devall.reports.junit import Case, Suite

    return Suite(
        name=SUITE,
        seconds=seconds,
        cases=[
            Case(
                name=each.name,
                group=str(each.file.parent.as_posix()),
                seconds=each.seconds,
                outcome="passed" if each.is_passed else "failed",
                kind=each.failures[0].what if each.failures else "",
                message=each.failures[0].message if each.failures else "",
                details="\n".join(map(str, each.failures)),
            )
            for each in results
        ],
    )


def _suite_of_broken(diagnostics: Sequence[Diagnostic]) -> Suite:
    """The suite where files of cases are wrong, and so none was run."""
    from devall.reports.junit import Case, Suite

    by_file: dict[str, list[Diagnostic]] = {}
    for each in diagnostics:
        by_file.setdefault(each.position.file, []).append(each)
    return Suite(
        name=SUITE,
        cases=[
            Case(
                name=file,
                outcome="error",
                kind=found[0].code,
                message=found[0].message,
                details=diagnostics_text(found),
            )
            for file, found in by_file.items()
        ],
    )


def _report(
    targets: Sequence[Target],
    suite: Suite,
    findings: Sequence[Diagnostic],
    options: CasesOptions,
) -> list[str]:
    """Write the reports, and what GitHub shows; what could not be written of those asked for."""
    from devall.reports.files import write_report
    from devall.reports.junit import write_junit
    from devall.reports.markdown import suites_markdown

    problems: list[str] = []
    for target in targets:
        try:
            if target.kind == "junit":
                write_junit(target.path, [suite])
            else:
                write_report(target.path, suites_markdown([suite]))
        except (OSError, ValueError) as error:  # ValueError: no path can be written so
            why = getattr(error, "strerror", None) or error
            problems.append(f"report {target.kind}={target.path} not written: {why}")
            write_note(f"error [report]: {problems[-1]}")
    summary = options.environment.get("GITHUB_STEP_SUMMARY", "")
    if summary:
        _add_to_summary(suite, Path(summary))
    annotate(findings, options.environment)
    return problems


def _add_to_summary(suite: Suite, file: Path) -> None:
    from devall.reports.files import append
    from devall.reports.github import LARGEST_SUMMARY
    from devall.reports.markdown import suites_markdown

    try:
        used = file.stat().st_size if file.exists() else 0
        append(file, suites_markdown([suite], longest=max(LARGEST_SUMMARY - used - 1, 0)) + "\n")
    except OSError as error:  # nobody asked for it: no reason to fail
        write_note(f"warning: GITHUB_STEP_SUMMARY: {error}")
