"""How two runs differ: node by node, visit by visit, first what came first.

Times, durations, ids of runs and of tool calls are no differences.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from devall.core.errors import UsageError
from devall.core.events import Event, NodeFailed, NodeFinished, NodeStarted
from devall.core.messages import JsonValue, Message, to_json
from devall.history.exchanges import exchanges, reply_of
from devall.history.past import Past, find_past
from devall.history.story import ModelCall, Question, Story, ToolUse, Visit, story_of
from devall.journal.base import StepRecord


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in both runs."""

    node: str
    """Its id, `S/X` in a subgraph; empty: the run as a whole."""
    visit: int
    """Which run of the node, from 1."""
    path: str
    aspect: str
    """`inputs`, `turn 1: prompt`, `turn 1: reply`, `output` and so on."""
    first: str | None
    """The text in the first run; None: there is no such thing in it."""
    second: str | None

    @property
    def place(self) -> str:
        """Node and visit as people say them."""
        if not self.node:
            return "run"
        return self.node if self.visit == 1 else f"{self.node}@{self.visit}"

    def lines(self, names: tuple[str, str] = ("first", "second"), context: int = 3) -> list[str]:
        """A unified diff of the two texts."""
        before = (self.first or "").splitlines()
        after = (self.second or "").splitlines()
        return list(difflib.unified_diff(before, after, *names, lineterm="", n=context))


@dataclass(frozen=True, slots=True)
class Differences:
    """All that differs between two runs, in the order in which it happened."""

    found: tuple[Difference, ...]
    notes: tuple[str, ...] = ()
    """What could not be compared."""

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.found


@dataclass(frozen=True, slots=True)
class Side:
    """A run that is compared."""

    story: Story
    steps: Mapping[str, StepRecord] = field(default_factory=dict[str, StepRecord])
    """Its steps by key; empty: prompts and replies are not known."""
    run_id: str = ""
    """What stands for the run in paths and texts, and is no difference."""


Evidence = Side | Past | Path | Sequence[Event]
"""A run: what was found of it, its folder, or its events."""


def difference(*, first: Evidence, second: Evidence) -> Differences:
    """What differs between two runs.

    Args:
        first: A run.
        second: Another one, of the same workflow as a rule.

    Raises:
        UsageError: the events of one are not there.
    """
    one, two = side_of(first), side_of(second)
    with_steps = bool(one.steps) and bool(two.steps)
    found: list[Difference] = []
    for path, is_end in dict.fromkeys((*_moments(one.story), *_moments(two.story))):
        found += _at_moment(path, one, two, is_end=is_end, with_steps=with_steps)
    found += _of_facets("", 0, "", dict(_end(one)), dict(_end(two)))
    notes = () if with_steps or not _has_calls(one, two) else (_no_prompts(one, two),)
    return Differences(tuple(found), notes)


def side_of(evidence: Evidence) -> Side:
    """A run as it is compared.

    Raises:
        UsageError: its events are not there.
    """
    match evidence:
        case Side():
            return evidence
        case Past():
            story = evidence.story()
            return Side(story, exchanges(evidence, story), evidence.id)
        case Path():
            return side_of(find_past(evidence.parent, evidence.name))
        case _:
            story = story_of(evidence)
            if story.started is None:
                raise UsageError("these are not the events of a run: it does not begin")
            return Side(story, {}, story.started.run_id)


def _moments(story: Story) -> Iterator[tuple[str, bool]]:
    """Beginnings and ends (True) of the runs of nodes, in order: a subgraph ends after its nodes."""
    for event in story.events:
        match event:
            case NodeStarted():
                yield event.path, False
            case NodeFinished() | NodeFailed():
                yield event.path, True
            case _:
                pass
    for visit in reversed(story.visits.values()):
        if visit.ended is None:
            yield visit.path, True


def _at_moment(
    path: str, one: Side, two: Side, *, is_end: bool, with_steps: bool
) -> Iterator[Difference]:
    """What differs when a run of a node begins, or once it is over."""
    before, after = one.story.visits.get(path), two.story.visits.get(path)
    if before is not None and after is not None:
        facets = (
            _course(each, side, with_steps=with_steps) if is_end else _inputs(each, side)
            for each, side in ((before, one), (after, two))
        )
        yield from _of_facets(before.node, before.number, path, *map(dict, facets))
        return
    if is_end:
        return
    visit, side = (before, one) if before is not None else (after, two)
    assert visit is not None
    text = "\n".join([f"{visit.name} ran", *_texts(visit.inputs, side)])
    sides = (text, None) if before is not None else (None, text)
    which = "first" if before is not None else "second"
    yield Difference(visit.node, visit.number, path, f"ran in the {which} run only", *sides)


def _of_facets(
    node: str, number: int, path: str, before: Mapping[str, str], after: Mapping[str, str]
) -> Iterator[Difference]:
    for aspect in _merged(list(before), list(after)):
        first, second = before.get(aspect), after.get(aspect)
        if first != second:
            yield Difference(node, number, path, aspect, first, second)


