"""The page itself: everything about one run in one HTML file that loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from devall.core.amounts import count, duration
from devall.core.errors import DevallError
from devall.core.events import Event
from devall.graph.compile import compile_graph
from devall.history.causes import Explainer, Explanation, names_in
from devall.history.exchanges import exchanges
from devall.history.past import Past
from devall.history.story import Story
from devall.history.verdicts import Verdicts
from devall.journal.base import StepRecord
from devall.loading.loader import LoadedWorkflow
from devall.page import markdown
from devall.page.clock import Clock, clock_of
from devall.page.costs import costs_of
from devall.page.graph import picture_of
from devall.page.images import Images
from devall.page.nodes import Explain, Nodes
from devall.page.steps import Steps
from devall.page.summary import Link, summary_of
from devall.page.texts import MOST, Text, Texts, clean
from devall.page.timeline import timeline_of

MOST_EXPLAINED = 3_000_000
"""Events that are looked at to tell why nodes ran: each node looks at all of them."""
_TEMPLATES = Path(__file__).parent / "templates"
_STYLES = re.compile(r"<style>(.*?)</style>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """A page that is written."""

    html: str
    events: int
    """Of how many it tells."""
    nodes: int
    has_picture: bool
    note: str
    """Why it has none."""
    longest: int
    """Characters after which its texts are cut."""
    cut: int
    """How many of them are."""


def document_of(
    past: Past,
    events: Sequence[Event],
    story: Story,
    *,
    version: str,
    workflow: LoadedWorkflow | None = None,
    notes: Sequence[str] = (),
    go_on: str = "",
    redact: Callable[[str], str] = lambda text: text,
    most: int = MOST,
) -> Document:
    """The page of a run.

    Args:
        past: The run; one that goes on is told of as it stands.
        events: All of its events, those of earlier processes included.
        story: The course that they tell.
        version: Of devall.
        workflow: What ran; None: it cannot be read any more.
        notes: What a reader should know beforehand.
        go_on: The command that goes on with the run; empty: there is none.
        redact: Takes secrets out of a text.
        most: Bytes that all texts may take together.

    Raises:
        UsageError: a part of its journal is gone.
    """
    is_alive = past.state == "running"
    clock, texts = clock_of(events, time.time() if is_alive else None), Texts(redact)
    names = list(dict.fromkeys((*_names(workflow), *story.nodes)))
    anchors = _anchors(story, names)
    costs = costs_of(past, story, anchors, texts.line)
    images = Images(past.folder / "attachments")
    steps = Steps(texts, clock, _records(past, story, clock), images)
    page = summary_of(past, story, clock, costs, steps, anchors, version)
    page.notes += [texts.line(note, 1000) for note in notes]
    page.go_on = texts.line(go_on, 1000)
    explain = _explain(past, story, workflow)
    nodes = list(Nodes(story, steps, texts, explain, anchors, is_alive).views(names))
    line = timeline_of(story, clock, anchors, texts.line, is_alive=is_alive)
    picture = picture_of(workflow, story, anchors, redact, is_over=not is_alive)
    longest = texts.settle(most)
    problems = "Failures" if page.problems else "Warnings"
    page.sections = [
        Link(anchor, name)
        for anchor, name, holds in (
            ("task", "Task", page.task),
            ("answer", "Answer", page.answer),
            ("problems", problems, page.problems or page.warnings),
            ("graph", "Graph", True),
            ("timeline", "Timeline", line.rows),
            ("costs", "Cost", costs.nodes or costs.tools),
            ("humans", "Humans", page.questions),
            ("nodes", "Nodes", True),
        )
        if holds
    ]
    answer = None
    if page.answer is not None and len(page.answer.shown) <= markdown.LONGEST:
        answer = markdown.render(page.answer.shown, 3)
    html = _render(
        redact,
        {
            "page": page,
            "answer": answer,
            "is_formatted": answer is not None and _is_formatted(page.answer, answer),
            "nodes": nodes,
            "line": line,
            "costs": costs,
            "picture": picture,
            "duration": duration,
            "count": count,
        },
    )
    return Document(
        html, len(events), len(nodes), picture.svg is not None, picture.note, longest, texts.cut
    )


def _is_formatted(text: Text | None, html: Markup) -> bool:
    """Whether Markdown has made more of a text than paragraphs."""
    return text is not None and html.striptags().split() != text.shown.split()


def _render(redact: Callable[[str], str], values: Mapping[str, object]) -> str:
    """The HTML; whatever is put into it is without secrets and control characters, and escaped."""

    def finalize(value: object) -> object:
        if isinstance(value, str) and not isinstance(value, Markup):
            return clean(redact(value))
        return value

    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    style = (_TEMPLATES / "style.css").read_text(encoding="utf-8")
    script = (_TEMPLATES / "script.js").read_text(encoding="utf-8")
    picture = values["picture"]
    styles = [style, *_STYLES.findall(str(getattr(picture, "svg", "") or ""))]
    html = environment.get_template("report.html").render(
        **values,
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        csp=_policy(styles, [script]),
    )
    return html.lstrip().encode("utf-8", "replace").decode()


def _policy(styles: Sequence[str], scripts: Sequence[str]) -> str:
    """What a browser may do for the page: show these styles, run this script, load nothing."""

    def hashes(sources: Sequence[str]) -> str:
        digests = [hashlib.sha256(each.encode()).digest() for each in sources]
        return " ".join(f"'sha256-{base64.b64encode(each).decode()}'" for each in digests)

    return (
        f"default-src 'none'; style-src {hashes(styles)}; script-src {hashes(scripts)};"
        " img-src data:; base-uri 'none'; form-action 'none'"
    )


def _names(workflow: LoadedWorkflow | None) -> list[str]:
    if workflow is None:
        return []
    try:
        return list(names_in(compile_graph(workflow.root)))
    except DevallError:
        return []


def _anchors(story: Story, names: Sequence[str]) -> dict[str, str]:
    """Ids of the page's elements, by node and by path: names may hold what ids must not."""
    anchors = {name: f"n{number}" for number, name in enumerate(names, 1)}
    for number, path in enumerate(story.visits, 1):
        anchors[path] = f"r{number}"
    return anchors


def _records(past: Past, story: Story, clock: Clock) -> Mapping[str, StepRecord]:
    """What models were asked, from the journal, where the events are too old to tell."""
    calls = [call for visit in story.visits.values() for call in visit.calls]
    for call in calls:
        sent = clock.sent.get((call.path, call.turn)) or call.started
        has_reply = call.finished is None or call.finished.reply is not None
        if sent is None or not sent.messages or not has_reply:
            return exchanges(past, story)
    return {}


def _explain(past: Past, story: Story, workflow: LoadedWorkflow | None) -> Explain:
    """What tells why nodes ran; of a run that is too large for it nothing does."""

    def nothing(_node: str) -> Sequence[Explanation]:
        return ()

    if workflow is None or len(story.events) * len(story.nodes) > MOST_EXPLAINED:
        return nothing
    try:
        plan = compile_graph(workflow.root)
        decisions = past.steps(lambda _, kind: kind == "edge")
    except DevallError:
        return nothing
    verdicts = Verdicts({key: each for key, each in decisions.items() if each.state == "done"})
    explainer = Explainer(story, plan, verdicts, past.state == "running")
    return lambda node: explainer.explain(node, 20)
