"""Reports of a run: those that `--report` asks for, and what GitHub Actions shows by itself."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import Terminated
from devall.cli.streams import is_on_github, write_command, write_note
from devall.core.errors import ConfigError, DevallError, RunCancelled, UsageError
from devall.core.outcome import outcome_of

if TYPE_CHECKING:
    from devall.core.diagnostics import Diagnostic
    from devall.core.events import Event, Sink
    from devall.engine.result import RunResult
    from devall.loading.loader import LoadedWorkflow
    from devall.reports.runs import Recorder, RunReport
    from devall.telemetry.redaction import Redactor

KINDS = ("junit", "markdown")
"""The kinds of reports of a run."""
UNWRITTEN = 4
"""Exit code where all went well, but a report could not be written: the environment's fault."""


@dataclass(frozen=True, slots=True)
class Target:
    """One `--report KIND=PATH`."""

    kind: str
    path: Path


def parse_targets(given: Sequence[str], kinds: Sequence[str]) -> tuple[Target, ...]:
    """What the `--report` options ask for.

    Raises:
        UsageError: one is not well written, or its kind is not one of these.
    """
    found: list[Target] = []
    for text in given:
        kind, _, path = text.partition("=")
        if kind not in kinds:
            raise UsageError(
                f"--report {text}: there is no kind of report {kind!r}",
                hint=f"write --report KIND=PATH; there is {', '.join(kinds)}",
            )
        if not path:
            raise UsageError(
                f"--report {text}: the path is missing", hint=f"write --report {kind}=PATH"
            )
        if path == "-":
            raise UsageError(
                f"--report {text}: standard output is for the result",
                hint=f"name a file: --report {kind}=PATH",
            )
        if any(target.path == Path(path) for target in found):
            raise UsageError(f"--report {text}: two reports cannot be one file")
        found.append(Target(kind, Path(path)))
    return tuple(found)


@dataclass(slots=True)
class Reports:
    """What is to be reported of one run, and whether that went well."""

    targets: Sequence[Target] = ()
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    problems: list[str] = field(default_factory=list[str])
    """What could not be written, of what was asked for."""
    _recorder: Recorder | None = None
    _is_done: bool = False

    @property
    def summary(self) -> Path | None:
        """The file of the step's summary; None: nobody reads one."""
        name = self.environment.get("GITHUB_STEP_SUMMARY", "")
        return Path(name) if name else None

    @property
    def is_wanted(self) -> bool:
        """Whether anybody reads a report."""
        return bool(self.targets) or self.summary is not None or is_on_github(self.environment)

    def beside(self, sink: Sink) -> Sink:
        """The sink, and one that remembers what a report needs where one is wanted."""
        if not self.is_wanted:
            return sink
        from devall.reports.runs import Recorder

        recorder = self._recorder = Recorder()

        def both(event: Event) -> None:
            recorder(event)
            sink(event)

        return both

    def finish(self, result: RunResult, loaded: LoadedWorkflow, redactor: Redactor) -> None:
        """Write all reports of a run that is over."""
        if self._recorder is not None:
            self._write(self._recorder.report(result, loaded, redactor))

    @contextmanager
    def of_failure(self, workflow: str, redactor: Redactor | None = None) -> Generator[None]:
        """A block whose exception is reported as a run that never began, and raised on."""
        try:
            yield
        except (Exception, KeyboardInterrupt) as error:
            # What goes wrong here must not hide what went wrong there.
            with suppress(Exception):
                self._fail(error, workflow, redactor)
            raise

    def _fail(self, error: BaseException, workflow: str, redactor: Redactor | None) -> None:
        if self._is_done or not self.is_wanted:
            return
        from devall.reports.runs import never_begun
        from devall.telemetry.redaction import Redactor, environment_secrets

        if isinstance(error, KeyboardInterrupt):
            error = RunCancelled("SIGTERM" if isinstance(error, Terminated) else "SIGINT")
        diagnostics = error.diagnostics if isinstance(error, ConfigError) else ()
        known = redactor or Redactor(environment_secrets(self.environment))
        self._write(never_begun(workflow, outcome_of(error), diagnostics, known))

    def _write(self, report: RunReport) -> None:
        self._is_done = True
        for target in self.targets:
            try:
                _write_target(target, report)
            except (OSError, ValueError) as error:  # ValueError: no path can be written so
                why = getattr(error, "strerror", None) or error
                self.problems.append(f"report {target.kind}={target.path} not written: {why}")
        for problem in self.problems:
            write_note(f"error [report]: {problem}")
        if self.summary is not None:
            self._add_to_summary(report, self.summary)
        if is_on_github(self.environment):
            from devall.reports.github import findings_of

            annotate(findings_of(report), self.environment)

    def _add_to_summary(self, report: RunReport, file: Path) -> None:
        from devall.reports.github import add_to_summary

        try:
            add_to_summary(report, file)
        except (OSError, DevallError) as error:  # nobody asked for it: no reason to fail
            write_note(f"warning: GITHUB_STEP_SUMMARY: {error}")


def annotate(findings: Iterable[Diagnostic], environment: Mapping[str, str]) -> None:
    """Show the findings beside the lines they are about, where GitHub Actions reads along."""
    if not is_on_github(environment):
        return
    from devall.reports.commands import workflow_commands

    if text := workflow_commands(findings, environment):
        write_command(text)


def _write_target(target: Target, report: RunReport) -> None:
    from devall.reports.files import write_report

    if target.kind == "junit":
        from devall.reports.cases import suite_of
        from devall.reports.junit import write_junit

        write_junit(target.path, [suite_of(report)])
    else:
        from devall.reports.markdown import run_markdown

        write_report(target.path, run_markdown(report))
