"""What a run has used, summed from its events: in all, by node and by model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from devall.core.events import (
    EmbeddingFinished,
    Event,
    ModelCallFailed,
    ModelCallFinished,
    ModelCallStarted,
    ToolCallFinished,
)
from devall.core.usage import TokenUsage, Usage


@dataclass(slots=True)
class Tally:
    """Sums that grow."""

    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    unknown_calls: int = 0
    usd: float = 0.0
    priced_calls: int = 0

    def add(self, usage: TokenUsage | None, usd: float | None) -> None:
        """Count a model call; None: unknown."""
        self.model_calls += 1
        if usage is None:
            self.unknown_calls += 1
        else:
            self.input_tokens += usage.input_tokens
            self.output_tokens += usage.output_tokens
            self.cached_tokens += usage.cached_tokens
        if usd is not None:
            self.usd += usd
            self.priced_calls += 1

    def add_embedding(self, usage: TokenUsage, usd: float | None) -> None:
        """Count what making vectors took: it is no model call."""
        self.input_tokens += usage.input_tokens
        self.usd += usd or 0.0

    def with_open(self, calls: int) -> Usage:
        """The totals, where so many calls more were made and never answered."""
        made = self.model_calls + calls
        return Usage(
            made,
            self.tool_calls,
            self.input_tokens,
            self.output_tokens,
            self.cached_tokens,
            self.unknown_calls + calls,
            self.usd if self.usd or self.priced_calls or not made else None,
            made - self.priced_calls,
        )


@dataclass(slots=True)
class Ledger:
    """Keeps the sums of one run; takes each of its events once.

    A call that began and of which nothing more was heard (its node was cancelled, the run was
    interrupted) counts as one whose tokens and cost are unknown.
    """

    _total: Tally = field(default_factory=Tally)
    _nodes: dict[str, Tally] = field(default_factory=dict[str, Tally])
    _models: dict[str, Tally] = field(default_factory=dict[str, Tally])
    _open: dict[tuple[str, int], ModelCallStarted] = field(
        default_factory=dict[tuple[str, int], ModelCallStarted]
    )
    """By path and turn."""

    def note(self, event: Event) -> None:
        """Add what an event says was used."""
        match event:
            case ModelCallStarted():
                self._open[event.path, event.turn] = event
            case ModelCallFinished() | ModelCallFailed():
                self._open.pop((event.path, event.turn), None)
                for tally in (*self._of_node(event.node), self._of_model(event.model)):
                    tally.add(event.usage, event.usd)
            case EmbeddingFinished(usage=TokenUsage() as usage):
                for tally in (self._total, self._of_model(event.model)):
                    tally.add_embedding(usage, event.usd)
            case ToolCallFinished():
                for tally in self._of_node(event.node):
                    tally.tool_calls += 1
            case _:
                pass

    def lose(
        self, attempts: Iterable[ModelCallStarted | ModelCallFailed | EmbeddingFinished]
    ) -> None:
        """Add what earlier processes of the run used, and its journal knows nothing of."""
        for event in attempts:
            if isinstance(event, EmbeddingFinished):
                self.note(event)
                continue
            known = event if isinstance(event, ModelCallFailed) else None
            for tally in (*self._of_node(event.node), self._of_model(event.model)):
                tally.add(known and known.usage, known and known.usd)

    @property
    def usage(self) -> Usage:
        """The totals of the run."""
        return self._total.with_open(len(self._open))

    @property
    def by_node(self) -> Mapping[str, Usage]:
        """The totals of each node that made a call; `S/X` in a subgraph."""
        lost = [event.node for event in self._open.values()]
        names = dict.fromkeys((*self._nodes, *lost))
        return {n: self._nodes.get(n, Tally()).with_open(lost.count(n)) for n in names}

    @property
    def by_model(self) -> Mapping[str, Usage]:
        """The totals of each model, by the name that the workflow gives it."""
        lost = [event.model for event in self._open.values()]
        names = dict.fromkeys((*self._models, *lost))
        return {n: self._models.get(n, Tally()).with_open(lost.count(n)) for n in names}

    def _of_node(self, node: str) -> tuple[Tally, Tally]:
        return self._total, self._nodes.setdefault(node, Tally())

    def _of_model(self, model: str) -> Tally:
        return self._models.setdefault(model, Tally())
