"""The nodes of a run as the page tells of them: each with its runs, and why it ran."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from devall.core.amounts import count, dollars, duration
from devall.core.events import UnitFailed, UnitFinished
from devall.core.shape import GraphShape
from devall.history.causes import Explanation
from devall.history.story import Story, Unit, Visit
from devall.page.steps import Said, Step, Steps
from devall.page.texts import Texts

MOST_THINGS = 4000
"""Runs of nodes, units and steps that are told of in full; beyond that those that matter most."""
FEWEST_RUNS = 4
"""Runs that are told of for each node, however many nodes there are."""
GROUP = 100
"""Units, or runs of a node, that are folded away together."""
STATES: Mapping[str, str] = {
    "completed": "good",
    "failed": "bad",
    "skipped": "idle",
    "waiting": "waiting",
    "cancelled": "idle",
    "unfinished": "idle",
    "running": "running",
    "not run": "idle",
}
"""The look of a status."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Why something failed."""

    code: str
    message: str
    hint: str
    is_continued: bool
    """Whether the run went on without it."""


@dataclass(slots=True)
class UnitView:
    """One unit of a dynamic edge."""

    name: str
    status: str
    facts: list[str]
    line: str
    """Its first words."""
    outputs: list[Said]
    failure: Failure | None
    steps: Sequence[Step]

    @property
    def look(self) -> str:
        """The look of its status."""
        return STATES[self.status]


@dataclass(slots=True)
class Group:
    """Units that are folded away together."""

    title: str
    units: list[UnitView]
    is_open: bool = False


@dataclass(slots=True)
class VisitView:
    """One run of a node."""

    anchor: str
    title: str
    status: str
    facts: list[str]
    line: str
    causes: list[str]
    inputs: list[Said]
    outputs: list[Said]
    failure: Failure | None
    steps: Sequence[Step]
    groups: list[Group]
    units_left_out: int
    targets: str
    """Where it handed on to."""
    is_open: bool

    @property
    def look(self) -> str:
        """The look of its status."""
        return STATES[self.status]


@dataclass(slots=True)
class NodeView:
    """One node."""

    anchor: str
    name: str
    kind: str
    status: str
    facts: list[str]
    visits: list[VisitView] = field(default_factory=list[VisitView])
    left_out: int = 0
    """Runs of it that the page does not tell of."""
    summary: str = ""
    """Why it did not run."""
    edges: list[str] = field(default_factory=list[str])
    """The edges into it, and what decided them."""

    @property
    def look(self) -> str:
        """The look of its status."""
        return STATES[self.status]


_NO_CONDITION = "it has no condition"
Explain = Callable[[str], Sequence[Explanation]]
"""Why a node fared as it did; nothing where that is not known."""


