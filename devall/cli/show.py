"""`devall show`: what happened in a run, and in each run of one node of it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from devall.cli.failures import Reporter, to_line
from devall.cli.pages import Page, columns, moment, past_of, redactor_of_today
from devall.cli.streams import one_line, write_answer, write_note
from devall.cli.words import count, duration
from devall.core.errors import UsageError
from devall.core.messages import JsonValue, to_json

if TYPE_CHECKING:
    from devall.core.usage import TokenUsage
    from devall.history.past import Past
    from devall.history.story import Happening, ModelCall, Story, ToolUse, Visit
    from devall.journal.base import StepRecord

_FIRST_WORDS = 60
"""Characters of what a node has said, in the overview."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShowOptions:
    """The options of `devall show`, as they were written."""

    run: str
    node: str | None = None
    logs_dir: Path | None = None
    full: bool = False
    as_json: bool = False
    debug: bool = False


def execute(options: ShowOptions) -> int:
    """Print what happened; the exit code."""
    return Reporter(options.as_json, options.debug).guard(lambda: _execute(options))


def _execute(options: ShowOptions) -> int:
    past = past_of(options.logs_dir, options.run)
    story = past.story()
    visits = list(story.visits.values())
    steps: Mapping[str, StepRecord] = {}
    if options.node is not None:
        from devall.history.exchanges import exchanges, exchanges_told

        visits = visits_of(story, options.node)
        places = [visit.path for visit in visits]
        steps = exchanges(past, story, places) if past.is_kept else exchanges_told(story, places)
        if not past.is_kept and any(visit.calls for visit in visits):
            write_note(
                f"note: run {past.id} is in no journal (--journal memory): the parameters of"
                " model calls were not kept"
            )
    if options.as_json:
        told: dict[str, JsonValue] = {
            "run_id": past.id,
            "in_journal": past.is_kept,
            "state": past.state,
            "workflow": past.workflow,
            "task": past.task,
            "answer": story.finished and story.finished.answer,
            "visits": [_object(visit, story, steps) for visit in visits],
            "skipped": _skipped(story),
        }
        write_answer(to_line(redactor_of_today().value(told)))
        return 0
    page = Page(options.full)
    if options.node is None:
        _overview(page, past, story)
    for at, visit in enumerate(visits if options.node is not None else ()):
        if at:
            page.add("")
        _Detail(page, story, steps).visit(visit)
    page.write()
    return 0


def visits_of(story: Story, name: str) -> list[Visit]:
    """The runs of the node that a command names: `S/X`, `X`, `X@2`, or a path.

    Raises:
        UsageError: there is no such node, or it has not run (so often).
    """
    from devall.history.story import named

    if name.startswith("/"):
        if name in story.visits:
            return [story.visits[name]]
        raise UsageError(f"nothing has run at {name}", hint=_some(list(story.visits)))
    nodes, number = named(name, story.nodes)
    found = [visit for visit in story.visits.values() if visit.node in nodes]
    shown = [visit for visit in found if number is None or visit.number == number]
    if shown:
        return shown
    if found:
        raise UsageError(
            f"there is no {name}: the node has run {count(len(found), 'time')}",
            hint=_some([visit.name for visit in found]),
        )
    raise UsageError(
        f"node {nodes[0]} has not run", hint=f"why it has not: devall why RUN {nodes[0]}"
    )


def _some(names: Sequence[object]) -> str:
    return f"there is {', '.join(map(str, names[:8]))}{', …' if len(names) > 8 else ''}"


def _overview(page: Page, past: Past, story: Story) -> None:
    page.add(f"run {past.id}: {past.state}, {past.workflow}")
    if past.task:
        page.add("task:")
        page.text(past.task)
    rows = [["#", "node", "status", "time", "model calls", "tool calls", "tokens", "it said"]]
    times = Counter(visit.name for visit in story.visits.values())
    for number, visit in enumerate(story.visits.values(), 1):
        seconds = story.seconds(visit)
        tokens = _tokens_of(visit)
        said = visit.failure.message if visit.failure is not None else _words(visit)
        rows.append(
            [
                str(number),
                one_line(visit.name if times[visit.name] == 1 else visit.path, 60),
                story.status(visit),
                "" if seconds is None else duration(seconds),
                str(len(visit.calls) or ""),
                str(len(visit.tools) or ""),
                f"{tokens:,}" if tokens else "",
                one_line(said, _FIRST_WORDS),
            ]
        )
    page.add(*columns(rows, right={0, 3, 4, 5, 6}))
    if skipped := _skipped(story):
        page.add(f"skipped: {', '.join(skipped)}")
    if story.finished is not None and story.finished.answer is not None:
        page.add("answer:")
        page.text(story.finished.answer)


