"""What the head of the page says of a run: how it ended and why, its totals, its questions."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from devall.core.amounts import count, duration
from devall.core.events import NodeFailed, UnitFailed, Warned
from devall.history.past import Past
from devall.history.story import Question, Story
from devall.page.clock import Clock
from devall.page.costs import Costs
from devall.page.nodes import Failure
from devall.page.steps import Asked, Steps
from devall.page.texts import Text, Texts

MOST_PROBLEMS = 20
"""Failures that stand above the nodes."""
_STATES: Mapping[str, tuple[str, str]] = {
    "completed": ("good", "Completed"),
    "failed": ("bad", "Failed"),
    "limit_reached": ("bad", "Stopped by a limit"),
    "waiting": ("waiting", "Waiting for a human"),
    "cancelled": ("idle", "Cancelled"),
    "running": ("running", "Running"),
    "interrupted": ("bad", "Interrupted"),
    "unfinished": ("idle", "Unfinished"),
}


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure with its name."""

    name: str
    value: str
    about: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that failed, in a node."""

    name: str
    anchor: str
    failure: Failure


@dataclass(frozen=True, slots=True)
class Caution:
    """A warning, however often it was given."""

    node: str
    text: str
    code: str
    times: int


@dataclass(frozen=True, slots=True)
class Link:
    """A section of the page."""

    anchor: str
    name: str


@dataclass(slots=True)
class Summary:
    """Everything but nodes, timeline and costs."""

    run_id: str
    title: str
    version: str
    folder: str
    look: str
    status: str
    verdict: list[str]
    failure: Failure | None = None
    failed_node: str = ""
    failed_anchor: str = ""
    go_on: str = ""
    """The command that goes on with the run; empty: there is none."""
    notes: list[str] = field(default_factory=list[str])
    task: Text | None = None
    answer: Text | None = None
    tiles: list[Tile] = field(default_factory=list[Tile])
    questions: list[Asked] = field(default_factory=list[Asked])
    open_questions: list[Asked] = field(default_factory=list[Asked])
    problems: list[Problem] = field(default_factory=list[Problem])
    more_problems: int = 0
    warnings: list[Caution] = field(default_factory=list[Caution])
    sections: list[Link] = field(default_factory=list[Link])
    about: list[Tile] = field(default_factory=list[Tile])


def summary_of(
    past: Past,
    story: Story,
    clock: Clock,
    costs: Costs,
    steps: Steps,
    anchors: Mapping[str, str],
    version: str,
) -> Summary:
    """The head of a run's page."""
    texts, finished = steps.texts, story.finished
    look, word = _STATES.get(past.state, ("idle", past.state))
    started = story.started
    name = started.graph.id if started is not None and started.graph is not None else ""
    seconds = past.seconds
    took = clock.seconds if seconds is None or len(clock.processes) > 1 else seconds
    page = Summary(
        run_id=past.id,
        title=texts.line(name or Path(past.workflow).stem or past.id, 120),
        version=version,
        folder=texts.line(str(past.folder), 400),
        look=look,
        status=word,
        verdict=[f"in {duration(took)}", _moment(past.began)],
    )
    if finished is not None and past.state == finished.outcome.status:
        page.verdict.insert(0, f"exit code {finished.outcome.exit_code}")
        error = finished.outcome.error
        if error is not None:
            hint = error.hint or _hint(story, error.node)
            page.failure = Failure(
                texts.line(error.code, 60),
                texts.line(error.message, 3000),
                texts.line(hint, 1000),
                is_continued=False,
            )
            page.failed_node = texts.line(error.node or "", 200)
            page.failed_anchor = anchors.get(error.node or "", "")
        if finished.answer is not None:
            page.answer = texts.add(finished.answer)
    page.task = texts.add(past.task) if past.task else None
    page.tiles = list(_tiles(story, costs, took))
    page.questions = list(_questions(story, steps, anchors))
    page.open_questions = (
        [each for each in page.questions if each.answer is None] if look == "waiting" else []
    )
    problems = list(_problems(story, texts, anchors))
    page.problems = problems[:MOST_PROBLEMS]
    page.more_problems = len(problems) - len(page.problems)
    page.warnings = list(_warnings(story, texts))
    page.notes = list(_notes(past, clock))
    page.about = list(_about(past, story, clock, texts))
    return page


