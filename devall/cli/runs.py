"""`devall runs list` and `show`: the runs of a folder, and all about one of them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from devall.cli.conclusion import answer_names, resume_command
from devall.cli.failures import Reporter, to_line
from devall.cli.inputs import logs_folder
from devall.cli.pages import Page, columns, moment, past_of, redactor_of_today
from devall.cli.streams import one_line, write_answer, write_note
from devall.cli.words import count, duration
from devall.core.errors import UsageError
from devall.core.messages import JsonValue

if TYPE_CHECKING:
    from devall.history.past import Past

STATES = (
    "completed",
    "failed",
    "limit_reached",
    "waiting",
    "cancelled",
    "running",
    "interrupted",
    "unfinished",
)
_RESUMABLE = frozenset({"failed", "limit_reached", "waiting", "cancelled", "interrupted"})
_TASK = 50
"""Characters of the task, in the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListOptions:
    """The options of `devall runs list`, as they were written."""

    status: str | None = None
    limit: int | None = None
    logs_dir: Path | None = None
    as_json: bool = False
    debug: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """The options of commands about one run, as they were written."""

    run: str
    logs_dir: Path | None = None
    full: bool = False
    as_json: bool = False
    debug: bool = False


def show_all(options: ListOptions) -> int:
    """Print the runs, the newest first; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _show_all(options))


def show_one(options: RunOptions) -> int:
    """Print all about a run; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _show_one(options))


def check_status(status: str | None) -> None:
    """Check the value of `--status`.

    Raises:
        UsageError: no run ever has it.
    """
    if status is not None and status not in STATES:
        raise UsageError(f"--status {status!r} is unknown", hint=f"there is {', '.join(STATES)}")


def continue_command(past: Past) -> str | None:
    """The command that goes on with a run; None: there is nothing to go on with."""
    if not past.is_kept or past.state not in _RESUMABLE:
        return None
    names = answer_names([key for key, _ in open_questions(past)])
    return resume_command(past.id, past.logs, names)


def open_questions(past: Past) -> list[tuple[str, str]]:
    """The questions that a run has left open: id, and what is asked."""
    if past.state == "completed":
        return []
    steps = past.steps(lambda _, kind: kind == "human")
    found: list[tuple[str, str]] = []
    for key, step in steps.items():
        if step.state == "begun":
            request: Mapping[str, JsonValue] = step.request or {}
            found.append((key.removesuffix("/answer"), str(request.get("question") or "")))
    return found


def _show_all(options: ListOptions) -> int:
    from devall.history.past import all_past

    check_status(options.status)
    if options.limit is not None and options.limit < 1:
        raise UsageError(f"--limit {options.limit} shows nothing", hint="give a number from 1")
    logs = logs_folder(options.logs_dir)
    if options.logs_dir is not None and not logs.is_dir():
        raise UsageError(f"--logs-dir {logs}: there is no such folder")
    runs = [p for p in all_past(logs) if options.status is None or p.state == options.status]
    shown = runs[: options.limit]
    if options.as_json:
        told = {"count": len(runs), "runs": [summary(past) for past in shown]}
        write_answer(to_line(redactor_of_today().value(told)))
        return 0
    if not runs:
        what = f"no run is {options.status.replace('_', ' ')}" if options.status else "no runs"
        write_note(f"{what} in {logs}")
        return 0
    page = Page()
    page.add(*columns([_HEAD, *(list(_cells(past)) for past in shown)], right={3, 4, 5}))
    page.write()
    if len(shown) < len(runs):
        write_note(f"{count(len(runs) - len(shown), 'more run')}: --limit {len(runs)} shows all")
    if any(not past.is_kept for past in shown):
        write_note(
            "*: in no journal (--journal memory): it can be looked at, and not be gone on with"
        )
    return 0


_HEAD = ["RUN", "STATE", "BEGAN", "TOOK", "TOKENS", "COST", "WORKFLOW", "TASK"]


def _cells(past: Past) -> Iterator[str]:
    yield past.id + ("" if past.is_kept else "*")
    yield past.state.replace("_", " ")
    yield moment(past.began)
    yield _took(past)
    usage = past.usage
    tokens = 0 if usage is None else usage["input_tokens"] + usage["output_tokens"]
    yield f"{tokens:,}" if tokens else ""
    yield cost(usage)
    yield one_line(Path(past.workflow).name, 40)
    yield one_line(past.task, _TASK)


def _took(past: Past) -> str:
    if past.seconds is not None:
        return duration(past.seconds)
    return f"{duration(max(0, time.time() - past.began))}…" if past.state == "running" else ""


def cost(usage: Mapping[str, JsonValue] | None) -> str:
    """What a run cost, in few characters; empty: nothing, or nobody knows."""
    if usage is None or not usage["usd"]:
        return ""
    at_least = ">" if usage["unpriced_calls"] else ""
    digits = 2 if usage["usd"] >= 1 else 4
    return f"{at_least}${usage['usd']:,.{digits}f}"