def _skipped(story: Story) -> list[str]:
    """The nodes that were skipped and never ran."""
    ran = {visit.node for visit in story.visits.values()}
    return list(dict.fromkeys(each.node for each in story.skipped if each.node not in ran))


def _tokens_of(visit: Visit) -> int:
    usages = [call.finished.usage for call in visit.calls if call.finished is not None]
    return sum(usage.tokens for usage in usages if usage is not None)


def _words(visit: Visit) -> str:
    return visit.outputs[-1].text if visit.outputs else ""


class _Detail:
    """Writes down one run of a node."""

    def __init__(self, page: Page, story: Story, steps: Mapping[str, StepRecord]) -> None:
        self._page = page
        self._story = story
        self._steps = steps
        self._sent: dict[str, list[JsonValue]] = {}
        """By path: the messages of the turn before."""

    def visit(self, visit: Visit) -> None:
        """Everything about a run of a node."""
        page, story = self._page, self._story
        seconds = story.seconds(visit)
        after = "" if seconds is None else f" after {duration(seconds)}"
        page.add(f"{visit.node}, run {visit.number} ({visit.path}): {story.status(visit)}{after}")
        page.add(f"  began: {moment(visit.began)}")
        for number, message in enumerate(visit.inputs, 1):
            page.add(f"  input {number}{_about(to_json(message))}:")
            page.text(_content(to_json(message)))
        if not visit.inputs:
            page.add("  no input")
        for each in visit.happenings:
            self._happening(each, visit)
        if visit.failure is not None:
            page.add(f"  failed [{visit.failure.code}]:")
            page.text(visit.failure.message)
            if visit.failure.hint:
                page.add(f"    hint: {visit.failure.hint}")
        for number, message in enumerate(visit.outputs, 1):
            page.add(f"  output {number}{_about(to_json(message))}:")
            page.text(_content(to_json(message)))
        if visit.ended is not None and visit.failure is None and not visit.outputs:
            page.add("  no output")
        if visit.fired:
            fired = [f"{edge.source} -> {edge.target}" for edge in visit.fired]
            page.add(f"  edges that fired: {', '.join(fired)}")

    def _happening(self, each: Happening, visit: Visit) -> None:
        from devall.core.events import HistoryCut, Warned
        from devall.history.story import ModelCall, Question, ToolUse

        page = self._page
        match each:
            case ModelCall():
                self._call(each, visit)
            case ToolUse():
                self._use(each, visit)
            case Question():
                page.add(f"  a human was asked{_unit(each.path, visit)}:")
                page.text(each.text or "(no question is written)")
                page.add("  and has answered:" if each.answer is not None else "  not answered")
                if each.answer is not None:
                    page.text(each.answer)
            case Warned():
                page.add(f"  warning [{each.code}]: {one_line(each.message)}")
            case HistoryCut():
                page.add(
                    f"  turn {each.turn}: {count(each.left_out, 'message')} left out and"
                    f" {count(each.shortened, 'result')} shortened, to fit {each.most:,} tokens"
                )

    def _call(self, call: ModelCall, visit: Visit) -> None:
        from devall.history.exchanges import reply_of

        page = self._page
        page.add(f"  turn {call.turn}{_unit(call.path, visit)}: {_call_words(call)}")
        for failure in call.failures:
            page.add(f"    attempt {failure.attempt} failed: {one_line(failure.message)}")
        step = self._steps.get(call.key)
        if step is None:
            return
        request = cast("Mapping[str, JsonValue]", step.request or {})
        tools = cast("list[Mapping[str, JsonValue]]", request.get("tools") or [])
        if tools:
            page.add(f"    tools: {', '.join(str(tool.get('name')) for tool in tools)}")
        if params := request.get("params"):
            page.add(f"    params: {_json(params)}")
        messages = cast("list[dict[str, JsonValue]]", request.get("messages") or [])
        before = self._sent.get(call.path, [])
        self._sent[call.path] = list(messages)
        known = len(before) if before and messages[: len(before)] == before else 0
        if page.full:
            known = 0
        again = f" (behind the {count(known, 'message')} of the turn before)" if known else ""
        page.add(f"    prompt{again}:")
        for message in messages[known:]:
            page.add(f"      {message.get('role', '?')}{_about(message)}:")
            page.text(_content(message), "        ")
        if reply := reply_of(step):
            page.add("    reply:")
            page.text(_content(reply), "        ")

    def _use(self, use: ToolUse, visit: Visit) -> None:
        page, end = self._page, use.finished
        how = "not finished"
        if end is not None:
            time = "from the journal" if end.replayed else duration(end.seconds)
            how = f"failed, {time}" if end.is_error else time
        server = f" of {use.started.server}" if use.started.server else ""
        page.add(f"  tool {use.started.tool}{server}{_unit(use.started.path, visit)} ({how}):")
        page.add("    arguments:")
        page.text(_json(use.started.arguments), "        ")
        if end is not None:
            page.add("    result:")
            page.text(end.result, "        ")