def _merged(before: list[str], after: list[str]) -> list[str]:
    """All aspects, each where it came about in its own run: a failure before the output."""
    merged, at = list(before), 0
    for aspect in after:
        if aspect in before:
            at = merged.index(aspect) + 1
        else:
            merged.insert(at, aspect)
            at += 1
    return merged


def _inputs(visit: Visit, side: Side) -> Iterator[tuple[str, str]]:
    yield "inputs", "\n".join(_texts(visit.inputs, side))


def _course(visit: Visit, side: Side, *, with_steps: bool) -> Iterator[tuple[str, str]]:
    """What came of a run of a node, in the order in which it came about."""
    ids: dict[str, str] = {}
    asked = 0
    units = sorted({each.path for each in visit.calls} | {e.started.path for e in visit.tools})
    for path in units:
        where = f"{path.removeprefix(visit.path + '/')}, " if path != visit.path else ""
        for call in sorted((c for c in visit.calls if c.path == path), key=lambda c: c.turn):
            turn = f"{where}turn {call.turn}"
            if with_steps and (step := side.steps.get(call.key)) is not None:
                yield from _of_step(turn, step, ids, side)
            uses = [e for e in visit.tools if e.started.path == path and e.turn == call.turn]
            yield from _of_uses(turn, uses, side)
    for each in visit.happenings:
        if isinstance(each, Question):
            asked += 1
            yield f"question {asked} to a human", _plain(each.text, side)
            yield f"answer {asked} of a human", _plain(each.answer or "", side)
    if visit.failure is not None:
        error = visit.failure
        yield "failure", _plain(f"{error.code}: {error.message}", side)
    yield "output", "\n".join(_texts(visit.outputs, side))
    yield "status", side.story.status(visit)
    fired = sorted(f"{edge.source} -> {edge.target} (edge {edge.edge})" for edge in visit.fired)
    yield "edges that fired", "\n".join(fired)


def _of_step(
    turn: str, step: StepRecord, ids: dict[str, str], side: Side
) -> Iterator[tuple[str, str]]:
    request = cast("Mapping[str, JsonValue]", step.request or {})
    about = {key: value for key, value in request.items() if key != "messages"}
    messages = cast("list[dict[str, JsonValue]]", request.get("messages", []))
    yield f"{turn}: request", _plain(_json(about), side)
    yield f"{turn}: prompt", "\n".join(_lines(each, ids, side) for each in messages)
    if reply := reply_of(step):
        yield f"{turn}: reply", _lines(reply, ids, side)


def _of_uses(turn: str, uses: Sequence[ToolUse], side: Side) -> Iterator[tuple[str, str]]:
    for number, use in enumerate(uses, 1):
        start, end = use.started, use.finished
        name = f"{turn}: tool call {number}"
        yield name, _plain(f"{start.tool}({_json(start.arguments)})", side)
        if end is not None:
            failed = "failed: " if end.is_error else ""
            yield f"{name}, result", _plain(failed + end.result, side)


def _end(side: Side) -> Iterator[tuple[str, str]]:
    end = side.story.finished
    if end is None:
        yield "status", "not finished"
        return
    yield "status", end.outcome.status
    yield "answer", _plain(end.answer or "(none)", side)


def _texts(messages: Sequence[Message], side: Side) -> list[str]:
    return [_lines(to_json(message), {}, side) for message in messages]


def _lines(message: Mapping[str, JsonValue], ids: dict[str, str], side: Side) -> str:
    """A message as lines; ids of tool calls are numbered as they come."""
    content = message.get("content", "")
    text = content if isinstance(content, str) else _json(content)
    source = f" (from {message['source']})" if message.get("source") else ""
    answers = message.get("tool_call_id")
    to = f" (result of {ids.setdefault(str(answers), f'call {len(ids) + 1}')})" if answers else ""
    lines = [f"[{message.get('role', '?')}{source}{to}]", text]
    for call in cast("list[dict[str, JsonValue]]", message.get("tool_calls", [])):
        name = ids.setdefault(str(call.get("id")), f"call {len(ids) + 1}")
        lines.append(f"{name}: {call.get('name')}({call.get('arguments')})")
    return _plain("\n".join(lines), side)


def _plain(text: str, side: Side) -> str:
    """The text with the run's own name taken out."""
    return text.replace(side.run_id, "RUN") if len(side.run_id) >= _LONG_ENOUGH else text


_LONG_ENOUGH = 8
"""Characters from which on the name of a run stands nowhere by chance."""


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, indent=1, default=str)


def _has_calls(*sides: Side) -> bool:
    return any(
        isinstance(each, ModelCall)
        for side in sides
        for visit in side.story.visits.values()
        for each in visit.happenings
    )


def _no_prompts(one: Side, two: Side) -> str:
    which = " and ".join(
        name for name, side in (("the first", one), ("the second", two)) if not side.steps
    )
    return f"prompts and replies are not compared: {which} run is in no journal"
