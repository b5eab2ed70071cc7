"""What a run did, as a picture shows it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from devall.core.events import EdgeFired, Event, LoopRound, UnitStarted
from devall.history.story import Story, Visit, VisitStatus
from devall.pictures.course import Course, NodeCourse, State

_STATES: Mapping[VisitStatus, State] = {
    "completed": "completed",
    "failed": "failed",
    "skipped": "skipped",
    "waiting": "waiting",
    "cancelled": "cancelled",
    "unfinished": "running",
}


def course_of(story: Story, *, is_over: bool = False) -> Course:
    """What the run did, node by node, edge by edge, loop by loop.

    Args:
        story: Its course.
        is_over: Whether nobody is at the run any more, though its events have no end: what had
            begun then is no longer running.
    """
    visits: defaultdict[str, list[Visit]] = defaultdict(list)
    for visit in story.visits.values():
        visits[visit.node].append(visit)
    units: Counter[str] = Counter()
    edges: Counter[tuple[str, int]] = Counter()
    rounds: Counter[frozenset[str]] = Counter()
    for event in _once(story.events):
        match event:
            case UnitStarted():
                units[event.node] += 1
            case EdgeFired():
                edges[_graph(story, event.path), event.edge] += 1
            case LoopRound():
                graph = _graph(story, event.path)
                prefix = f"{graph}/" if graph else ""
                rounds[frozenset(prefix + node for node in event.loop)] += 1
            case _:
                pass
    nodes = {event.node: NodeCourse(state="skipped") for event in story.skipped}
    states: dict[VisitStatus, State] = dict(_STATES)
    if is_over:
        states["unfinished"] = "cancelled"
    nodes |= {node: _node(story, found, units[node], states) for node, found in visits.items()}
    return Course(nodes=nodes, edges=dict(edges), rounds=dict(rounds))


def _node(
    story: Story, visits: list[Visit], units: int, states: Mapping[VisitStatus, State]
) -> NodeCourse:
    worked = [visit for visit in visits if not visit.is_idle]
    return NodeCourse(
        state=states[story.status((worked or visits)[-1])],
        runs=len(worked),
        seconds=sum(story.seconds(visit) or 0 for visit in worked),
        units=units,
        models=tuple(
            dict.fromkeys(
                f"{call.provider}: {call.model}" for each in worked for call in each.calls
            )
        ),
    )


def _graph(story: Story, path: str) -> str:
    """The graph that a run of a graph is of: empty for the root, else its node."""
    visit = story.visit_of(path) if path else None
    return visit.node if visit is not None else ""


def _once(events: Iterable[Event]) -> Iterable[Event]:
    """The events; of a unit that was tried again the first."""
    begun: set[str] = set()
    for event in events:
        if isinstance(event, UnitStarted):
            if event.path in begun:
                continue
            begun.add(event.path)
        yield event
