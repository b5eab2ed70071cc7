"""What a command that ran a workflow ends with: the answer, and how it went."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.failures import error_text, to_line, traceback_text
from devall.cli.inputs import LOGS_DIR
from devall.cli.reports import UNWRITTEN
from devall.cli.streams import write_answer, write_note
from devall.cli.words import count, duration, money
from devall.core.ids import node_of
from devall.telemetry.redaction import SHORTEST_IN_ANSWERS, Redactor

if TYPE_CHECKING:
    from devall.engine.result import RunResult


@dataclass(frozen=True, slots=True)
class Conclusion:
    """Says how a run went and prints its answer."""

    as_json: bool
    quiet: bool
    debug: bool
    redactor: Redactor
    is_kept: bool = True
    """Whether the run stands in a journal, so that another process may go on with it."""

    def write(self, result: RunResult, unwritten: Sequence[str] = ()) -> int:
        """Print everything; the exit code.

        Args:
            result: The run.
            unwritten: Reports that were asked for and could not be written: a run that
                completed is no success then.
        """
        code = UNWRITTEN if unwritten and result.exit_code == 0 else result.exit_code
        is_good = result.status == "completed"
        if not is_good or not self.quiet:
            write_note(self.redactor.text(self._words(result)))
        spared = self.redactor.at_least(SHORTEST_IN_ANSWERS)
        if self.as_json:
            found = result.to_json()
            found["answer"] = spared.value(found["answer"])
            found["exit_code"] = code
            found["warnings"] += unwritten
            write_answer(to_line(found))
        elif is_good and result.answer is not None:
            answer = spared.text(result.answer)
            write_answer(answer if answer.endswith("\n") else answer + "\n")
        return code

    def _words(self, result: RunResult) -> str:
        """What is said at the end: the error or the open questions, or the totals."""
        lines: list[str] = []
        if result.status == "waiting":
            lines += self._open_questions(result)
        elif result.error is not None:
            if self.debug and result.exception is not None:
                lines.append(traceback_text(result.exception))
            lines.append(error_text(result.error, debug=self.debug))
            if self.is_kept:
                lines.append(f"  what was done is kept; go on with: {_command(result)}")
            if result.logs_dir is not None:
                lines.append(f"  how it went, as a page: {_report_command(result.logs_dir)}")
        if self.quiet:
            return "\n".join(lines)
        lines.append(_totals(result))
        return "\n".join(lines)

    def _open_questions(self, result: RunResult) -> Iterator[str]:
        yield "waiting for a human:"
        names = answer_names([path for path, _ in result.waiting])
        for (path, question), name in zip(result.waiting, names, strict=True):
            also = "" if name == path else f" ({path})"
            yield f"  {name}{also}: {question or '(no question is written)'}"
        if self.is_kept:
            yield f"  go on with the answer: {_command(result, names)}"
        else:
            given = " ".join(_answer_options(names))
            file = shlex.quote(result.workflow)
            yield f"  hint: run it again with the answer: devall run {file} ... {given}"


def answer_names(paths: Sequence[str]) -> list[str]:
    """How each question is called in `--answer`: its node where that is enough, else its id."""
    nodes = [node_of(path) for path in paths]
    return [
        node if nodes.count(node) == 1 else path for node, path in zip(nodes, paths, strict=True)
    ]


def resume_command(run_id: str, folder: Path, names: Sequence[str] = ()) -> str:
    """The command that goes on with a run.

    Args:
        run_id: The run.
        folder: The folder of all runs.
        names: What the open questions are called.
    """
    return " ".join(["devall resume", run_id, *_where(folder), *_answer_options(names)])


def _report_command(folder: Path) -> str:
    """The command that writes a run as a page, by the run's own folder."""
    return " ".join(["devall report", folder.name, *_where(folder.parent)])


def _where(folder: Path) -> list[str]:
    """The option that names the folder of all runs, where it has to be named."""
    return [] if str(folder) == LOGS_DIR else ["--logs-dir", shlex.quote(str(folder))]


def _answer_options(names: Sequence[str]) -> list[str]:
    return [f"--answer {shlex.quote(f'{name}=TEXT')}" for name in names]


def _command(result: RunResult, names: Sequence[str] = ()) -> str:
    folder = Path(LOGS_DIR) if result.logs_dir is None else result.logs_dir.parent
    return resume_command(result.run_id, folder, names)


def _totals(result: RunResult) -> str:
    usage = result.usage
    parts = [
        f"{result.status.replace('_', ' ')} in {duration(result.seconds)}",
        count(usage.model_calls, "model call"),
    ]
    if usage.tool_calls:
        parts.append(count(usage.tool_calls, "tool call"))
    if usage.tokens:
        at_least = "at least " if usage.unknown_calls else ""
        parts.append(f"{at_least}{usage.input_tokens:,} tokens in, {usage.output_tokens:,} out")
    if usage.usd != 0 or usage.unpriced_calls:
        unpriced = [name for name, of in result.usage_by_model.items() if of.unpriced_calls]
        parts.append(money(usage, unpriced))
    if result.warnings:  # each was told when it came
        parts.append(count(len(result.warnings), "warning"))
    if result.logs_dir is not None:
        parts.append(f"logs: {result.logs_dir}")
    return " · ".join(parts)
