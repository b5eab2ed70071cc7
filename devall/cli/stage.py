"""Where a run is carried out for those who watch it: its view, its signals, its humans."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from devall.cli.inputs import answering_nodes
from devall.cli.interruption import Interruption
from devall.cli.options import only_one
from devall.cli.questions import TerminalHuman, can_ask
from devall.cli.views import View, choose_view

if TYPE_CHECKING:
    from devall.cli.reports import Reports
    from devall.core.events import Sink
    from devall.core.ports import HumanChannel
    from devall.engine.result import RunResult
    from devall.loading.loader import LoadedWorkflow
    from devall.telemetry.redaction import Redactor

    Work = Callable[[Sink, HumanChannel | None], Coroutine[Any, Any, RunResult]]


@dataclass(frozen=True, slots=True)
class Stage:
    """Shows a run as it goes, takes Ctrl-C, and asks whoever sits there."""

    view: View
    interruption: Interruption
    loaded: LoadedWorkflow
    redactor: Redactor

    @classmethod
    def of(cls, loaded: LoadedWorkflow, redactor: Redactor, *, quiet: bool, verbose: bool) -> Self:
        """The stage for a workflow.

        Raises:
            UsageError: nothing and everything is to be shown.
        """
        only_one((("--quiet", quiet), ("--verbose", verbose)))
        view = choose_view(
            quiet=quiet, verbose=verbose, redactor=redactor, answering=answering_nodes(loaded)
        )
        return cls(view, Interruption(view.note), loaded, redactor)

    def play(self, work: Work, reports: Reports, *, asks: bool = True) -> RunResult:
        """The result of a run, which is reported as well.

        Args:
            work: Begins the run; gets who is told of events, and who may be asked.
            reports: Told of the run.
            asks: Whether a human may be asked at all.
        """
        human = TerminalHuman(self.view, self.redactor) if asks and can_ask() else None
        try:
            result = self.interruption.run(work(reports.beside(self.view), human))
        finally:
            self.view.close()
        reports.finish(result, self.loaded, self.redactor)
        return result