def _call_words(call: ModelCall) -> str:
    parts = [f"{call.provider} {call.model}"]
    end = call.finished
    if end is None:
        return ", ".join([*parts, "no answer"])
    if end.usage is not None:
        parts.append(_usage_words(end.usage))
    parts.append("from the journal" if end.replayed else duration(end.seconds))
    if end.usd is not None:
        parts.append(f"${end.usd:.6f}")
    if end.finish_reason:
        parts.append(end.finish_reason)
    if call.attempts > 1:
        parts.append(count(call.attempts, "attempt"))
    return ", ".join(parts)


def _usage_words(usage: TokenUsage) -> str:
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return f"{usage.input_tokens:,} tokens in{cached}, {usage.output_tokens:,} out"


def _unit(path: str, visit: Visit) -> str:
    """Which unit of a dynamic edge it was."""
    return f" [{path.removeprefix(visit.path + '/')}]" if path != visit.path else ""


def _about(message: Mapping[str, JsonValue]) -> str:
    source = message.get("source")
    marks = [f"from {source}"] if source else []
    marks += ["kept"] if message.get("keep") else []
    return f" ({', '.join(marks)})" if marks else ""


def _content(message: Mapping[str, JsonValue]) -> str:
    """The text of a message, what else it holds, and the calls that it asks for."""
    content = message.get("content", "")
    lines: list[str] = []
    if isinstance(content, str):
        lines += [content] if content else []
    else:
        for part in cast("list[Mapping[str, JsonValue]]", content):
            text = part.get("text")
            lines.append(text if isinstance(text, str) else _json(part))
    for call in cast("list[Mapping[str, JsonValue]]", message.get("tool_calls") or []):
        lines.append(f"-> {call.get('name')}({call.get('arguments')})")
    return "\n".join(lines)


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _object(visit: Visit, story: Story, steps: Mapping[str, StepRecord]) -> dict[str, JsonValue]:
    from devall.core.events import Warned
    from devall.history.story import Question

    failure = visit.failure
    return {
        "node": visit.node,
        "visit": visit.number,
        "path": visit.path,
        "status": story.status(visit),
        "began": visit.began,
        "seconds": story.seconds(visit),
        "inputs": [to_json(message) for message in visit.inputs],
        "outputs": [to_json(message) for message in visit.outputs],
        "error": failure
        and {"code": failure.code, "message": failure.message, "hint": failure.hint or None},
        "model_calls": [_call_object(call, steps.get(call.key)) for call in visit.calls],
        "tool_calls": [_use_object(use) for use in visit.tools],
        "questions": [
            {"path": each.path, "question": each.text, "answer": each.answer}
            for each in visit.happenings
            if isinstance(each, Question)
        ],
        "warnings": [each.message for each in visit.happenings if isinstance(each, Warned)],
        "edges": [{"from": edge.source, "to": edge.target} for edge in visit.fired],
    }


def _call_object(call: ModelCall, step: StepRecord | None) -> dict[str, JsonValue]:
    end = call.finished
    usage = end.usage if end is not None else None
    return {
        "path": call.path,
        "turn": call.turn,
        "provider": call.provider,
        "model": call.model,
        "attempts": call.attempts,
        "failures": [failure.message for failure in call.failures],
        "seconds": end and end.seconds,
        "input_tokens": usage and usage.input_tokens,
        "output_tokens": usage and usage.output_tokens,
        "cached_tokens": usage and usage.cached_tokens,
        "usd": end and end.usd,
        "finish_reason": end and (end.finish_reason or None),
        "from_journal": end is not None and end.replayed,
        "request": step and step.request,
        "reply": step.value if step is not None and step.state == "done" else None,
    }


def _use_object(use: ToolUse) -> dict[str, JsonValue]:
    end = use.finished
    return {
        "path": use.started.path,
        "turn": use.turn,
        "tool": use.started.tool,
        "server": use.started.server or None,
        "arguments": use.started.arguments,
        "result": end and end.result,
        "is_error": end is not None and end.is_error,
        "seconds": end and end.seconds,
        "from_journal": end is not None and end.replayed,
    }