@dataclass(slots=True)
class Nodes:
    """Tells of the nodes of a run."""

    story: Story
    steps: Steps
    texts: Texts
    explain: Explain
    anchors: Mapping[str, str]
    """By node and by path of a node's run."""
    is_alive: bool = False
    """Whether the run still goes on."""

    def views(self, names: Sequence[str]) -> Iterator[NodeView]:
        """The nodes, in that order."""
        by_node: dict[str, list[Visit]] = {name: [] for name in names}
        for visit in self.story.visits.values():
            by_node.setdefault(visit.node, []).append(visit)
        things = sum(map(_things, self.story.visits.values()))
        share = MOST_THINGS if things <= MOST_THINGS else MOST_THINGS // max(1, len(by_node))
        kinds = dict(_kinds(self.story.started.graph)) if self.story.started is not None else {}
        many = len(self.story.visits) > 12
        for name, visits in by_node.items():
            yield self._node(name, visits, kinds.get(name, ""), share, many)

    def _node(
        self, name: str, visits: Sequence[Visit], kind: str, share: int, many: bool
    ) -> NodeView:
        worked = [visit for visit in visits if not visit.is_idle]
        explained = self.explain(name)
        if worked:
            status = self._status(worked[-1])
        elif visits or any(each.node == name for each in self.story.skipped):
            status = "skipped"
        else:
            status = "skipped" if any(e.fate == "skipped" for e in explained) else "not run"
        models = dict.fromkeys(call.model for visit in visits for call in visit.calls)
        kind = " · ".join([each for each in (kind, *map(self.texts.line, [*models][:3])) if each])
        told = self.texts.line
        view = NodeView(
            self.anchors.get(name, ""), told(name, 200), kind, status, self._facts(worked)
        )
        chosen = list(_chosen(worked, share))
        view.left_out = len(worked) - len(chosen)
        causes = {cause.visit.path: cause for each in explained for cause in each.causes}
        for visit in chosen:
            found = causes.get(visit.path)
            why: list[str] = []
            if found is not None and found.triggers:
                why.append(told("triggered by " + ", ".join(found.triggers), 400))
            if found is not None and found.waited_for:
                why.append(told("waited for " + ", ".join(found.waited_for), 400))
            if found is not None:
                why += [told(each, 200) for each in found.rounds]
            view.visits.append(self._visit(visit, why, share, many))
        if not worked and explained:
            view.summary = told(explained[-1].summary, 600)
        view.edges = [told(each, 400) for each in _edges(explained)]
        return view

    def _status(self, visit: Visit) -> str:
        status = self.story.status(visit)
        return "running" if status == "unfinished" and self.is_alive else status

    def _facts(self, visits: Sequence[Visit]) -> list[str]:
        """What all runs of a node took together."""
        if len(visits) == 1:
            return []  # its run says it
        facts = [f"{len(visits):,} runs"] if visits else []
        times = [self.story.seconds(visit) for visit in visits]
        if known := [each for each in times if each is not None]:
            facts.append(duration(sum(known)))
        calls = [call for visit in visits for call in visit.calls]
        return facts + _call_facts(calls, sum(len(visit.tools) for visit in visits))

    def _visit(self, visit: Visit, why: list[str], share: int, many: bool) -> VisitView:
        story, texts = self.story, self.texts
        seconds, status = story.seconds(visit), self._status(visit)
        facts = [duration(seconds)] if seconds is not None else []
        facts += _call_facts(visit.calls, len(visit.tools))
        # What units have said stands with them.
        own_words = () if visit.units else visit.outputs
        outputs = [self.steps.said(message) for message in own_words]
        inputs = [self.steps.said(message) for message in visit.inputs]
        steps = self.steps.of(visit)
        failure = visit.failure
        said = visit.outputs[-1].text if visit.outputs else ""
        units = [
            (unit, steps.pop(path, ())) for path, unit in _chosen_units(visit.units, max(share, 8))
        ]
        own = steps.pop(visit.path, [])
        left = [] if visit.units else [step for each in steps.values() for step in each]
        place = f" in {visit.graph.lstrip('/')}" if "unit:" in visit.graph else ""
        fired = list(dict.fromkeys(edge.target for edge in visit.fired))
        return VisitView(
            self.anchors.get(visit.path, ""),
            texts.line(f"Run {visit.number}{place}"),
            status,
            facts,
            texts.line(failure.message if failure is not None else said),
            why,
            inputs,
            outputs,
            None
            if failure is None
            else Failure(
                texts.line(failure.code, 60),
                texts.line(failure.message, 2000),
                texts.line(failure.hint, 1000),
                failure.continued,
            ),
            [*own, *left],
            list(self._groups(units)),
            len(visit.units) - len(units),
            texts.line(", ".join(fired), 300),
            status == "failed" and not many,
        )

    def _groups(self, units: Sequence[tuple[Unit, Sequence[Step]]]) -> Iterator[Group]:
        """Units in the order of their numbers, those that failed first."""
        failed = [each for each in units if isinstance(each[0].ended, UnitFailed)]
        others = [each for each in units if not isinstance(each[0].ended, UnitFailed)]
        if failed:
            views = [self._unit(*each) for each in failed]
            yield Group(count(len(failed), "unit") + " failed", views, len(failed) <= GROUP // 5)
        for at in range(0, len(others), GROUP):
            views = [self._unit(*each) for each in others[at : at + GROUP]]
            first, last = views[0].name, views[-1].name
            title = first if first == last else f"Units {first[5:]} to {last[5:]}"
            yield Group(title, views, is_open=len(units) <= GROUP // 10)

    def _unit(self, unit: Unit, steps: Sequence[Step]) -> UnitView:
        started, end = unit.started, unit.ended
        layer = f" of layer {started.layer}" if started.layer else ""
        outputs = end.outputs if isinstance(end, UnitFinished) else ()
        failure = None
        if isinstance(end, UnitFailed):
            failure = Failure(
                self.texts.line(end.code, 60),
                self.texts.line(end.message, 2000),
                self.texts.line(end.hint, 1000),
                end.continued,
            )
        open_word = "running" if self.is_alive else "cancelled"
        status = open_word if end is None else "failed" if failure is not None else "completed"
        line = failure.message if failure is not None else outputs[-1].text if outputs else ""
        return UnitView(
            f"Unit {started.unit}{layer}",
            status,
            [] if end is None else [duration(end.seconds)],
            self.texts.line(line),
            [self.steps.said(message) for message in outputs],
            failure,
            steps,
        )


def _call_facts(calls: Sequence[object], tools: int) -> list[str]:
    from devall.history.story import ModelCall

    found = [call for call in calls if isinstance(call, ModelCall)]
    facts = [count(len(found), "model call")] if found else []
    facts += [count(tools, "tool call")] if tools else []
    ends = [call.finished for call in found if call.finished is not None]
    tokens = sum(end.usage.tokens for end in ends if end.usage is not None)
    facts += [count(tokens, "token")] if tokens else []
    prices = [end.usd for end in ends if end.usd is not None]
    return facts + ([dollars(sum(prices))] if any(prices) else [])


def _things(visit: Visit) -> int:
    return 1 + len(visit.happenings) + len(visit.units)


def _chosen(visits: Sequence[Visit], share: int) -> Iterator[Visit]:
    """The runs that are told of: all, or those that failed, the first ones and the last ones."""
    if sum(map(_things, visits)) <= share:
        yield from visits
        return
    kept: set[int] = set()
    left = share
    turns = [
        at
        for pair in zip(range(len(visits)), reversed(range(len(visits))), strict=True)
        for at in pair
    ]
    failed = [at for at, visit in enumerate(visits) if visit.failure is not None]
    for at in [*failed, *turns]:
        if at not in kept and (left > 0 or len(kept) < FEWEST_RUNS):
            kept.add(at)
            left -= _things(visits[at])
    yield from (visit for at, visit in enumerate(visits) if at in kept)


def _chosen_units(units: Mapping[str, Unit], most: int) -> list[tuple[str, Unit]]:
    """The units that are told of, by number: all, or those that failed and the first ones."""
    found = list(units.items())
    if len(found) > most:
        failed = [each for each in found if isinstance(each[1].ended, UnitFailed)]
        others = [each for each in found if not isinstance(each[1].ended, UnitFailed)]
        found = [*failed, *others][:most]
    return sorted(found, key=lambda each: (each[1].started.layer, each[1].started.unit))


def _edges(explained: Sequence[Explanation]) -> Iterator[str]:
    """The edges into a node in words, with what decided the newest of their firings."""
    for each in explained[-1:]:
        for edge in each.edges:
            condition = f", {edge.condition}" if edge.condition else ""
            trigger = "" if edge.trigger else ", starts nothing (trigger: false)"
            head = f"{edge.source} → {edge.target}{condition}{trigger}"
            if not edge.firings:
                yield f"{head}: did not fire, {edge.source} {edge.source_state}"
                continue
            last = edge.firings[-1]
            reasons = "; ".join(dict.fromkeys(last.reasons))
            fired = "fired" if last.fired else "did not fire"
            times = len(edge.firings)
            often = sum(1 for firing in edge.firings if firing.fired)
            how = (
                fired if times == 1 else f"fired {often} of {times} times, the last time it {fired}"
            )
            yield f"{head}: {how}: {reasons}" if reasons != _NO_CONDITION else f"{head}: {how}"
        yield from (f"{text}." for text in dict.fromkeys(each.loops[-3:]))


def _kinds(graph: GraphShape | None, prefix: str = "") -> Iterator[tuple[str, str]]:
    """The kinds of nodes, by name."""
    for node in graph.nodes if graph is not None else ():
        yield prefix + node.id, node.type
        yield from _kinds(node.graph, f"{prefix}{node.id}/")