def summary(past: Past) -> dict[str, JsonValue]:
    """A run as `--json` lists it."""
    row = past.row
    return {
        "run_id": past.id,
        "state": past.state,
        "in_journal": past.is_kept,
        "workflow": past.workflow,
        "task": past.task,
        "began": past.began,
        "ended": row.ended if row is not None else past.last and past.last.at,
        "seconds": past.seconds,
        "usage": past.usage,
        "turns": 1 if row is None else row.epoch,
        "folder": str(past.folder),
    }


def _show_one(options: RunOptions) -> int:
    past = past_of(options.logs_dir, options.run)
    questions = open_questions(past)
    command = continue_command(past)
    result = past.row.result if past.row is not None else None
    if options.as_json:
        told = {
            **summary(past),
            "process": _process(past),
            "settings": _settings(past),
            "result": result,
            "nodes": _nodes(past),
            "questions": [{"id": key, "question": text} for key, text in questions],
            "resume_command": command,
        }
        write_answer(to_line(redactor_of_today().value(told)))
        return 0
    page = Page(options.full)
    page.add(f"run {past.id}: {past.state.replace('_', ' ')}")
    page.add(*_facts(past))
    if past.task:
        page.add("task:")
        page.text(past.task)
    for name, value in _settings(past).items():
        if value not in (None, {}, []):
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            page.add(f"{name.replace('_', ' ')}: {one_line(text, 0 if options.full else 200)}")
    if nodes := _nodes(past):
        rows = [["node", "status", "runs"]]
        rows += [[name, str(node["status"]), str(node["runs"])] for name, node in nodes.items()]
        page.add(*columns(rows, right={2}))
    _write_end(page, past, result)
    for key, text in questions:
        page.add(f"open question {key}: {one_line(text) or '(no question is written)'}")
    if command is not None:
        page.add(f"go on with it: {command}")
    page.write()
    if not past.is_kept:
        write_note(
            f"note: run {past.id} is in no journal (--journal memory): settings and prompts were"
            " not kept, and it cannot be gone on with"
        )
    return 0


def _facts(past: Past) -> Iterator[str]:
    yield f"workflow: {past.workflow}"
    yield f"folder: {past.folder}" + ("" if past.folder.is_dir() else " (it is gone)")
    took = f", took {_took(past)}" if _took(past) else ""
    yield f"began: {moment(past.began)}{took}"
    if process := _process(past):
        yield f"process: {process['pid']} on {process['host']}"
    if past.row is not None and past.row.epoch > 1:
        yield f"processes that were at it: {past.row.epoch} (it was gone on with)"
    if usage := past.usage:
        words = [count(usage["model_calls"], "model call")]
        if usage["tool_calls"]:
            words.append(count(usage["tool_calls"], "tool call"))
        words.append(f"{usage['input_tokens']:,} tokens in, {usage['output_tokens']:,} out")
        if price := cost(usage):
            words.append(price)
        yield f"used: {', '.join(words)}"


def _process(past: Past) -> dict[str, JsonValue] | None:
    """The process that is at work on the run."""
    row = past.row
    if row is None or not row.is_alive:
        return None
    return {"host": row.owner.host, "pid": row.owner.pid}


def _settings(past: Past) -> dict[str, JsonValue]:
    """What it was started with; of the environment only the names."""
    if past.row is None:
        return {}
    found = dict(past.row.settings)
    found["environment"] = sorted(found.get("environment") or {})
    return found


def _nodes(past: Past) -> dict[str, Mapping[str, JsonValue]]:
    """How the nodes fared: as the result has it, or, without one, by the events."""
    if past.row is not None and past.row.result is not None and past.state != "running":
        return past.row.result["nodes"]
    try:
        story = past.story()
    except UsageError:
        return {}
    found: dict[str, Mapping[str, JsonValue]] = {}
    for node in story.nodes:
        visits = story.of_node(node)
        is_skipped = any(each.node == node for each in story.skipped)
        status = story.status(visits[-1]) if visits else "skipped" if is_skipped else "not run"
        if status == "unfinished" and past.state == "running":
            status = "running"
        found[node] = {"runs": len(visits), "status": status}
    return found


def _write_end(page: Page, past: Past, result: Mapping[str, JsonValue] | None) -> None:
    if past.row is None and past.last is not None:
        error = past.last.outcome.error
        if error is not None:
            page.add(f"error [{error.code}]: {error.message}")
        if past.last.answer is not None:
            page.add("answer:")
            page.text(past.last.answer)
    if result is None or past.state == "running":
        return
    if error := result["error"]:
        page.add(f"error [{error['code']}]: {error['message']}")
        if error["hint"]:
            page.add(f"  hint: {error['hint']}")
    if result["answer"] is not None:
        page.add(f"answer (by {result['answer_node']}):")
        page.text(result["answer"])
    page.add(*(f"warning: {one_line(each)}" for each in result["warnings"]))
