"""Runs and suites of tests as Markdown, for people who look at a pipeline."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from devall.core.diagnostics import Position
from devall.core.outcome import ErrorReport
from devall.core.usage import Usage
from devall.reports.junit import Suite
from devall.reports.runs import NodeReport, RunReport

_SPECIAL = re.compile(
    r"[\\`*_\[\]<>|~&@$]"  # within a line
    r"|^[#+=-]|(?<=^\d)[.)]|(?<=^\d\d)[.)]"  # at its start
    r"|:(?=//)|(?<=www)\."  # what would become a link
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_LONGEST_IN_CELL = 300
_CUT = "\n\n*Cut here: the report is longer than what fits.*\n"


def run_markdown(report: RunReport, *, longest: int | None = None) -> str:
    """The run as a Markdown document.

    Args:
        report: The run.
        longest: Bytes that it may have; of one that has more, the answer is cut first.
    """
    text = "\n".join(_document(report, report.answer))
    if longest is None:
        return text
    over = _size(text) - longest
    if over > 0 and report.answer:
        note = f"\n… (cut: {len(report.answer):,} characters in all)"
        # A character has at most four bytes; what is left over is not worth a search.
        kept = max(_size(report.answer) - over - _size(note) - 16, 0)
        start = report.answer.encode("utf-8", "replace")[:kept].decode("utf-8", "ignore")
        text = "\n".join(_document(report, start + note))
    return _cut(text, longest)


def suites_markdown(suites: Iterable[Suite], *, longest: int | None = None) -> str:
    """Suites of tests as a Markdown document: how many passed, a table, and what did not pass.

    Args:
        suites: The suites.
        longest: Bytes that it may have; of one that has more, the end is cut.
    """
    lines: list[str] = []
    for suite in suites:
        passed = sum(case.outcome == "passed" for case in suite.cases)
        lines += [f"## {escaped(suite.name)}: {passed} of {len(suite.cases)} passed", ""]
        if suite.cases:
            lines += ["| case | outcome | time |", "| --- | --- | ---: |"]
        for case in suite.cases:
            name = _shortened(case.name)
            lines.append(f"| {escaped(name)} | {case.outcome} | {case.seconds:.2f} s |")
        lines.append("")
        for case in suite.cases:
            if case.outcome in {"failed", "error"}:
                kind = f" \\[{escaped(case.kind)}\\]" if case.kind else ""
                lines += [f"### {escaped(case.name)}", "", escaped(case.message) + kind, ""]
                lines += [*fenced(case.details), ""] if case.details else []
    text = "\n".join(lines)
    return text if longest is None else _cut(text, longest)


def escaped(text: str) -> str:
    """The text on one line, no character of which means anything to Markdown or HTML."""
    return _SPECIAL.sub(r"\\\g<0>", " ".join(_CONTROL.sub("", text).split()))


def fenced(text: str) -> list[str]:
    """The lines of a block that shows the text as it stands, whatever it holds."""
    text = _CONTROL.sub("", text.replace("\r\n", "\n")).rstrip("\n")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}text", text, fence]


def _document(report: RunReport, answer: str | None) -> Iterator[str]:
    outcome = report.outcome
    status = outcome.status.replace("_", " ")
    yield f"## {escaped(report.workflow)}: {status}"
    yield ""
    yield _totals(report)
    yield ""
    if answer is not None:
        by = f" (by {escaped(report.answer_node)})" if report.answer_node else ""
        yield f"### Answer{by}"
        yield ""
        yield from fenced(answer)
        yield ""
    yield from _troubles(report)
    if report.nodes:
        yield from _table(report)
    if report.warnings:
        yield "### Warnings"
        yield ""
        yield from (f"- {escaped(warning)}" for warning in report.warnings)
        yield ""


def _totals(report: RunReport) -> str:
    parts = [
        f"Exit code {report.outcome.exit_code}",
        f"{report.seconds:.2f} s",
        f"{report.usage.model_calls:,} model calls",
    ]
    if report.usage.tool_calls:
        parts.append(f"{report.usage.tool_calls:,} tool calls")
    if report.usage.tokens:
        parts.append(f"{_tokens(report.usage)} tokens in / out")
    if cost := _cost(report.usage):
        parts.append(cost)
    if report.run_id:
        parts.append(f"run {escaped(report.run_id)}")
    return " · ".join(parts)


def _troubles(report: RunReport) -> Iterator[str]:
    error = report.unplaced
    failures = report.failures
    if error is None and not failures:
        return
    yield "### What went wrong" if report.outcome.exit_code else "### What failed on the way"
    yield ""
    if error is not None and not report.diagnostics:
        yield from _failure("", error, None)
    for found in report.diagnostics:
        yield from _failure(
            "", ErrorReport(found.code, found.message, None, found.hint), found.position
        )
    for node in failures:
        if node.failure is not None:
            survived = " (the run went on without it)" if node.is_survived else ""
            yield from _failure(f"{escaped(node.name)}{survived}: ", node.failure, node.place)
        else:
            asked = escaped(node.question) or "(no question is written)"
            yield f"- {escaped(node.name)} waits for a human: {asked}{_at(node.place)}"
    yield ""


def _failure(subject: str, error: ErrorReport, place: Position | None) -> Iterator[str]:
    yield f"- {subject}{escaped(error.message)} \\[{escaped(error.code)}\\]{_at(place)}"
    if error.hint:
        yield f"  - hint: {escaped(error.hint)}"


def _at(place: Position | None) -> str:
    return f" — {escaped(str(place))}" if place is not None else ""


def _table(report: RunReport) -> Iterator[str]:
    yield "### Nodes"
    yield ""
    yield "| node | status | runs | time | model calls | tool calls | tokens in / out | cost |"
    yield "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    for node in report.nodes:
        yield "| " + " | ".join(_cells(node)) + " |"
    yield ""


def _cells(node: NodeReport) -> Iterator[str]:
    yield escaped(_shortened(node.name))
    yield node.status
    yield str(node.runs)
    yield f"{node.seconds:.2f} s" if node.runs else ""
    yield str(node.usage.model_calls or "")
    yield str(node.usage.tool_calls or "")
    yield _tokens(node.usage) if node.usage.model_calls else ""
    yield _cost(node.usage)


def _tokens(usage: Usage) -> str:
    at_least = "≥ " if usage.unknown_calls else ""
    return f"{at_least}{usage.input_tokens:,} / {usage.output_tokens:,}"


def _cost(usage: Usage) -> str:
    if not usage.model_calls:
        return ""
    if usage.usd is None:
        return "cost unknown"
    at_least = "≥ " if usage.unpriced_calls else ""
    digits = 6 if 0 < usage.usd < 1 else 2
    return f"{at_least}${usage.usd:,.{digits}f}"


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_IN_CELL else name[: _LONGEST_IN_CELL - 1] + "…"


def _cut(text: str, longest: int) -> str:
    """The text, or as many of its lines as there is room for, and a word that it is cut."""
    if _size(text) <= longest:
        return text
    room = max(longest - _size(_CUT), 0)
    lines = text.encode("utf-8", "replace")[:room].decode("utf-8", "ignore")
    return lines.rpartition("\n")[0] + _CUT if room else ""


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