def _hint(story: Story, node: str | None) -> str:
    """The hint of the node that failed last, where the outcome has none."""
    for visit in reversed(story.visits.values()):
        if visit.node == node and visit.failure is not None:
            return visit.failure.hint
    return ""


def _tiles(story: Story, costs: Costs, took: float) -> Iterator[Tile]:
    worked = [visit for visit in story.visits.values() if not visit.is_idle]
    nodes = {visit.node for visit in worked}
    known = max(len(story.nodes), len(nodes))
    yield Tile("Time", duration(took))
    runs = count(len(worked), "run") if len(worked) != len(nodes) else ""
    yield Tile("Nodes that ran", f"{len(nodes):,} of {known:,}", runs)
    total = costs.total
    yield Tile("Model calls", f"{total.model_calls:,}")
    if total.tool_calls:
        failed = sum(each.failed for each in costs.tools)
        yield Tile("Tool calls", f"{total.tool_calls:,}", f"{failed:,} failed" if failed else "")
    if total.model_calls:
        at_least = "≥ " if total.unknown_calls else ""
        about = f"{total.input_tokens:,} in, {total.output_tokens:,} out"
        yield Tile("Tokens", f"{at_least}{total.tokens:,}", about)
        unpriced = f"of {count(total.unpriced_calls, 'call')} no price is known"
        yield Tile("Cost", total.cost, unpriced if total.unpriced_calls else "")


def _questions(story: Story, steps: Steps, anchors: Mapping[str, str]) -> Iterator[Asked]:
    for visit in story.visits.values():
        for each in visit.happenings:
            if isinstance(each, Question):
                yield steps.asked(each, visit.name, anchors.get(visit.path, ""))


def _problems(story: Story, texts: Texts, anchors: Mapping[str, str]) -> Iterator[Problem]:
    """What failed, but for what the head tells."""
    outcome = story.finished.outcome if story.finished is not None else None
    head = outcome.error if outcome is not None else None
    for visit in story.visits.values():
        failed: list[tuple[str, NodeFailed | UnitFailed]] = [
            (f"{visit.name}, unit {unit.ended.unit}", unit.ended)
            for unit in visit.units.values()
            if isinstance(unit.ended, UnitFailed)
        ]
        failure = visit.failure
        is_told = head is not None and failure is not None and failure.message in head.message
        if failure is not None and not is_told:
            failed.append((visit.name, failure))
        for name, event in failed:
            yield Problem(
                texts.line(name, 200),
                anchors.get(visit.path, ""),
                Failure(
                    texts.line(event.code, 60),
                    texts.line(event.message, 1000),
                    texts.line(event.hint, 1000),
                    event.continued,
                ),
            )


def _warnings(story: Story, texts: Texts) -> Iterator[Caution]:
    times: Counter[tuple[str, str, str]] = Counter(
        (event.node, event.message, event.code)
        for event in story.events
        if isinstance(event, Warned)
    )
    for (node, message, code), number in list(times.items())[:MOST_PROBLEMS]:
        yield Caution(
            texts.line(node, 200), texts.line(message, 1000), texts.line(code, 60), number
        )


def _notes(past: Past, clock: Clock) -> Iterator[str]:
    if past.state == "running":
        yield "The run still goes on: this is how it stood when the page was written."
    elif past.state == "interrupted":
        yield "The process of this run ended before the run did. What was done is kept."
    if len(clock.processes) > 1:
        paused = sum(seconds for _, seconds in clock.pauses)
        yield (
            f"{len(clock.processes)} processes worked at it, one after the other, with"
            f" {duration(paused)} between them: times are those of the work itself."
        )
    if not past.is_kept:
        yield "The run is in no journal: it is told from its events alone."


def _about(past: Past, story: Story, clock: Clock, texts: Texts) -> Iterator[Tile]:
    yield Tile("Run", past.id)
    yield Tile("Workflow", texts.line(past.workflow, 400))
    yield Tile("Folder", texts.line(str(past.folder), 400))
    yield Tile("Began", _moment(past.began))
    if clock.processes and past.state != "running":
        yield Tile("Ended", _moment(clock.processes[-1].ended))
    yield Tile("Events", f"{len(story.events):,}")
    yield Tile("Page written", _moment(time.time()))


def _moment(at: float) -> str:
    """A time as clocks here show it, with how far they are from UTC."""
    return time.strftime("%Y-%m-%d %H:%M:%S %z", time.localtime(at))
