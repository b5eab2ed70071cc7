"""What a run was like, node by node, in plain values without secrets; reports are made of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from devall.core.diagnostics import Diagnostic, Position
from devall.core.events import (
    Event,
    NodeFailed,
    NodeFinished,
)
from devall.core.ids import node_of
from devall.core.outcome import ErrorReport, Outcome
from devall.core.usage import Usage
from devall.engine.context import NodeStatus
from devall.engine.result import RunResult
from devall.loading.loader import LoadedWorkflow
from devall.reports.places import places_of
from devall.telemetry.redaction import SHORTEST_IN_ANSWERS, Redactor, without_named

KEPT_OUT = "(kept out of reports, as `log_output: false` has it)"
"""What stands where the answer would."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """One node of a run."""

    name: str
    """Its id, `S/X` in a subgraph."""
    status: NodeStatus
    runs: int = 0
    seconds: float = 0
    """Of all its runs together."""
    usage: Usage = field(default_factory=Usage)
    place: Position | None = None
    failure: ErrorReport | None = None
    """Why its last run that failed did."""
    is_survived: bool = False
    """Whether the run went on without it (`on_error: continue`)."""
    question: str = ""
    """What it waits to be answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """A run as reports tell it; also one that never began, which has no nodes."""

    workflow: str
    outcome: Outcome
    run_id: str = ""
    answer: str | None = None
    answer_node: str | None = None
    nodes: tuple[NodeReport, ...] = ()
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    warnings: tuple[str, ...] = ()
    diagnostics: tuple[Diagnostic, ...] = ()
    """What is wrong with the file, where that is why it did not begin."""

    @property
    def failures(self) -> list[NodeReport]:
        """The nodes that failed or wait, each failure once: at the innermost node.

        A subgraph's node fails by what failed inside of it.
        """
        failed = [node for node in self.nodes if node.failure is not None or node.question]
        return [
            node
            for node in failed
            if not any(
                other.name.startswith(f"{node.name}/") and _reason(other) == _reason(node)
                for other in failed
            )
        ]

    @property
    def unplaced(self) -> ErrorReport | None:
        """Why the run ended, where no node is to blame."""
        error = self.outcome.error
        if error is None or any(n.failure is not None and not n.is_survived for n in self.nodes):
            return None
        return error


@dataclass(slots=True)
class _Tally:
    """What the events have said of one node."""

    seconds: float = 0
    failure: NodeFailed | None = None


class Recorder:
    """Remembers of a run's events what its result does not say; an instance is itself the sink."""

    def __init__(self) -> None:
        self.began = datetime.now(UTC)
        self._nodes: dict[str, _Tally] = {}
        self._hidden: set[str] = set()
        """What nodes with `log_output: false` have said."""

    def __call__(self, event: Event, /) -> None:
        """Take the event in."""
        match event:
            case NodeFinished():
                self._of(event.node).seconds += event.seconds
                if not event.log_output:
                    self._hidden.update(message.text for message in event.outputs)
            case NodeFailed():
                tally = self._of(event.node)
                tally.seconds += event.seconds
                tally.failure = event
            case _:
                pass

    def report(self, result: RunResult, loaded: LoadedWorkflow, redactor: Redactor) -> RunReport:
        """The run as it went."""
        places = dict(places_of(loaded.root))
        waiting: dict[str, str] = {}
        for path, question in result.waiting:
            waiting.setdefault(node_of(path), redactor.text(question))
        names = [name for name in places if name in result.nodes]
        names += [name for name in result.nodes if name not in places]
        nodes = tuple(self._node(name, result, places, waiting, redactor) for name in names)
        answer = result.answer
        if answer is not None:
            is_hidden = answer in self._hidden
            answer = KEPT_OUT if is_hidden else redactor.at_least(SHORTEST_IN_ANSWERS).text(answer)
        return RunReport(
            workflow=redactor.text(result.workflow),
            outcome=_redacted(result.outcome, redactor),
            run_id=result.run_id,
            answer=answer,
            answer_node=result.answer_node and redactor.text(result.answer_node),
            nodes=nodes,
            usage=result.usage,
            seconds=result.seconds,
            began=self.began,
            warnings=tuple(redactor.text(text) for text in result.warnings),
        )

    def _node(
        self,
        name: str,
        result: RunResult,
        places: Mapping[str, Position],
        waiting: Mapping[str, str],
        redactor: Redactor,
    ) -> NodeReport:
        summary = result.nodes[name]
        tally = self._nodes.get(name) or _Tally()
        failed = tally.failure
        return NodeReport(
            name=redactor.text(name),
            status=summary.status,
            runs=summary.runs,
            seconds=tally.seconds,
            usage=result.usage_by_node.get(name) or Usage(),
            place=places.get(name),
            failure=None
            if failed is None
            else _redacted_error(
                ErrorReport(failed.code, failed.message, name, failed.hint), redactor
            ),
            is_survived=failed is not None and failed.continued,
            question=waiting.get(name, ""),
        )

    def _of(self, node: str) -> _Tally:
        return self._nodes.setdefault(node, _Tally())


def never_begun(
    workflow: str, outcome: Outcome, diagnostics: Iterable[Diagnostic], redactor: Redactor
) -> RunReport:
    """The report of a run that ended before its first node."""
    clean = tuple(
        replace(
            each,
            message=redactor.text(each.message),
            hint=redactor.text(each.hint),
            quoted=redactor.text(each.quoted),
        )
        for each in diagnostics
    )
    return RunReport(
        workflow=redactor.text(workflow), outcome=_redacted(outcome, redactor), diagnostics=clean
    )


def _reason(node: NodeReport) -> str:
    return node.question or (node.failure.message if node.failure is not None else "")


def _redacted(outcome: Outcome, redactor: Redactor) -> Outcome:
    return replace(
        outcome,
        error=outcome.error and _redacted_error(outcome.error, redactor),
        waiting=tuple((path, redactor.text(text)) for path, text in outcome.waiting),
    )


def _redacted_error(error: ErrorReport, redactor: Redactor) -> ErrorReport:
    return replace(
        error,
        message=without_named(redactor.text(error.message)),
        hint=redactor.text(error.hint),
    )
